from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from dpaa import MACR, LightGCN
from dpaa.errors import DivergedError, InputError
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods.base import attach
from dpaa.methods.graph_method import PAPER_TRAINING
from dpaa.methods.tables import Batch, Rows, Tables
from dpaa.training._checkpoint import CheckpointFolder
from dpaa.training._state import Callbacks, EarlyStopping, Progress
from dpaa.training.trainer import EpochReport, Interrupted, TiledAdam, Trainer, learning_rate_at
from tests.conftest import random_pairs
from tests.methods.tools import some_graph, started

SMALL: dict[str, object] = {"embedding_size": 40, "layers": 2, "batch_size": 32, "epochs": 6, "seed": 5}


def method_of(**settings: object) -> LightGCN:
    """Trained as the paper does, where nothing else is said: every epoch counts."""
    graph = BipartiteGraph.from_pairs(random_pairs(np.random.default_rng(1), 40, 30, 0.15), 40, 30)
    made: LightGCN = attach(LightGCN(**(SMALL | PAPER_TRAINING | settings)), graph)
    return made


def scripted(values: list[float]) -> Callable[[LightGCN], dict[str, float]]:
    left = iter(values)
    return lambda _: {"recall@20": next(left)}


def test_the_best_epoch_is_restored() -> None:
    short = method_of(epochs=2)
    Trainer(short).run()
    long = method_of(epochs=6)
    found = Trainer(long, validate=scripted([0.1, 0.5, 0.4, 0.5, 0.2, 0.1])).run()
    assert found.epoch == 2
    assert torch.equal(long.tables.ego.rows(), short.tables.ego.rows())
    assert torch.equal(long.user_embedding, short.user_embedding)


def as_the_paper_trains(
    method: LightGCN, validate: Callable[[LightGCN], dict[str, float]], patience: int
) -> list[float]:
    """The loop without a trainer: a constant rate, validation after every epoch, the single best epoch."""
    Tables.start(method)
    adam, best, values, best_table = TiledAdam(method.tables), 0, [], method.tables.ego.rows()
    while len(values) < method.epochs and len(values) - best < patience:
        for batch in method.batches(len(values) + 1):
            rows = method.tables.forward(batch)
            method.loss(batch, rows).backward()
            adam.step(rows, 1e-3)
        method.tables.update_embeddings()
        values.append(validate(method)["recall@20"])
        if values[-1] > max(values[:-1], default=-1.0):
            best, best_table = len(values), method.tables.ego.rows().clone()
    method.tables.restore({"ego": best_table})
    return values


def test_the_papers_protocol_is_its_loop_bit_for_bit() -> None:
    plain, trained = method_of(epochs=12), method_of(epochs=12, patience=3)
    reports: list[EpochReport] = []
    Trainer(trained, validate=hash_validate, callbacks=Callbacks(on_epoch=reports.append)).run()
    values = as_the_paper_trains(plain, hash_validate, patience=3)
    assert [report.valid["recall@20"] for report in reports] == values
    assert 3 < len(values) < 12, "patience has ended it"
    assert torch.equal(plain.tables.ego.rows(), trained.tables.ego.rows())
    assert (PAPER_TRAINING["learning_rate"], PAPER_TRAINING["patience"]) == (1e-3, 50)


def test_the_learning_rate_rises_step_by_step_and_is_told() -> None:
    """With the first of 5 steps an epoch at a fifth of the rate, and so on, against Adam called by hand."""
    warmed, by_hand = method_of(epochs=2, warmup_steps=8), method_of()
    reports: list[EpochReport] = []
    Trainer(warmed, callbacks=Callbacks(on_epoch=reports.append)).run()
    Tables.start(by_hand)
    adam = TiledAdam(by_hand.tables)
    rates = [1e-3 * step / 8 for step in range(1, 9)] + [1e-3, 1e-3]
    for batch, rate in zip([*by_hand.batches(1), *by_hand.batches(2)], rates, strict=True):
        rows = by_hand.tables.forward(batch)
        by_hand.loss(batch, rows).backward()
        adam.step(rows, rate)
    assert torch.equal(warmed.tables.ego.rows(), by_hand.tables.ego.rows())
    assert [report.line()["learning_rate"] for report in reports] == [1e-3 * 5 / 8, 1e-3]


def test_validation_waits_for_its_steps_but_not_in_the_first_and_last_epoch() -> None:
    reports: list[EpochReport] = []
    method = method_of(epochs=9, validation_steps=11)  # of 5 steps an epoch: after epochs 1, 4, 7, and 9
    found = Trainer(
        method, validate=scripted([0.1, 0.3, 0.2, 0.25]), callbacks=Callbacks(on_epoch=reports.append)
    ).run()
    assert [report.epoch for report in reports if report.valid] == [1, 4, 7, 9]
    assert (found.epoch, found.step, found.value) == (4, 20, 0.3)


