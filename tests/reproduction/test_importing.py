"""Results from elsewhere are taken in whole, or refused in one sentence; tables say where they come from."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpaa._io import MARK
from dpaa.errors import InputError
from dpaa.reproduction.importing import import_results, read_foreign
from dpaa.reproduction.results import ResultStore, RunResult, pack_results
from tests.command import dpaa_ok, run_dpaa
from tests.reproduction.conftest import TINY, places

ORIGIN = "Ann, 3 May 2026, another machine"


@pytest.fixture
def theirs(twice: Path, tmp_path: Path) -> Path:
    """Results of another machine: two trainings of IPS and most-popular, said to be of Yahoo! R3."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    for file in (twice / "results" / "overall").glob("*.json"):
        content = json.loads(file.read_text()) | {"data": "yahoo-r3"}
        (folder / file.name).write_text(json.dumps(content))
    (folder / "README.md").write_text("about")
    return folder


def test_what_is_taken_in_is_kept_with_its_origin_and_shown(theirs: Path, tmp_path: Path) -> None:
    call = ("reproduce", "import", theirs, "--origin", ORIGIN, "--results", tmp_path / "results")
    assert "3 results of yahoo-r3 taken into" in dpaa_ok(*call).err
    assert "0 results of yahoo-r3 taken into" in dpaa_ok(*call, "--pack").err
    store = ResultStore(tmp_path / "results", "overall", RunResult)
    kept = [store.read(key) for key in store.keys]
    assert [one.imported["origin"] for one in kept if one and one.imported] == [ORIGIN] * 3
    before = {file.stem: json.loads(file.read_text())["metrics"] for file in theirs.glob("*.json")}
    assert {key: one.metrics for key, one in zip(store.keys, kept, strict=True) if one} == before
    for name in ("overall", "groups"):  # without any data of one's own
        dpaa_ok("reproduce", name, "--no-figures", *places(tmp_path))
        text = (tmp_path / "out" / f"{name}-quick.md").read_text(encoding="utf-8")
        assert (
            "Yahoo! R3, made elsewhere (D 4, L 1, learning rate 0.001 all along, settings not tuned, 2 seeds)" in text
        )
        assert f"Made elsewhere: {ORIGIN}." in text
        assert "how far each row is from the paper's" in text or name == "groups" or "which convention" in text
        assert "Yahoo! R3 is not shown" not in text
        assert "Coat is not shown" in text


def test_what_a_killed_import_left_goes_with_the_next_one_that_finds_all_there(theirs: Path, tmp_path: Path) -> None:
    import_results([theirs], tmp_path / "results", ORIGIN)
    left = tmp_path / "results" / "overall" / ".dpaa-0123456789ab"
    left.mkdir()
    (left / ".lock").write_bytes(MARK)
    assert import_results([theirs], tmp_path / "results", ORIGIN).new == 0
    assert not left.exists()


def test_packed_files_and_folders_of_kinds_are_taken_in_too(theirs: Path, tmp_path: Path) -> None:
    loose = tmp_path / "made" / "overall"
    loose.mkdir(parents=True)
    for file in theirs.glob("*.json"):
        (loose / file.name).write_bytes(file.read_bytes())
    assert {one.kind for one in read_foreign(tmp_path / "made")} == {"overall"}
    pack_results(tmp_path / "made")
    assert len(read_foreign(tmp_path / "made")) == len(read_foreign(tmp_path / "made" / "overall.parquet")) == 3
    assert import_results([tmp_path / "made"], tmp_path / "results", ORIGIN).new == 3


def changed(**new: Any) -> Callable[[dict[str, Any]], object]:
    return lambda content: content.update(new)


def metric(name: str, value: object, overlap: str = "drop") -> Callable[[dict[str, Any]], object]:
    return lambda content: content["metrics"][overlap].update({name: value})


