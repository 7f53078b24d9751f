"""The whole recommender as one ONNX model: users, κ, what to leave out and k go in, items and scores come out."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaa._io import write_into
from dpaa.exporting.vectors import ExportedVectors
from dpaa.serving.options import needed

OPSET, IR_VERSION = 17, 8
"""Old enough for every runtime of the last years."""
LARGEST = 1_500_000_000
"""Bytes of tables above which they lie in a file beside the model: a protocol buffer ends at 2 GB."""
FILE, DATA = "model.onnx", "model.onnx.data"


def write_onnx(vectors: ExportedVectors, folder: Path, kind: str) -> dict[str, Any]:
    """`model.onnx`, and for large tables `model.onnx.data`."""
    del kind
    onnx = needed("onnx", "an export to onnx", "onnx")
    blocks = list(vectors.user_blocks())
    tables = {
        "users": np.concatenate([block.vectors for block in blocks]),
        "turn": np.concatenate([block.turn for block in blocks])[:, None],
        "shift": np.concatenate([block.shift for block in blocks])[:, None],
        "items": np.ascontiguousarray(vectors.items.T),
        "popularity_mean": vectors.mean[-1:],
        "least": np.array([-np.inf], dtype=np.float32),
        "first": np.array([0], dtype=np.int64),
        "end": np.array([len(vectors.items)], dtype=np.int64),
        "columns": np.array([1], dtype=np.int64),
    }
    model = _model(onnx, tables)
    onnx.checker.check_model(model)
    apart = sum(table.nbytes for table in tables.values()) > LARGEST
    if apart:
        path = folder / FILE
        onnx.save(model, str(path), save_as_external_data=True, all_tensors_to_one_file=True, location=DATA)
    else:
        write_into(folder, FILE, partial(_save, onnx, model))
    return {"opset": OPSET, "padding": len(vectors.items)}


def _save(onnx: Any, model: Any, file: Path) -> None:
    onnx.save(model, str(file))


def _model(onnx: Any, tables: dict[str, NDArray[Any]]) -> Any:
    make, number = onnx.helper, onnx.TensorProto
    nodes = [
        make.make_node("Gather", ["users", "user"], ["vector"]),
        make.make_node("Gather", ["turn", "user"], ["own_turn"]),
        make.make_node("Gather", ["shift", "user"], ["own_shift"]),
        make.make_node("Mul", ["own_turn", "kappa"], ["coordinate"]),
        make.make_node("Concat", ["vector", "coordinate"], ["query"], axis=1),
        make.make_node("MatMul", ["query", "items"], ["product"]),
        make.make_node("Mul", ["coordinate", "popularity_mean"], ["popular_shift"]),
        make.make_node("Add", ["own_shift", "popular_shift"], ["whole_shift"]),
        make.make_node("Add", ["product", "whole_shift"], ["every_score"]),
        # One more column, which padding of `exclude` points to.
        make.make_node("Concat", ["every_score", "whole_shift"], ["padded"], axis=1),
        make.make_node("Shape", ["exclude"], ["shape"]),
        make.make_node("Expand", ["least", "shape"], ["hidden"]),
        make.make_node("ScatterElements", ["padded", "exclude", "hidden"], ["masked"], axis=1),
        make.make_node("Slice", ["masked", "first", "end", "columns"], ["allowed"]),
        make.make_node("TopK", ["allowed", "k"], ["score", "item"], axis=1, largest=1, sorted=1),
    ]
    graph = make.make_graph(
        nodes,
        "recommend",
        [
            make.make_tensor_value_info("user", number.INT64, ["users_asked"]),
            make.make_tensor_value_info("kappa", number.FLOAT, [1]),
            make.make_tensor_value_info("exclude", number.INT64, ["users_asked", "excluded"]),
            make.make_tensor_value_info("k", number.INT64, [1]),
        ],
        [
            make.make_tensor_value_info("item", number.INT64, ["users_asked", None]),
            make.make_tensor_value_info("score", number.FLOAT, ["users_asked", None]),
        ],
        [onnx.numpy_helper.from_array(table, name) for name, table in tables.items()],
        doc_string="Rows of users and items are those of users.parquet and items.parquet.",
    )
    return make.make_model(
        graph, opset_imports=[make.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name="dpaa"
    )
