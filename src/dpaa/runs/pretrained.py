"""Where the pre-trained vectors come from: a run, anybody's embeddings, or a LightGCN trained first and kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from dpaa._io import check_regular, check_within, locked
from dpaa.data.dataset import Dataset
from dpaa.data.ids import encode, is_text
from dpaa.data.inputs import open_table
from dpaa.data.parquet import parquet_schema, read_parquet
from dpaa.errors import InputError, reason
from dpaa.methods import find_method
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.pretrained import PRETRAINED, Pretrained
from dpaa.runs.folder import MANIFEST, RunFolder
from dpaa.runs.model import Model, load, make_method

ID = "id"
REMEDY = "give a run folder, USERS,ITEMS (two Parquet or CSV files with id, v0, v1 …) or a safetensors file"


def read_pretrained(place: str | Path, data: Dataset, n_layers: int) -> Pretrained:
    """Vectors for every user and item of the dataset, from a run folder or from files of embeddings."""
    text = str(place)
    if "," in text:
        users, _, items = text.partition(",")
        tables = [
            _vectors(Path(users.strip()), data.user_ids, "user"),
            _vectors(Path(items.strip()), data.item_ids, "item"),
        ]
        if tables[0].shape[1] != tables[1].shape[1]:
            raise InputError(
                f"{users} has {tables[0].shape[1]} columns v0 …, {items} has {tables[1].shape[1]}; give one width"
            )
        return Pretrained(torch.cat(tables), origin={"embeddings": text})
    path = Path(place)
    if path.is_dir():
        return _from_run(RunFolder(path), data, n_layers)
    if path.suffix == ".safetensors":
        return Pretrained(_from_safetensors(path, data), origin={"embeddings": str(path.resolve())})
    raise InputError(f"--pretrained {place} is neither a run folder nor a pair of files; {REMEDY}")


def train_or_reuse(
    data: Dataset,
    settings: GraphMethod,
    n_layers: int,
    beside: Path | None,
    train: Callable[[Path | None, GraphMethod], Model],
    before: Model | None = None,
) -> Pretrained:
    """LightGCN on the same data, seed and settings; kept beside the run and taken up again by later runs.

    `before`: what its training starts from.
    """
    shared = {name: getattr(settings, name) for name in find_method(PRETRAINED).hyperparameters.model_fields}
    first, relevant = PRETRAINED, {name: shared[name] for name in shared if name not in ("threads", "device")}
    version = find_method(first).version
    made_from: list[Any] = [data.fingerprint, relevant, *([] if before is None else [before.vectors_digest])]
    made_from += [version] if version > 1 else []  # of before there was another
    key = hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()[:12]
    if beside is None:
        model = train(None, _graph_method(make_method(data, first, shared)))
        return Pretrained.of(_graph_method(model.method), n_layers, {"method": first})
    folder = check_within(beside / f"pretrained-{first}-{key}", beside)
    hold = beside / f".{folder.name}.turn"
    with locked(hold, wait=True):  # another process may be at the same work: then its result is ours
        if (folder / MANIFEST).exists():
            RunFolder(folder).tidy()
        else:
            train(folder, _graph_method(make_method(data, first, shared)))
    return _from_run(RunFolder(folder), data, n_layers)


def _graph_method(method: object) -> GraphMethod:
    assert isinstance(method, GraphMethod)
    return method


def _from_run(run: RunFolder, data: Dataset, n_layers: int) -> Pretrained:
    model = load(run.path)
    origin: dict[str, Any] = {
        "run": str(run.path.resolve()),
        "method": model.method.name,
        "fingerprint": model.trained_on.fingerprint,
    }
    if model.method.name == PRETRAINED and origin["fingerprint"] == data.fingerprint:
        return Pretrained.of(_graph_method(model.method), n_layers, origin)
    if not isinstance(model.method, GraphMethod):
        raise InputError(f"{run.path} is a run of {model.method.name}, which has no embeddings; {REMEDY}")
    users = _aligned(model.method.user_embedding, model.user_ids, data.user_ids, str(run.path), "user")
    items = _aligned(model.method.item_embedding, model.item_ids, data.item_ids, str(run.path), "item")
    return Pretrained(torch.cat([users, items]), origin=origin)


def _vectors(file: Path, wanted: pl.Series, what: str) -> Tensor:
    """A table `id, v0 … vD−1` in the order of the dataset's ids.  (len(wanted), D)."""
    try:
        if file.suffix.lower() == ".parquet":
            table = read_parquet(file, list(parquet_schema(file)))
        else:
            text = open_table(file, "csv")
            table = text.read(text.columns)
            table = table.with_columns(pl.exclude(ID).cast(pl.Float64, strict=False))
    except FileNotFoundError:
        raise InputError(f"there is no file {file}; {REMEDY}") from None
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f"{file} is not a readable table ({reason(error)}); {REMEDY}") from None
    columns = [f"v{number}" for number in range(len(table.columns) - 1)]
    if set(table.columns) != {ID, *columns} or not columns:
        raise InputError(
            f"{file} must have the columns id, v0, v1 …, but has {', '.join(table.columns[:6])}; rename them"
        )
    for column in columns:
        if (
            not table[column].dtype.is_numeric()
            or table[column].has_nulls()
            or not table[column].cast(pl.Float64).is_finite().all()
        ):
            raise InputError(f"column {column!r} of {file} is not all numbers; correct it")
    ids = table[ID]
    if not is_text(wanted):
        ids = ids.cast(wanted.dtype, strict=False)
    elif not is_text(ids):
        ids = ids.cast(pl.String)
    keep = ids.is_not_null() & ids.is_first_distinct()
    order = ids.filter(keep).arg_sort()
    vectors = table.select(columns).cast(pl.Float32).filter(keep)[order].to_numpy(writable=True)
    return _aligned(torch.from_numpy(vectors), ids.filter(keep).gather(order), wanted, str(file), what)


