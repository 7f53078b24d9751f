from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from dpaa.data.dataset import Dataset
from dpaa.errors import DivergedError, InputError
from dpaa.evaluation.evaluator import Evaluator
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods.lightgcn import LightGCN
from dpaa.methods.settings import TrainedSettings
from dpaa.training.checkpoint import Checkpoint, CheckpointFolder
from dpaa.training.early_stopping import EarlyStopping
from dpaa.training.trainer import EpochReport, Interrupted, Progress, Trainer
from tests.conftest import random_pairs


def method_of(**settings: object) -> LightGCN:
    defaults: dict[str, object] = {"embedding_size": 40, "layers": 2, "batch_size": 32, "epochs": 6, "seed": 5}
    graph = BipartiteGraph.from_pairs(random_pairs(np.random.default_rng(1), 40, 30, 0.15), 40, 30)
    return LightGCN(graph, TrainedSettings(**(defaults | settings)))  # type: ignore[arg-type]


def scripted(values: list[float]) -> Callable[[LightGCN], dict[str, float]]:
    left = iter(values)
    return lambda _: {"recall@20": next(left)}


def test_the_best_epoch_is_restored() -> None:
    short = method_of(epochs=2)
    Trainer(short).run()
    long = method_of(epochs=6)
    found = Trainer(long, validate=scripted([0.1, 0.5, 0.4, 0.5, 0.2, 0.1])).run()
    assert found.best_epoch == 2
    assert torch.equal(long.ego.rows(), short.ego.rows())
    assert torch.equal(long.user_embedding, short.user_embedding)


def test_patience_ends_training() -> None:
    reports: list[EpochReport] = []
    method = method_of(epochs=100, patience=3)
    Trainer(method, validate=scripted([0.1, 0.5, 0.4, 0.3, 0.2]), on_epoch=reports.append).run()
    assert [report.epoch for report in reports] == [1, 2, 3, 4, 5]
    assert reports[-1].line().keys() == {"epoch", "loss", "seconds", "valid"}


def test_loss_falls() -> None:
    reports: list[EpochReport] = []
    Trainer(method_of(epochs=30, learning_rate=0.02), on_epoch=reports.append).run()
    assert reports[-1].loss < 0.7 * reports[0].loss


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


@pytest.mark.parametrize("stop_after", [1, 4, 5, 9, 13])
def test_resume_equals_the_uninterrupted_run_bit_for_bit(stop_after: int, tmp_path: Path) -> None:
    whole: list[EpochReport] = []
    straight = method_of()
    expected = Trainer(straight, validate=hash_validate, on_epoch=whole.append).run()
    folder = CheckpointFolder(tmp_path / "checkpoint")
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return asked == stop_after

    parts: list[EpochReport] = []
    first = Trainer(
        method_of(),
        validate=hash_validate,
        on_epoch=parts.append,
        checkpoints=folder,
        stop_requested=stop,
        identity={"a": 1},
    )
    with pytest.raises(Interrupted):
        first.run()
    checkpoint = folder.load()
    assert checkpoint is not None
    resumed = method_of()
    found = Trainer(resumed, validate=hash_validate, on_epoch=parts.append, checkpoints=folder, identity={"a": 1}).run(
        checkpoint
    )
    assert found == expected
    assert torch.equal(resumed.ego.rows(), straight.ego.rows())
    assert [(p.epoch, p.loss, p.valid) for p in parts] == [(w.epoch, w.loss, w.valid) for w in whole]


def test_checkpoints_are_written_as_time_passes(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path / "checkpoint")
    Trainer(method_of(), checkpoints=folder, checkpoint_seconds=0).run()
    checkpoint = folder.load()
    assert checkpoint is not None
    assert checkpoint.epoch == 7
    assert not list(tmp_path.rglob("*.new"))


def test_a_checkpoint_of_something_else_is_refused(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path / "checkpoint")
    Trainer(method_of(), checkpoints=folder, checkpoint_seconds=0, identity={"dataset": "a"}).run()
    with pytest.raises(InputError, match="made with another dataset"):
        Trainer(method_of(), checkpoints=folder, identity={"dataset": "b"}).run(folder.load())


def test_a_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path / "checkpoint")
    folder.folder.mkdir()
    folder.file.write_bytes(b"nonsense")
    with pytest.raises(InputError, match="is not a readable checkpoint"):
        folder.load()


def test_a_loss_that_is_no_number_stops_with_the_remedy() -> None:
    with pytest.raises(
        InputError, match=r"the loss became (nan|inf) in epoch \d+ with learning_rate 1e\+30; train with a"
    ):
        Trainer(method_of(learning_rate=1e30)).run()


def test_torch_threads_are_left_as_they_were() -> None:
    before = torch.get_num_threads()
    Trainer(method_of(epochs=1)).run()
    assert torch.get_num_threads() == before


def test_lightgcn_learns_the_tastes_of_the_world(small_world: Dataset) -> None:
    graph = BipartiteGraph.from_pairs(small_world.train, small_world.n_users, small_world.n_items)
    method = LightGCN(graph, TrainedSettings(epochs=60, patience=20, learning_rate=0.01))
    Trainer(method, validate=Evaluator(small_world, 20, "valid").recall).run()
    counts = graph.item_degree
    evaluator = Evaluator(small_world, 20)
    learned = evaluator.evaluate(method).metrics["recall@20"]
    method.user_embedding = torch.ones(graph.n_users, 1)
    method.item_embedding = counts[:, None]
    popular = evaluator.evaluate(method).metrics["recall@20"]
    method.item_embedding = torch.rand(graph.n_items, 1, generator=torch.Generator().manual_seed(0))
    chance = evaluator.evaluate(method).metrics["recall@20"]
    assert learned > 1.1 * popular > 1.3 * chance


