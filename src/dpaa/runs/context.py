"""What a method trains with: the one place where trainer and evaluator meet (`methods.base.Context`)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from dpaa._text import counted, finite
from dpaa.data.dataset import Dataset
from dpaa.errors import InputError
from dpaa.evaluation.evaluator import Evaluator
from dpaa.kernels.machine import processes_here
from dpaa.kernels.memory import memory_at_hand
from dpaa.methods.backbone import GraphMethod
from dpaa.methods.base import Method
from dpaa.methods.pretrained import Pretrained
from dpaa.runs.callbacks import Callbacks, Preview
from dpaa.runs.folder import RunFolder
from dpaa.runs.model import Model
from dpaa.runs.pretrained import read_pretrained, train_or_reuse
from dpaa.runs.stages import FitPart, RunStages
from dpaa.runs.together import announce, check_shared, part_of
from dpaa.runs.warm_start import in_words, warm_start
from dpaa.training.checkpoint import STARTED_FROM, Checkpoint
from dpaa.training.start import Start
from dpaa.training.trainer import EpochReport, Trainer


@dataclass
class RunContext:
    """One fit: its data, who watches, and the run folder where there is one."""

    data: Dataset
    callbacks: Callbacks
    run: RunFolder | None
    resume: bool
    pretrained: str | Path | Pretrained | None
    fit_part: FitPart
    """Fits a method that this one needs, into a folder or not."""
    start: Start | None = None
    """What training begins with instead of random numbers."""
    keep_last: bool = False
    """Whether the last epoch is kept instead of the best."""
    before: Model | None = None
    """A model to begin with, of earlier data perhaps."""
    finish: bool = False
    """Whether the run is finished at its checkpoint, without training on."""
    _vectors: Pretrained | None = None
    """Of the pre-trained model, until the other processes have them too."""

    @cached_property
    def validation(self) -> Evaluator | None:
        """Validation with training pairs hidden; None without a validation split."""
        return Evaluator(self.data, 20, "valid", "drop") if len(self.data.valid) else None

    @property
    def _protocol(self) -> dict[str, Any] | None:
        return self.validation.protocol.as_json() if self.validation else None

    def fit_once(self, method: Method) -> dict[str, Any]:
        """Learn in one go, the pre-trained model first where one is needed."""
        manifest: dict[str, Any] = {}
        if isinstance(method, GraphMethod):
            manifest, _ = self._take_pretrained(method)
            _check_memory(method)
        told = [] if self.before is None else [f"{method.name} is computed in one go: there is nothing to start from"]
        if self.callbacks.together.peers.count > 1:
            told.append(f"{method.name} is computed in one go, by one process")
        self.callbacks.on_start(method, told)
        method.fit()
        return manifest

    def stages(self, method: Any) -> dict[str, Any]:
        """Let a method be made of several trainings, each a run inside the run's folder until the whole is made."""
        validation = self.validation
        stages = RunStages(self.data, self.callbacks, self.run, validation, self.fit_part, self.before)
        chosen = method.assemble(stages)
        if self.run is not None:
            self.run.write_history(stages.history)
        kept = [line["epoch"] for line in stages.history if line["part"] == chosen["chosen"]["part"]]
        return {
            "validation": self._protocol,
            "training": {
                "epochs": len(stages.history),
                "best_epoch": kept[-1] if kept else 0,
                "best_valid_recall@20": validation.recall_of(method) if validation else None,
            },
            "tuned": {},
            "auto": finite(chosen),
        }

    def epochs(self, method: GraphMethod) -> dict[str, Any]:
        """Train in epochs, the pre-trained model first where one is needed."""
        callbacks, run, validation, compute = self.callbacks, self.run, self.validation, method.compute
        if validation and method.validation_overlap != "drop":
            validation = Evaluator(self.data, 20, "valid", method.validation_overlap)
        check_shared(method, callbacks.together)
        manifest, extra_identity = self._take_pretrained(method)
        notes = _sampling_notes(method)
        processes, user_parts = callbacks.together.peers.count, callbacks.together.user_peers.count
        needed = _check_memory(method, processes, user_parts)
        start = self._start(method, notes)
        if start is not None and start.origin:
            manifest |= start.origin
            extra_identity |= {STARTED_FROM: start.digest}
        if validation is None:
            notes.append(
                f"the validation split is empty: all {method.settings.epochs:,} epochs are trained, the last is kept"
            )
        of_others = method.memory_bytes(processes, False, user_parts)
        epochs: list[EpochReport] = []

        def on_epoch(report: EpochReport) -> None:
            epochs.append(report)
            if run:
                run.append_history(report)
            callbacks.on_epoch(report)

        trained = part_of(method, self.data, self._vectors, callbacks.together)
        trainer = Trainer(
            trained,
            validate=validation.recall if validation else None,
            on_start=lambda seconds: callbacks.on_preview(
                Preview(needed, seconds, method.settings.epochs, processes, of_others)
            ),
            on_epoch=on_epoch,
            checkpoints=run.checkpoints if run else None,
            identity={
                "dataset": self.data.fingerprint,
                "method": method.name,
                "settings": method.settings.model_dump(mode="json", exclude={"threads"}),
                "kernel": compute.kernel,
                **extra_identity,
            },
            stop_requested=callbacks.stop_requested,
            checkpoint_seconds=callbacks.checkpoint_seconds,
            start=start,
            keep_last=self.keep_last,
            together=callbacks.together,
            whole=method,
            finish=self.finish,
        )
        checkpoint = run.checkpoints.load() if run and self.resume else None
        if checkpoint:
            trainer.check(checkpoint)
            if STARTED_FROM in checkpoint.progress["identity"] and STARTED_FROM not in extra_identity:
                raise InputError("the training started from another run; name it with --warm-start, as when it began")
        notes += self._take_up_history(checkpoint, start)
        if self.finish:
            callbacks.say("nothing is trained: the best epoch of the checkpoint is kept")
        else:
            callbacks.on_start(method, notes)
        announce(trainer, self._vectors, checkpoint)
        self._vectors = None
        stopping = trainer.run(checkpoint)
        tuned = method.tune(validation) if validation else {}
        done = epochs[-1].epoch if epochs else (checkpoint.epoch - 1 if checkpoint else 0)
        return manifest | {
            "validation": validation.protocol.as_json() if validation else None,
            "compute": compute.as_json() | _shared(processes, user_parts),
            "training": {
                "epochs": done,
                "best_epoch": start.best_epoch if start and stopping.best_epoch < start.epoch else stopping.best_epoch,
                "best_valid_recall@20": stopping.best_measured if validation else None,
                **({"stopped": f"finished early after epoch {done}"} if self.finish else {}),
            },
            "tuned": tuned,
        }

    def _start(self, method: GraphMethod, notes: list[str]) -> Start | None:
        if self.before is None:
            return self.start
        start = warm_start(self.before, self.data, method)
        notes.append(in_words(start))
        return start

    def _take_up_history(self, checkpoint: Checkpoint | None, start: Start | None) -> list[str]:
        """The epochs so far in the run's file, and what is said of going on."""
        if self.run and checkpoint:
            self.run.cut_history(checkpoint.epoch - 1)
        elif self.run:
            self.run.write_history(start.history if start else ())
        if checkpoint:
            return [f"going on in epoch {checkpoint.epoch:,}"]
        if start is not None and start.epoch > 1:
            return [f"the finished run is trained further, from epoch {start.epoch:,} on"]
        return ["there is no checkpoint to resume from: training starts afresh"] if self.resume else []

    def _take_pretrained(self, method: GraphMethod) -> tuple[dict[str, Any], dict[str, str]]:
        """What the manifest says of the pre-trained model, and what a checkpoint must have been made with."""
        n_layers = method.pretrained_layers()
        if n_layers is None:
            return {}, {}
        vectors = self._pretrained(method, n_layers)
        method.take_pretrained(vectors)  # whole tables, of which the method keeps what it needs
        self._vectors = vectors if self.callbacks.together.peers.count > 1 else None
        return {"pretrained": vectors.origin}, {"pre-trained model": vectors.digest}

    def _pretrained(self, method: GraphMethod, n_layers: int) -> Pretrained:
        given = self.pretrained
        if isinstance(given, Pretrained):
            return given
        if given:
            return read_pretrained(given, self.data, n_layers)

        def train(folder: Path | None, plain: GraphMethod) -> Model:
            if self.finish:
                raise InputError(
                    f"the pre-trained model that {method.name} started from is not at {folder}; name it with "
                    "--pretrained, as when the training began"
                )
            kept = f" and kept in {folder}" if folder else ""
            self.callbacks.on_part(f"pre-training for {method.name}", plain)
            self.callbacks.say(f"{method.name} starts from a pre-trained model: LightGCN is trained first{kept}")
            return self.fit_part(plain, self.data, self.callbacks, folder, warm_start=self.before)

        beside = self.run.path.parent if self.run else None
        return train_or_reuse(self.data, method.settings, n_layers, beside, train, self.before)


