"""DPAA that sets itself: what it decides, told by stages that answer as they are asked to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from dpaa.data.dataset import Dataset
from dpaa.data.prepare import VALIDATION_EXPOSURE
from dpaa.methods.dpaa_auto import FASTEST, DpaaAuto, Part, Verdict, _mean_and_noise, _surely_best
from dpaa.methods.lightgcn import LightGCN
from dpaa.runs.fit import Callbacks, evaluate, fit_method, make_method

QUICK = {"embedding_size": 8, "layers": 2, "epochs": 12, "patience": 50, "threads": 1}


class ScriptedStages:
    """Trains nothing: parts and verdicts come from a script, by label; what was asked for is kept."""

    def __init__(self, data: Dataset, values: dict[str, float], valid: dict[str, float] | None = None) -> None:
        self.data, self.values, self.valid = data, values, valid or {}
        self.asked: list[tuple[str, str, dict[str, Any], str | None]] = []
        self.said: list[str] = []
        self.labels: dict[int, str] = {}

    def train(
        self, label: str, method: str, settings: dict[str, Any], plain: Part | None = None, start: Part | None = None
    ) -> Part:
        begin = start or plain
        self.asked.append((label, method, settings, begin.label if begin else None))
        made = make_method(self.data, "lightgcn", {**QUICK, "seed": len(self.asked)})
        assert isinstance(made, LightGCN)
        made.start()
        made.finish()
        self.labels[id(made)] = label
        epochs = min(40, settings["epochs"]) if begin is None else settings["epochs"]
        return Part(label, made, epochs, made.message_weights(), self.valid.get(label, 0.0))

    def judge(self, method: LightGCN, objective: str) -> Verdict:
        assert objective == "ndcg"
        value = self.values[self.labels[id(method)]]
        return Verdict(value, 10 * value, value + np.array([-0.01, 0.0, 0.01]))

    def exposure_in_words(self) -> str:
        return "validation is as it is"

    def say(self, line: str) -> None:
        self.said.append(line)


def assembled(data: Dataset, stages: ScriptedStages, falls: dict[str, float], **settings: Any) -> Any:
    method = make_method(data, "dpaa-auto", {**QUICK, "epochs": 1000, **settings})
    assert isinstance(method, DpaaAuto)
    method._fall = lambda _plain, source: falls[source]  # type: ignore[method-assign]
    return method, method.assemble(stages)


RACE = {"none": 0.2, "iiw": 0.3, "dpaa": 0.25, "printed": 0.1, "residual": 0.1}


def test_the_winner_of_the_race_is_trained_on_and_its_best_stretch_taken(small_world: Dataset) -> None:
    stretches = {f"stretch-{number}": 0.4 for number in range(1, 11)}
    valid = {"iiw": 0.1, "stretch-1": 0.2, "stretch-2": 0.5, "stretch-3": 0.3}
    stages = ScriptedStages(small_world, {"plain": 0.2} | RACE | stretches, valid)
    method, found = assembled(small_world, stages, {"layer": 0.1, "readout": 0.3})
    assert found["chosen"]["part"] == "stretch-2"
    assert found["chosen"]["settings"]["interaction_strength_from"] == "readout"
    assert found["chosen"]["kappa"] == method.popularity_dial == pytest.approx(4.0)
    # Four stretches without a better one end it: 2 + 4.
    assert [label for label, *_ in stages.asked] == ["plain", *list(RACE)[:4], *list(stretches)[:6]]
    assert [begin for *_, begin in stages.asked] == [None, *["plain"] * 4, "iiw", *list(stretches)[:5]]
    assert stages.said[-1] == f"popularity dial κ = 4 ({DpaaAuto.dial_rule}); validation is as it is"


def test_the_plain_model_is_kept_only_where_validation_is_sure(small_world: Dataset) -> None:
    values = {"plain": 0.9} | RACE | {f"stretch-{number}": 0.2 for number in range(1, 11)}
    _, found = assembled(small_world, ScriptedStages(small_world, values), {"layer": 0.1, "readout": 0.0})
    assert found["chosen"] == {"part": "plain", "settings": {}, "kappa": 9.0}

    class Doubtful(ScriptedStages):
        """Where the plain model is ahead by less than its noise."""

        def judge(self, method: LightGCN, objective: str) -> Verdict:
            verdict = super().judge(method, objective)
            spread = np.array([-1.0, 0.0, 1.0]) * (1 if self.labels[id(method)] == "plain" else -1)
            return Verdict(verdict.value, verdict.kappa, verdict.value + spread)

    _, found = assembled(small_world, Doubtful(small_world, values), {"layer": 0.1, "readout": 0.0})
    assert found["chosen"]["part"] != "plain"


@pytest.mark.parametrize(
    ("falls", "racers"),
    [
        ({"layer": 0.01, "readout": -0.5}, ["none", "residual"]),
        ({"layer": 0.05, "readout": 0.04}, ["none", "iiw", "dpaa", "printed"]),
    ],
)
def test_weights_race_only_where_the_premise_holds(
    small_world: Dataset, falls: dict[str, float], racers: list[str]
) -> None:
    values = {"plain": 0.2} | RACE | {f"stretch-{number}": 0.2 for number in range(1, 11)}
    stages = ScriptedStages(small_world, values)
    assembled(small_world, stages, falls)
    raced = [label for label, _, _, begin in stages.asked if begin == "plain"]
    assert raced == racers
    sources = {settings.get("interaction_strength_from") for _, _, settings, _ in stages.asked}
    assert "readout" not in sources


@pytest.mark.parametrize("budget", [0.5, 1.0, 3.0, 5.0])
def test_the_budget_is_kept(small_world: Dataset, budget: float) -> None:
    values = {"plain": 0.2} | RACE | {f"stretch-{number}": 0.2 for number in range(1, 200)}
    valid = {f"stretch-{number}": float(number) for number in range(1, 200)}
    stages = ScriptedStages(small_world, values, valid)
    _, found = assembled(small_world, stages, {"layer": 0.1, "readout": 0.3}, budget=budget)
    assert found["cost_in_epochs_of_plain"] <= 1 + budget
    assert found["cost_in_epochs_of_plain"] >= 1 + 0.75 * budget
    assert found["limited_by"] == "budget", "the last stretch was the best"


@pytest.mark.parametrize("budget", [0.5, 1.0, 3.0, 100.0])
@pytest.mark.parametrize("holds", [True, False])
@pytest.mark.parametrize("epochs", [1, 2, 3, 4, 5, 6, 7, 11, 25, 60, 160, 1000])
def test_all_parts_together_keep_within_the_epochs(
    small_world: Dataset, epochs: int, holds: bool, budget: float
) -> None:
    stretches = [f"stretch-{number}" for number in range(1, 1001)]
    values = {"plain": 0.2} | RACE | dict.fromkeys(stretches, 0.3)
    valid = {label: float(number) for number, label in enumerate(stretches)}
    stages = ScriptedStages(small_world, values, valid)
    fall = 0.3 if holds else 0.0
    _, found = assembled(small_world, stages, {"layer": fall, "readout": fall}, epochs=epochs, budget=budget)
    trained = sum(part["epochs"] for part in found["parts"])
    assert trained <= epochs
    assert stages.asked[0][2]["epochs"] == int(np.ceil(epochs / (1 + budget)))
    labels = [part["part"] for part in found["parts"]]
    assert [part["from"] for part in found["parts"]][:1] == [None]
    assert all(part["from"] in labels for part in found["parts"][1:])
    rates = {part["part"]: part["learning_rate"] for part in found["parts"]}
    asked = {label: settings["learning_rate"] for label, _, settings, _ in stages.asked}
    assert rates == asked


@pytest.mark.parametrize("epochs", [1, 2, 3, 25])
def test_a_training_of_few_epochs_works_and_obeys(small_world: Dataset, epochs: int) -> None:
    """25 asked were 96 trained."""
    lines: list[object] = []
    method = make_method(small_world, "dpaa-auto", {**QUICK, "epochs": epochs})
    model = fit_method(method, small_world, Callbacks(on_epoch=lines.append))
    assert 1 <= len(lines) <= epochs
    assert model.manifest["training"]["epochs"] == len(lines)
    assert model.recommend(k=5).height == 5 * small_world.n_users
    if epochs == 1:
        assert [part["part"] for part in model.manifest["auto"]["parts"]] == ["plain"]
        assert "no epochs are left for short trainings: the plain model is kept" in model.manifest["auto"]["why"]


def test_what_ended_a_training_that_was_still_getting_better_is_told(small_world: Dataset) -> None:
    stretches = {f"stretch-{number}": 0.4 for number in range(1, 200)}
    values = {"plain": 0.2} | RACE | stretches
    rising = {label: float(number) for number, label in enumerate(stretches)}
    falls = {"layer": 0.1, "readout": 0.3}
    for epochs, valid, limited in ((1000, rising, "budget"), (80, rising, "epochs"), (1000, {"stretch-1": 1.0}, None)):
        stages = ScriptedStages(small_world, values, valid)
        assert assembled(small_world, stages, falls, epochs=epochs)[1]["limited_by"] == limited


def test_nothing_is_sped_up_beyond_the_fastest_rate(small_world: Dataset) -> None:
    for own, expected in ((1e-4, 5e-4), (1e-3, 5e-3), (4e-3, FASTEST), (2e-2, 2e-2)):
        method = make_method(small_world, "dpaa-auto", {**QUICK, "learning_rate": own})
        assert isinstance(method, DpaaAuto)
        assert method._faster(7)["learning_rate"] == pytest.approx(expected)
        assert method._faster(7)["epochs"] == 7


def test_fall_compares_rare_and_popular_items(small_world: Dataset) -> None:
    """Vectors made so that the cosine is 0 on edges of rare items and 1 on those of popular ones: a fall of 100 %."""
    method = make_method(small_world, "dpaa-auto", QUICK)
    plain = make_method(small_world, "lightgcn", {**QUICK, "embedding_size": 2})
    assert isinstance(method, DpaaAuto)
    assert isinstance(plain, LightGCN)
    plain.start()
    plain.finish()
    degree = method.graph.item_degree
    items = torch.zeros(method.graph.n_items, 2)
    items[degree >= degree.median(), 0] = 1.0
    items[degree < degree.median(), 1] = 1.0
    plain.user_embedding, plain.item_embedding = torch.tensor([[1.0, 0.0]]).repeat(method.graph.n_users, 1), items
    assert method._fall(plain, "readout") == pytest.approx(1.0)
    plain.item_embedding = torch.tensor([[1.0, 1.0]]).repeat(method.graph.n_items, 1)
    assert method._fall(plain, "readout") == pytest.approx(0.0, abs=1e-6)


def test_weights_win_the_race_only_beyond_the_noise() -> None:
    def verdict(*values: float) -> Verdict:
        return Verdict(float(np.mean(values)), 0.0, np.array(values))

    assert _surely_best([verdict(0.1, 0.2, 0.3), verdict(0.2, 0.3, 0.45)]) == 1
    assert _surely_best([verdict(0.1, 0.2, 0.3), verdict(0.0, 0.0, 0.7)]) == 0
    assert _surely_best([verdict(0.5, 0.5, 0.5), verdict(0.1, 0.1, 0.1)]) == 0


def test_mean_and_noise() -> None:
    assert _mean_and_noise(np.array([1.0, 2.0, 3.0])) == (2.0, pytest.approx(1 / np.sqrt(3)))
    assert _mean_and_noise(np.zeros(0)) == (0.0, 0.0)


def test_the_dial_stays_at_0_where_validation_is_as_biased_as_the_log(small_world: Dataset) -> None:
    from dataclasses import replace

    biased = replace(small_world, about=small_world.about | {VALIDATION_EXPOSURE: "biased"})
    model = fit_method(make_method(biased, "dpaa-auto", QUICK), biased)
    assert model.manifest["auto"]["chosen"]["kappa"] == model.method.popularity_dial == 0.0
    assert "favours popularity" in model.manifest["auto"]["why"][-1]


def test_a_run_tells_what_was_chosen_and_ranks_by_its_dial(small_world: Dataset) -> None:
    model = fit_method(make_method(small_world, "dpaa-auto", QUICK), small_world)
    assert isinstance(model.method, DpaaAuto)
    assert model.manifest["dial"]["kappa"] == model.method.popularity_dial
    model.manifest["dial"]["kappa"] = 2.0
    turned = evaluate(model, small_world)
    assert turned.metrics == evaluate(model, small_world, popularity_dial=2.0).metrics
    plain = evaluate(model, small_world, popularity_dial=0.0)
    assert turned.metrics["arp@20"] > plain.metrics["arp@20"]
    assert len(model.manifest["auto"]["parts"]) >= 4
    assert model.manifest["training"]["epochs"] == sum(part["epochs"] for part in model.manifest["auto"]["parts"])


def test_a_training_without_validation_pairs_says_so(small_world: Dataset) -> None:
    from dataclasses import replace

    from dpaa.data.pairs import Pairs

    none = np.zeros(0, np.int32)
    blind = replace(small_world, valid=Pairs(none, none))
    model = fit_method(make_method(blind, "dpaa-auto", QUICK), blind)
    assert "there are no validation pairs" in model.manifest["auto"]["why"][-1]
