from __future__ import annotations

from pathlib import Path

from dpaa.report.inputs import gather
from dpaa.report.sections import provenance
from dpaa.ranking import Dial
from tests.command import dpaa_ok
from tests.report.made import add_run, made_family, made_inputs
from tests.report.reader import Reader


def test_commands_make_the_run_again(demo_folder: Path, tmp_path: Path) -> None:
    (family,) = gather([demo_folder / "runs" / "lightgcn"]).families
    train = provenance.train_command(family.runs[0])
    assert provenance.evaluate_command(family.runs[0]) == (
        f"dpaa evaluate {demo_folder / 'runs' / 'lightgcn'} --k 20 --overlap drop"
    )
    again = train.replace(str(demo_folder / "runs" / "lightgcn"), str(tmp_path / "again"))
    dpaa_ok(*again.split()[1:])
    for name in ("config.json", "model.safetensors"):
        assert (tmp_path / "again" / name).read_bytes() == (demo_folder / "runs" / "lightgcn" / name).read_bytes()


def test_commands_name_what_differs_from_the_defaults() -> None:
    family = made_family()
    manifest = {"dataset": {"path": "my data"}, "pretrained": {"run": "runs/plain"}, "dial": {"chosen_for": "niche:5"}}
    protocol = {"k": [5, 10], "overlap": "mask", "mask_valid": True, "popularity_dial": -0.5}
    run = add_run(family, "a run", "lightgcn", manifest=manifest, metrics={}, **protocol)
    assert provenance.train_command(run) == (
        "dpaa train 'my data' --method lightgcn --set embedding_size=2 --set layers=1 --set epochs=1 --set threads=1 "
        "--seed 0 --pretrained runs/plain --out 'a run'"
    )
    assert provenance.evaluate_command(run) == (
        "dpaa evaluate 'a run' --k 5 --k 10 --overlap mask --dial-objective niche:5 --popularity-dial -0.5 --mask-valid"
    )


def test_commands_name_the_reranker_where_it_is_told() -> None:
    kept = {"rerank": Dial(kappa=1.0).as_json()}
    same = add_run(made_family(), "same", manifest=kept, metrics={}, rerank="dial,kappa=1.0")
    without = add_run(made_family(), "without", manifest=kept, metrics={})
    other = add_run(made_family(), "other", manifest=kept, metrics={}, rerank="dial,kappa=2.0")
    assert " --rerank dial,kappa=1.0 --out same" in provenance.train_command(same)
    assert provenance.evaluate_command(same) == "dpaa evaluate same --k 2 --overlap drop"
    assert provenance.evaluate_command(without).endswith(" --rerank none")
    assert provenance.evaluate_command(other).endswith(" --rerank dial,kappa=2.0")


def test_a_run_that_was_not_evaluated_has_one_command() -> None:
    family = made_family()
    add_run(family, "new", manifest={"dataset": {"path": None}, "seed": None, "seconds": "long", "finished": None})
    page = Reader(str(provenance.section(made_inputs(family)).content))
    assert [tag.text for tag in page.named("code")] == ["dpaa train DATASET --method ease --seed 0 --out new"]
    cells = [tag.text for tag in page.named("td")]
    assert cells[:5] == ["ease", "–", "–", "–", "–"]


def test_settings_are_written_as_train_reads_them() -> None:
    assert [provenance._written(value) for value in (True, False, 0.001, "auto")] == ["true", "false", "0.001", "auto"]
