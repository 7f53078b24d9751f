"""The pages on all methods say what `results/related.parquet` holds (`python scripts/related_study.py --write`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

REASON = "scripts are not part of this copy"


@pytest.fixture(scope="module")
def pages() -> Any:
    return pytest.importorskip("scripts.related.pages", reason=REASON)


@pytest.fixture(scope="module")
def lines(pages: Any) -> Any:
    return pages.read_store()


def test_the_map_of_methods_is_fresh(pages: Any, lines: Any) -> None:
    written = pages.MAP.read_text(encoding="utf-8")
    assert pages.with_map(written, lines) == written


def test_the_tables_are_fresh(pages: Any, lines: Any) -> None:
    told, _, missing = pages.page(lines).partition(pages.MISSING)
    assert missing
    assert pages.PAGE.read_text(encoding="utf-8").startswith(told)


def test_the_curves_are_fresh(lines: Any) -> None:
    curves = pytest.importorskip("scripts.related.curves", reason=REASON)
    assert curves.PAGE.read_text(encoding="utf-8") == curves.page(curves.curves(lines))


def test_a_trial_is_the_same_every_time_and_within_its_space() -> None:
    trainings = pytest.importorskip("scripts.related.trainings", reason=REASON)
    for name in trainings.methods():
        space = trainings.space_of(name)
        drawn = [trainings.trial_settings(name, number) for number in range(1, trainings.TRIALS)]
        assert drawn == [trainings.trial_settings(name, number) for number in range(1, trainings.TRIALS)]
        assert all(value in space[setting] for one in drawn for setting, value in one.items())


def test_whatever_is_in_no_wave_is_not_promised() -> None:
    trainings = pytest.importorskip("scripts.related.trainings", reason=REASON)
    jobs = {job.key for _, wave in trainings.waves() for job in wave}
    for data, seeds in trainings.SEEDS.items():
        for name in trainings.methods():
            assert (data, name, "default", seeds - 1) in jobs
            assert ((data, name, "tuned", seeds - 1) in jobs) == bool(trainings.space_of(name))


def test_a_study_goes_on_from_what_is_committed(pages: Any, tmp_path: Path) -> None:
    trainings = pytest.importorskip("scripts.related.trainings", reason=REASON)
    stored = pages.stored_lines()
    lines = trainings.Lines(tmp_path / "trainings.jsonl")
    for line in stored:
        lines.add(line)
    again = trainings.Lines(tmp_path / "trainings.jsonl")
    for line in stored:
        assert again.of(trainings.Job(line["data"], line["method"], line["kind"], line["seed"])) == line
    done = trainings.Job("coat", "lightgcn", "default", 0)
    assert again.of(done)["recall@20"] > 0
    assert again.seconds(done) > 0