def test_same_seed_same_bits_whatever_the_threads() -> None:
    found = []
    for threads in (1, 2):
        method = method_of(threads=threads)
        Trainer(method).run()
        found.append(method.user_embedding)
    assert torch.equal(*found)
    other = method_of(seed=6)
    Trainer(other).run()
    assert not torch.equal(found[0], other.user_embedding)


def hash_validate(method: LightGCN) -> dict[str, float]:
    """A number that depends on every bit of the tables, so that a wrong resume picks another best epoch."""
    return {"recall@20": float(method.user_embedding.abs().sum() % 1e-3)}


CHANGING: dict[str, object] = {"learning_rate_schedule": "inverse-sqrt", "warmup_steps": 8, "validation_steps": 8}
"""So that any step of the test's 30 is in the middle of something: another rate, an epoch without validation."""


@pytest.mark.parametrize(("stop_after", "settings"), [(1, {}), (5, {}), (13, {}), (4, CHANGING), (9, CHANGING)])
def test_resumed_is_uninterrupted_bit_for_bit(stop_after: int, settings: dict[str, object], tmp_path: Path) -> None:
    whole: list[EpochReport] = []
    straight = method_of(**settings)
    expected = Trainer(straight, validate=hash_validate, callbacks=Callbacks(on_epoch=whole.append)).run()
    folder = CheckpointFolder(tmp_path / "checkpoint")
    questions = iter(range(1, 99))
    parts: list[EpochReport] = []
    first = Trainer(
        method_of(**settings),
        validate=hash_validate,
        callbacks=Callbacks(on_epoch=parts.append, stop_requested=lambda: next(questions) == stop_after),
        checkpoints=folder,
        identity={"a": 1},
    )
    with pytest.raises(Interrupted):
        first.run()
    checkpoint = folder.load()
    resumed = method_of(**settings)
    how = {"callbacks": Callbacks(on_epoch=parts.append), "checkpoints": folder, "identity": {"a": 1}}
    found = Trainer(resumed, validate=hash_validate, **how).run(checkpoint)
    assert found == expected
    assert torch.equal(resumed.tables.ego.rows(), straight.tables.ego.rows())
    assert [replace(part, seconds=0.0) for part in parts] == [replace(one, seconds=0.0) for one in whole]


def test_a_checkpoint_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path / "checkpoint")
    Trainer(method_of(), checkpoints=folder, callbacks=Callbacks(checkpoint_seconds=0)).run()
    checkpoint = folder.load()
    checkpoint.tensors.pop("adam.mean")
    with pytest.raises(InputError, match=r"the checkpoint does not fit this training .*mean"):
        Trainer(method_of(), checkpoints=folder).run(checkpoint)


@pytest.mark.parametrize(("epochs", "early"), [(3, False), (3, True), (50, True)])
def test_a_loss_far_above_its_start_stops_with_the_remedy(epochs: int, early: bool) -> None:
    validate = (lambda _: {"recall@20": 0.5}) if early else None
    with pytest.raises(DivergedError, match=r"diverged: the loss was .* above the 0\.6\d+ it began with.*1000; train"):
        Trainer(method_of(learning_rate=1e3, epochs=epochs), validate=validate).run()


def test_ten_epochs_above_the_start_end_it_and_nine_do_not() -> None:
    above, below = 3.1 * 0.8, 2.9 * 0.8
    found = Progress(start_loss=0.8)
    for loss in [9.0, *[above] * 9, below, *[above] * 9]:
        found.loss_sum, found.triples = loss, 1
        found = found.next_epoch()
    assert (found.epoch, found.epochs_above, found.lowest_loss) == (21, 9, below)


@pytest.mark.parametrize(
    ("made", "told"),
    [(lambda loss: loss.expand(3), r"a tensor of shape \(3,\)"), (lambda loss: loss.item(), "float")],
)
def test_a_loss_that_is_not_one_number_is_told(made: Callable[[torch.Tensor], object], told: str) -> None:
    class Wrong(LightGCN):
        name = "wrong"

        def loss(self, batch: Batch, rows: Rows) -> torch.Tensor:
            return made(super().loss(batch, rows))  # type: ignore[return-value]

    method = method_of(epochs=1)
    with pytest.raises(InputError, match=f"method wrong must be a tensor of one number, got {told}; return a mean"):
        Trainer(attach(Wrong(**method.get_params()), method.graph)).run()


CHOSEN = {"embedding_size": 40, "layers": 2, "batch_size": 16, "learning_rate": 0.01, "kernel": "bag", "seed": 5}