def test_a_checkpoint_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path / "checkpoint")
    Trainer(method_of(), checkpoints=folder, checkpoint_seconds=0).run()
    checkpoint = folder.load()
    assert checkpoint is not None
    checkpoint.tensors.pop("adam.mean.0")
    with pytest.raises(InputError, match=r"the checkpoint does not fit this training .*mean.0"):
        Trainer(method_of(), checkpoints=folder).run(checkpoint)
    with pytest.raises(InputError, match="the checkpoint does not fit this training"):
        Trainer(method_of(embedding_size=8), checkpoints=folder).run(folder.load())


def test_a_full_disk_leaves_the_old_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = CheckpointFolder(tmp_path / "checkpoint")
    folder.save(Checkpoint({"a": torch.ones(3)}, {"at": {"epoch": 1}, "identity": {}}))
    before = folder.file.read_bytes()

    def full(_tensors: object, file: Path, **__: object) -> None:
        file.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dpaa.training.checkpoint.save_file", full)
    with pytest.raises(InputError, match=r"cannot write .*state.safetensors.*No space left on device.*make room"):
        folder.save(Checkpoint({"a": torch.zeros(3)}, {"at": {"epoch": 2}, "identity": {}}))
    assert folder.file.read_bytes() == before
    assert [file.name for file in folder.folder.iterdir()] == ["state.safetensors"]


def test_the_cost_is_told_before_the_first_epoch_and_costs_no_bit() -> None:
    told: list[float] = []
    method, plain = method_of(epochs=2), method_of(epochs=2)
    Trainer(method, on_start=told.append).run()
    Trainer(plain).run()
    assert len(told) == 1
    assert told[0] > 0
    assert torch.equal(method.ego.rows(), plain.ego.rows())


# ---------------------------------------------------------------------- a loss that is a number and rises all the same


@pytest.mark.parametrize("epochs", [1, 3, 50])
@pytest.mark.parametrize("early", [True, False])
def test_a_loss_far_above_its_start_stops_with_the_remedy(epochs: int, early: bool) -> None:
    validate = (lambda _: {"recall@20": 0.5}) if early else None
    with pytest.raises(DivergedError, match=r"diverged: the loss was .* above the 0\.6\d+ it began with.*1000; train"):
        Trainer(method_of(learning_rate=1e3, epochs=epochs), validate=validate).run()


def test_a_single_step_that_goes_too_far_is_seen() -> None:
    """Its epoch's loss is the start's own: what the step did shows only afterwards."""
    with pytest.raises(DivergedError, match="at the end, after epoch 1"):
        Trainer(method_of(learning_rate=1e3, epochs=1, batch_size=100_000)).run()


def test_patience_that_ends_before_ten_epochs_hides_nothing() -> None:
    with pytest.raises(DivergedError, match="at the end, after epoch 4"):
        Trainer(method_of(learning_rate=1e3, epochs=50, patience=3), validate=lambda _: {"recall@20": 0.5}).run()


def test_ten_epochs_above_the_start_end_it_and_nine_do_not() -> None:
    above, below = 3.1 * 0.8, 2.9 * 0.8
    found = Progress(start_loss=0.8)
    for loss in [9.0, *[above] * 9, below, *[above] * 9]:
        found.loss_sum, found.triples = loss, 1
        found = found.after_epoch(EarlyStopping(5))
    assert (found.epoch, found.epochs_above, found.lowest_loss) == (21, 9, below)


def test_tables_trained_before_may_lose_what_they_had() -> None:
    """Their loss begins near 0: any other is many times that, and no divergence before it is far above a coin's."""
    assert Progress(start_loss=1e-6).start_level == pytest.approx(np.log(2))
    assert Progress(start_loss=2.0).start_level == 2.0


def test_a_diverging_training_is_resumed_into_the_same_end(tmp_path: Path) -> None:
    with pytest.raises(DivergedError) as straight:
        Trainer(method_of(learning_rate=1e3, epochs=50)).run()
    folder = CheckpointFolder(tmp_path / "checkpoint")
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return asked == 25

    with pytest.raises(Interrupted):
        Trainer(method_of(learning_rate=1e3, epochs=50), checkpoints=folder, stop_requested=stop).run()
    with pytest.raises(DivergedError) as resumed:
        Trainer(method_of(learning_rate=1e3, epochs=50), checkpoints=folder).run(folder.load())
    assert str(resumed.value) == str(straight.value)


def test_a_checkpoint_from_before_the_start_was_kept_is_taken_up(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path / "checkpoint")
    Trainer(method_of(epochs=3), checkpoints=folder, checkpoint_seconds=0).run()
    checkpoint = folder.load()
    assert checkpoint is not None
    for name in ("start_loss", "epochs_above", "lowest_loss"):
        del checkpoint.progress["at"][name]
    resumed, straight = method_of(), method_of()
    Trainer(resumed).run(checkpoint)
    Trainer(straight).run()
    assert torch.equal(resumed.ego.rows(), straight.ego.rows())