FAULTS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "a share above 1": (metric("recall@20", 1.5), "metrics.drop.recall@20: 1.5 is not in its range"),
    "a negative number": (metric("arp@20", -1.0), "arp@20: -1.0 is not in its range"),
    "NaN": (metric("coverage@20", float("nan")), "NaN is no number"),
    "infinity": (metric("arp@20", float("inf")), "Infinity is no number"),
    "no number where one must be": (metric("recall@20", None), "metrics.drop.recall@20: there is no number"),
    "text for a number": (metric("ndcg@20", "0.1"), "metrics.drop.ndcg@20"),
    "a metric nobody knows": (metric("luck@20", 0.5), "there is no such metric"),
    "a method nobody knows": (changed(method="magic"), "magic"),
    "a dataset nobody knows": (changed(data="../../etc"), "data: '../../etc'"),
    "a protocol nobody knows": (changed(protocol="mine"), "protocol: 'mine'"),
    "another label": (changed(label="lightgcn"), "label: 'lightgcn' is no row of method ips"),
    "a setting out of bounds": (lambda one: one["settings"].update(l2=-1.0), "l2"),
    "an unknown setting": (lambda one: one["settings"].update(magic=1), "no setting 'magic'"),
    "another seed than its settings'": (changed(seed=7), "settings.seed"),
    "settings that do not give its name": (lambda one: one["settings"].update(l2=0.5), "has the name ips-"),
    "another fingerprint": (lambda one: one["details"].update(fingerprint="0" * 64), "has the name ips-"),
    "no fingerprint": (lambda one: one["details"].update(fingerprint="../x"), "fingerprint"),
    "details nobody knows": (lambda one: one["details"].update(note="x"), "note"),
    "a further key": (changed(extra=1), "extra"),
    "a convention too few": (lambda one: one["metrics"].pop("keep"), "metrics: of"),
    "no metrics at all": (changed(metrics={}), "there are none"),
    "letters that move a terminal": (lambda one: one["details"].update(dataset="\x1b[2J"), "text that no result"),
    "an origin of its own": (changed(imported={"origin": "trust me"}), "imported"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_wrong_is_refused_and_nothing_is_kept(theirs: Path, tmp_path: Path, fault: str) -> None:
    spoil, told = FAULTS[fault]
    file = max(theirs.glob("ips-*.json"))
    content = json.loads(file.read_text())
    spoil(content)
    file.write_text(json.dumps(content))
    with pytest.raises(InputError) as refused:
        import_results([theirs], tmp_path / "results", ORIGIN)
    assert told in str(refused.value)
    assert file.name in str(refused.value)
    assert not (tmp_path / "results").exists(), "the sound ones neither"


def test_a_renamed_result_is_refused(theirs: Path, tmp_path: Path) -> None:
    one, other = sorted(theirs.glob("ips-*.json"))
    other.write_bytes(one.read_bytes())
    with pytest.raises(InputError, match="name or content was changed"):
        import_results([theirs], tmp_path / "results", ORIGIN)


def test_another_result_of_the_same_training_is_refused(theirs: Path, tmp_path: Path) -> None:
    import_results([theirs], tmp_path / "results", ORIGIN)
    file = min(theirs.glob("ips-*.json"))
    content = json.loads(file.read_text())
    content["metrics"]["drop"]["recall@20"] = 0.123
    file.write_text(json.dumps(content))
    with pytest.raises(InputError, match="has another result of the same training"):
        import_results([theirs], tmp_path / "results", ORIGIN)


@pytest.mark.parametrize("origin", ["", " ", "a\nb", "x" * 301, "\x1b[2J"])
def test_an_origin_is_one_line_of_words(theirs: Path, tmp_path: Path, origin: str) -> None:
    with pytest.raises(InputError, match="--origin must say in one line"):
        import_results([theirs], tmp_path / "results", origin)


def test_what_is_no_result_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("[" * 5000)
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "other.parquet").write_bytes(b"PAR1")
    (tmp_path / "notes.txt").write_text("hello")
    told_of = {"x.json": "nested too deep", "list.json": "no JSON object", "other.parquet": "packed results"}
    for name, told in (told_of | {"notes.txt": "neither a result", "none": "none"}).items():
        with pytest.raises(InputError, match=told):
            import_results([tmp_path / name], tmp_path / "results", ORIGIN)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="holds no results"):
        import_results([tmp_path / "empty"], tmp_path / "results", ORIGIN)


def test_files_and_an_origin_are_for_an_import_alone(files: Path, theirs: Path, tmp_path: Path) -> None:
    said = run_dpaa("reproduce", "overall", theirs, "--coat", files / "coat", *TINY, *places(tmp_path))
    assert said.code == 2
    assert "takes no files and no --origin" in said.err
    for words in ((theirs,), ("--origin", ORIGIN)):
        said = run_dpaa("reproduce", "import", *words, "--results", tmp_path / "results")
        assert said.code == 2
        assert "where it comes from" in said.err
