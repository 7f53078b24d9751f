"""The field's table: what is held out, what is refitted, what is kept, and the committed results."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaa import Dataset, InputError
from dpaa.methods import Method, find_method
from dpaa.reproduction import _field as field
from dpaa.runs.fit import Callbacks
from tests.command import dpaa_ok, run_dpaa

ROOT = Path(__file__).parents[2]
SMALL = {"embedding_size": 8, "layers": 1, "epochs": 4, "threads": 1}
ROWS = [
    field.FieldRow(data="toy", row="popular", method="most-popular", published={"recall@20": 0.5}),
    field.FieldRow(data="toy", row="plain", method="lightgcn", hyperparameters=SMALL, published={"recall@20": 1e-3}),
]


@pytest.fixture
def benchmarks(tmp_path: Path) -> Path:
    """A split in list form: forty users, fifty items."""
    rng, folder = np.random.default_rng(0), tmp_path / "benchmarks" / "toy"
    folder.mkdir(parents=True)
    lines = {"train.txt": [], "test.txt": []}  # type: dict[str, list[str]]
    for user in range(40):
        items = rng.permutation(50)[:16]
        lines["train.txt"].append(" ".join(map(str, [user, *items[:12]])))
        lines["test.txt"].append(" ".join(map(str, [user, *items[12:]])))
    for file, content in lines.items():
        (folder / file).write_text("\n".join(content) + "\n")
    return tmp_path / "benchmarks"


def test_epochs_are_chosen_on_held_out_pairs_and_the_model_is_fitted_on_all(benchmarks: Path, tmp_path: Path) -> None:
    sizes: list[tuple[int, int]] = []

    def start(method: Method, _notes: list[str]) -> None:
        sizes.append((method.graph.n_edges, method.get_params()["epochs"]))

    callbacks = Callbacks(on_start=start)
    file, work = tmp_path / "field.jsonl", tmp_path / "work"
    made = list(field.run_field(benchmarks, file, work, ROWS[1:], callbacks))
    (one,) = made
    assert [epochs for _, epochs in sizes] == [4, one.chosen_epoch]
    assert 420 <= sizes[0][0] <= 444 < sizes[1][0] == 480, "a tenth is held out, then all pairs are used"
    assert one.refit
    assert one.hyperparameters["epochs"] == one.chosen_epoch
    assert not list(field.run_field(benchmarks, file, work, ROWS[1:], callbacks)), "measured once"
    assert field.read_results(file) == {("toy", "plain"): one}


def test_a_row_is_tested_as_its_authors_do(benchmarks: Path, tmp_path: Path) -> None:
    """Without a second fit, and with held-out pairs of each item."""
    seen = list[tuple[int, int, int]]()

    def start(method: Method, _notes: list[str]) -> None:
        seen.append((method.graph.n_users, method.graph.n_items, method.graph.n_edges))

    for name, how in {"first": {"refit": False}, "balanced": {"held_out_per_item": 2}}.items():
        rows = [ROWS[1].model_copy(update=how)]
        (one,) = field.run_field(
            benchmarks, tmp_path / f"{name}.jsonl", tmp_path / name, rows, Callbacks(on_start=start)
        )
        assert one.refit == (name != "first")
        assert one.hyperparameters["epochs"] == one.chosen_epoch
    first, balanced, again = seen
    assert 420 <= first[2] <= 444
    assert balanced[:2] == (40, 50)
    assert 380 <= balanced[2] <= 400, "two of each of fifty items, but for those that are a user's last"
    assert again[2] == 480


def test_a_stopped_training_is_resumed(benchmarks: Path, tmp_path: Path) -> None:
    file, epochs = tmp_path / "field.jsonl", list[int]()

    def stop(report: object) -> None:
        epochs.append(report.epoch)  # type: ignore[attr-defined]
        if len(epochs) == 2:
            raise KeyboardInterrupt

    whole = next(field.run_field(benchmarks, tmp_path / "whole.jsonl", tmp_path / "other", ROWS[1:], Callbacks()))
    with pytest.raises(KeyboardInterrupt):
        list(
            field.run_field(
                benchmarks, file, tmp_path / "work", ROWS[1:], Callbacks(on_epoch=stop, checkpoint_seconds=0)
            )
        )
    (one,) = field.run_field(benchmarks, file, tmp_path / "work", ROWS[1:], Callbacks())
    assert one.metrics == whole.metrics


def test_the_table_counts_rows_near_their_published_number(benchmarks: Path, tmp_path: Path) -> None:
    file = tmp_path / "field.jsonl"
    made = {(one.data, one.row): one for one in field.run_field(benchmarks, file, tmp_path / "work", ROWS, Callbacks())}
    near = field.differences(ROWS, made)
    recall = made["toy", "popular"].metrics["recall@20"]
    assert near["toy", "popular"] == pytest.approx(recall / 0.5 - 1)
    assert field.count_in_words(ROWS, made).startswith("2 of 2 rows with a published recall@20 are measured: ")
    assert field.field_chapter(ROWS, {}).missing == ["not measured on toy yet: popular, plain"]


def test_every_row_can_be_configured() -> None:
    for row in field.FIELD:
        find_method(row.method)(**row.hyperparameters)
    assert field.preset("LightGCN@gowalla")[0] == "lightgcn"
    with pytest.raises(InputError, match="there is no preset 'x'; use one of MostPopular@gowalla"):
        field.preset("x")


def test_a_run_with_the_authors_hyperparameters(small_world: Dataset, tmp_path: Path) -> None:
    small_world.write(tmp_path / "data")
    short = [word for name, value in SMALL.items() for word in ("--set", f"{name}={value}")]
    dpaa_ok("train", tmp_path / "data", "--method", "lightgcn-sl@gowalla", *short, "--out", tmp_path / "run")
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert (config["method"], config["temperature"], config["epochs"]) == ("ssm", 0.12, 4)


def test_mistakes(tmp_path: Path, benchmarks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for call, sentence in (
        (("--data", f"benchmarks={tmp_path}"), "has none of gowalla"),
        (("--method", "nothing"), "no row of the table has nothing"),
    ):
        refused = run_dpaa("reproduce", "field", *call)
        assert refused.code == 2
        assert sentence in refused.err
    refused = run_dpaa("reproduce", "hyperparameters")
    assert "there is no data to run on" in refused.err, "a table of the paper"
    said = dpaa_ok("reproduce", "field", "--method", "ease@health")  # as `dpaa train --method` takes it
    assert "not measured on health yet: EASE" in said.err
    assert "gowalla" not in said.out
    assert "row  recall@20" not in said.out, "no table without rows"
    (benchmarks / "toy" / "test.txt").unlink()
    with pytest.raises(InputError, match=r"has no test.txt"):
        list(field.run_field(benchmarks, tmp_path / "x.jsonl", tmp_path / "w", ROWS, Callbacks()))
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "field.jsonl").write_text("{}\n")
    assert "is not a file of results" in run_dpaa("reproduce", "field").err


def wide(results: dict[tuple[str, str], Any]) -> str:
    """Ours / published recall@20, a row per method and a column per split; in bold what is more than 2% away."""
    sets = list(dict.fromkeys(row.data for row in field.FIELD))
    cells, far = dict[tuple[str, str], str](), field.differences(field.FIELD, results)
    for row in field.FIELD:
        one, known = results.get((row.data, row.row)), row.published.get("recall@20")
        ours = "–" if one is None else f"{one.metrics['recall@20']:.4f}"
        ours = f"**{ours}**" if abs(far.get((row.data, row.row), 0)) > field.WITHIN[0] else ours
        cells[row.row, row.data] = f"{ours} / {known:.4f}" if known else "" if one is None else ours
    names = [name for name in dict.fromkeys(row.row for row in field.FIELD) if any(cells.get((name, s)) for s in sets)]
    lines = [
        ["", *sets],
        ["---"] * (len(sets) + 1),
        *([name, *(cells.get((name, s), "") for s in sets)] for name in names),
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def test_committed_results_are_those_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = ROOT / "results" / "field.jsonl"
    if not file.exists():
        pytest.skip("no results are committed in this copy")
    results = field.read_results(file)
    assert set(results) <= {(row.data, row.row) for row in field.FIELD}
    rows = {(row.data, row.row): row for row in field.FIELD}
    assert all(one.refit == rows[key].refit for key, one in results.items())
    assert all(one.commit and (one.chosen_epoch or 1) >= 1 for one in results.values())
    monkeypatch.chdir(tmp_path)
    shown = json.loads(dpaa_ok("reproduce", "field", "--results", file.parent, "--out", "out", "--json").out)
    table = {(one["row"], one["column"]): one["mean"] for one in shown["gowalla"]}
    assert table["GF-CF", "recall@20"] == results["gowalla", "GF-CF"].metrics["recall@20"]
    page = (ROOT / "docs" / "results" / "field.csv").read_text(encoding="utf-8")
    assert (tmp_path / "out" / "field.csv").read_text(encoding="utf-8") == page
    home = ROOT / "docs" / "field.md"
    before, rest = home.read_text(encoding="utf-8").split("<!-- field -->\n")
    table, after = rest.split("<!-- end -->")
    if os.environ.get("DPAA_WRITE_DOCS"):
        table = wide(results)
        home.write_text(f"{before}<!-- field -->\n{table}<!-- end -->{after}", encoding="utf-8")
    assert table == wide(results), "run `DPAA_WRITE_DOCS=1 pytest tests/reproduction/test_field.py`"
    counted = field.count_in_words(field.FIELD, results)
    assert counted in after, "the page counts the rows, too"
    far = [abs(one) for one in field.differences(field.FIELD, results).values()]
    assert f"{sum(one <= field.WITHIN[0] for one in far)} within 2%" in counted