def steps(method: LightGCN, adam: TiledAdam, epoch: int) -> list[tuple[Tensor, list[Tensor]]]:
    """An epoch; the gradients of every step, in the table and in the parameters."""
    gradients = []
    for batch in method.batches(epoch):
        rows: Rows = method.tables.forward(batch)
        method.loss(batch, rows).backward()
        tiles = [method.tables.tile_gradient(rows, tile).clone() for tile in range(len(method.tables.ego.tiles))]
        own = [parameter.grad.clone() for parameter in method.tables.parameters.values() if parameter.grad is not None]
        gradients.append((torch.cat(tiles, dim=1), own))
        adam.step(rows, 0.01)
    return gradients


def test_initial_deviation() -> None:
    graph, size = some_graph(), CHOSEN["embedding_size"]
    own, half, xavier = (
        started(LightGCN, graph, **CHOSEN, initial_deviation=value).tables for value in (1.0, 0.5, "xavier")
    )
    torch.testing.assert_close(half.ego.rows(), 0.5 * own.ego.rows())
    for drawn, told, n in (
        (xavier.user_ego, own.user_ego, graph.n_users),
        (xavier.item_ego, own.item_ego, graph.n_items),
    ):
        torch.testing.assert_close(drawn, told * (2.0 / (n + size)) ** 0.5)


@pytest.mark.parametrize(("kind", "decay"), [(LightGCN, 0.0), (MACR, 0.0), (MACR, 0.1)])
def test_every_step_is_that_of_torch(kind: type[LightGCN], decay: float) -> None:
    """Two tiles of columns, with and without parameters besides the table."""
    method = started(kind, some_graph(), **CHOSEN, weight_decay=decay)
    assert len(method.tables.ego.tiles) == 2
    twins = [tensor.detach().clone() for tensor in (method.tables.ego.rows(), *method.tables.parameters.values())]
    gradients = steps(method, TiledAdam(method.tables), epoch=1)
    assert len(gradients) > 2
    slow = torch.optim.Adam(twins, lr=0.01, weight_decay=decay)
    for by_table, own in gradients:
        assert len(own) == len(method.tables.parameters)
        for twin, gradient in zip(twins, (by_table, *own), strict=True):
            twin.grad = gradient
        slow.step()
    for found, twin in zip((method.tables.ego.rows(), *method.tables.parameters.values()), twins, strict=True):
        torch.testing.assert_close(found.detach(), twin, rtol=1e-5, atol=1e-6)
    assert all(parameter.grad is None for parameter in method.tables.parameters.values())


def test_patience_counts_from_the_best_epoch_and_a_tie_is_not_better() -> None:
    stopping = EarlyStopping(patience=3)
    values = [0.1, 0.3, 0.3, 0.2, 0.29]
    improved = [stopping.improved(epoch, value) for epoch, value in enumerate(values, 1)]
    assert improved == [True, True, False, False, False]
    assert (stopping.best.epoch, stopping.best.value) == (2, 0.3)
    assert [stopping.exhausted(epoch) for epoch in (3, 4, 5)] == [False, False, True]


def test_steps_must_have_passed_as_well() -> None:
    stopping = EarlyStopping(patience=2, patience_steps=10, minimum_steps=25)
    assert stopping.improved(1, 0.5, step=3)
    assert not stopping.exhausted(5, step=12), "steps since the best"
    assert not stopping.exhausted(5, step=15), "steps in all"
    assert not stopping.exhausted(2, step=99), "epochs"
    assert stopping.exhausted(5, step=25)


def test_auto_steps_grow_as_the_learning_rate_falls() -> None:
    default = EarlyStopping.of(LightGCN())
    assert (default.patience, default.patience_steps, default.minimum_steps) == (50, 1500, 1500)
    fast = EarlyStopping.of(LightGCN(learning_rate=1e-2))
    assert (fast.patience_steps, fast.minimum_steps) == (150, 150)
    set_by_hand = EarlyStopping.of(LightGCN(patience_steps=7, minimum_steps=0))
    assert (set_by_hand.patience_steps, set_by_hand.minimum_steps) == (7, 0)
    assert EarlyStopping.of(LightGCN(**PAPER_TRAINING)) == EarlyStopping(patience=50)


@pytest.mark.parametrize(
    ("given", "rates"),
    [
        ({"warmup_steps": 4}, {1: 0.005, 3: 0.015, 4: 0.02, 5: 0.02, 10_000: 0.02}),
        ({"warmup_steps": 4, "learning_rate_schedule": "inverse-sqrt"}, {1: 0.005, 4: 0.02, 16: 0.01, 400: 0.002}),
        ({"warmup_steps": 0, "learning_rate_schedule": "inverse-sqrt"}, {1: 0.02, 4: 0.01}),
        ({}, {1: 0.02, 50: 0.02, 10_000: 0.02}),
    ],
)
def test_rates_by_hand(given: dict[str, Any], rates: dict[int, float]) -> None:
    configured = LightGCN(learning_rate=0.02, **given)
    assert {step: learning_rate_at(step, configured) for step in rates} == pytest.approx(rates)