def _shared(processes: int, user_parts: int) -> dict[str, int]:
    """For the manifest: whether others trained along, and what was shared."""
    found = {"processes": processes} if processes > 1 else {}
    return found | ({"user_parts": user_parts} if user_parts > 1 else {})


def _check_memory(method: GraphMethod, processes: int = 1, user_parts: int = 1) -> int:
    """About the bytes a training takes, in the leading process; more than there are is refused before it begins."""
    needed = method.memory_bytes(processes, user_parts=user_parts)
    free, here = memory_at_hand(), processes_here(processes)
    total = needed + (here - 1) * method.memory_bytes(processes, False, user_parts)
    if total > free:
        shared = f" in {here} processes" if here > 1 else ""
        raise InputError(
            f"training {method.name} would take about {total / 1e9:.1f} GB of memory{shared}, {free / 1e9:.1f} GB are "
            f"free; use a smaller embedding_size (now {method.settings.embedding_size}) or a larger machine"
        )
    return needed


def _sampling_notes(method: GraphMethod) -> list[str]:
    sampler = method.sampler
    if not sampler.n_usable_users:
        raise InputError(
            "no user has both a positive item and one left to draw as a negative; there is nothing to learn from"
        )
    notes = []
    if sampler.users_without_items:
        users = counted(
            sampler.users_without_items, "user has no training item and is", "users have no training item and are"
        )
        notes.append(f"{users} never drawn")
    if sampler.users_with_every_item:
        users = counted(sampler.users_with_every_item, "user took every item and is", "users took every item and are")
        notes.append(f"{users} skipped: there is nothing to prefer")
    return notes
