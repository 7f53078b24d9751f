import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from safetensors.torch import load_file, save

from dpaa import Dataset, InputError, evaluate, load
from dpaa.runs import RunFolder, fit_into, make_method
from tests.errors.workshop import edit_json
from tests.runs.conftest import SETTINGS


def test_files_of_a_run(run: Path, small_world: Dataset) -> None:
    assert sorted(file.name for file in run.iterdir()) == [
        "config.json", "edges.parquet", "history.jsonl", "items.parquet", "manifest.json", "model.safetensors",
        "users.parquet",
    ]  # fmt: skip
    config = json.loads((run / "config.json").read_text())
    assert config["method"] == "lightgcn"
    assert config["l2"] == 1e-4
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["dataset"]["fingerprint"] == small_world.fingerprint
    assert manifest["versions"]["torch"] == torch.__version__
    assert manifest["validation"]["overlap"] == "drop"
    assert manifest["compute"]["kernel"] == "bag"
    history = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in history] == [1, 2, 3, 4, 5]
    assert history[0].keys() == {"epoch", "loss", "seconds", "valid"}
    tensors = load_file(run / "model.safetensors")
    assert tensors["user_ego"].shape == (small_world.n_users, 16)
    users, items = pl.read_parquet(run / "users.parquet"), pl.read_parquet(run / "items.parquet")
    assert users["user_id"].equals(small_world.user_ids)
    assert users["count"].sum() == items["count"].sum() == len(small_world.train)
    assert set(items["group"]) == {"popular", "niche"}
    edges = pl.read_parquet(run / "edges.parquet")
    assert edges.columns == ["user_id", "item_id", "weight_0", "weight_1"]
    joined = edges.join(users, on="user_id").join(items, on="item_id")
    expected = (joined["count"] * joined["count_right"]).cast(pl.Float64) ** -0.5
    assert (joined["weight_0"] - expected).abs().max() < 1e-6  # type: ignore[operator]


DAMAGES: list[tuple[str, bytes | dict[str, Any] | None, str]] = [
    ("manifest.json", b"{", r"manifest.json is not readable .*; restore it or train again"),
    ("manifest.json", b"[]", "manifest.json does not hold a JSON object"),
    ("manifest.json", b'{"format": 1, "dataset": {"path": 7}}', r"is damaged \(dataset.path: input"),
    ("manifest.json", b'{"format": 1, "dataset": {}}', r"is damaged \(files: field required\)"),
    ("config.json", b" " * 10_000_001, r"config\.json is larger than 10 MB"),
    ("config.json", None, r"is not a run folder \(it has no config.json\)"),
    ("config.json", {"colour": "red"}, "method lightgcn has no hyperparameter 'colour'"),
    ("config.json", {"method": "magic"}, "there is no method 'magic'"),
    ("config.json", {"embedding_size": 8}, r"tensor 'user_ego' must be F32 \(.*, 8\), but is"),
    ("users.parquet", None, "there is no file .*users.parquet"),
    ("items.parquet", b"x", "items.parquet is not readable"),
    ("model.safetensors", None, "there is no file .*model.safetensors"),
    ("model.safetensors", save({"user_ego": torch.zeros(2, 2)}), "tensor '.*' must be F32"),
]
"""A file, its new content, changed keys, or None where it is gone; what is said then."""


@pytest.mark.parametrize(("name", "content", "sentence"), DAMAGES)
def test_a_damaged_or_foreign_run_is_refused(name: str, content: Any, sentence: str, run: Path, tmp_path: Path) -> None:
    file = Path(shutil.copytree(run, tmp_path / "damaged")) / name
    if content is None:
        file.unlink()
    elif isinstance(content, bytes):
        file.write_bytes(content)
    else:
        edit_json(file, **content)
    with pytest.raises(InputError, match=sentence):
        load(file.parent)


def test_a_replaced_run_has_no_metrics_of_the_old_model(small_world: Dataset, run: Path, tmp_path: Path) -> None:
    folder = RunFolder(shutil.copytree(run, tmp_path / "run"))
    old = load(folder.path)
    found = evaluate(old, small_world)
    fit_into(folder.path, small_world, make_method(small_world, "lightgcn", SETTINGS | {"seed": 9}), overwrite=True)
    with pytest.raises(InputError, match="was replaced while its model was measured; measure the new one"):
        folder.write_dial(old.dial_curve, old)
    folder.write_evaluation(found, old)
    with pytest.raises(InputError, match="was evaluated with another model than the one in this folder"):
        folder.read_evaluation()


LINE: dict[str, Any] = {"epoch": 3, "loss": 0.5, "valid": {"recall@20": 0.25, "ndcg@20": None}}


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (json.dumps(LINE | {"epoch": 2**31}), "epoch: input should be less than"),
        (json.dumps(LINE | {"valid": [1]}), "valid: input should be a valid dictionary"),
        (json.dumps(LINE | {"iiw_by_decile": [1.0] * 9}), "iiw_by_decile: list should have at least 10 items"),
        ('{"epoch": 1, "torn', "Unterminated string"),
        ('{"epoch": 1}', "loss: field required"),
        ('{"epoch": 1, "loss": 1e999, "valid": {}}', "a number that is none, or too large"),
    ],
)
def test_a_wrong_line_of_the_history_is_refused(line: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "history.jsonl").write_text(json.dumps(LINE) + "\n" + line + "\n")
    with pytest.raises(InputError, match=f"history.jsonl is (damaged|not readable) .*{sentence}"):
        RunFolder(tmp_path).history()