def _from_safetensors(file: Path, data: Dataset) -> Tensor:
    """`user_embedding` and `item_embedding`, rows in ascending order of the dataset's ids."""
    tables = []
    check_regular(file)
    try:
        with safe_open(file, framework="pt") as opened:
            for name, ids in (("user_embedding", data.user_ids), ("item_embedding", data.item_ids)):
                if name not in opened.keys():  # noqa: SIM118  # not a dict
                    raise InputError(f"{file} lacks the tensor {name!r}; {REMEDY}")
                shape = opened.get_slice(name).get_shape()
                if len(shape) != 2 or shape[0] != len(ids):
                    raise InputError(
                        f"{file}: {name!r} has shape {tuple(shape)}, the dataset needs {len(ids):,} rows "
                        "(one per id, ascending)"
                    )
                tables.append(opened.get_tensor(name).float())
                if not tables[-1].isfinite().all():
                    raise InputError(f"{file}: {name!r} holds values that are not numbers; correct them")
    except (SafetensorError, OSError) as error:
        raise InputError(f"{file} is not a readable safetensors file ({reason(error)}); {REMEDY}") from None
    if tables[0].shape[1] != tables[1].shape[1]:
        raise InputError(f"{file}: user and item embeddings have different widths; give one width")
    return torch.cat(tables)


def _aligned(vectors: Tensor, ids: pl.Series, wanted: pl.Series, place: str, what: str) -> Tensor:
    """Rows in the order of `wanted`; missing ids are an error that names some.  `ids` are ascending."""
    index = encode(wanted, ids)
    if (index < 0).any():
        missing = wanted.filter(pl.Series(index < 0))
        some = ", ".join(repr(value) for value in missing.head(3))
        more = ", …" if len(missing) > 3 else ""
        raise InputError(
            f"{place} has no vector for {len(missing):,} of the {len(wanted):,} {what} ids of the dataset "
            f"({some}{more}); add them or train on the data it covers"
        )
    return vectors[torch.from_numpy(index.astype("int64"))]
