"""One training in several processes: what the leading one tells the others, and what they do."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from dpaa.data.dataset import Dataset
from dpaa.errors import DivergedError, InputError
from dpaa.graph.columns import split_columns
from dpaa.methods import METHODS
from dpaa.methods.graph_method import GraphMethod, WholeTable
from dpaa.methods.pretrained import Pretrained, UsesPretrained
from dpaa.runs.model import make_method
from dpaa.training.checkpoint import Checkpoint
from dpaa.training.start import Start
from dpaa.training.together import Ended, Group, Together
from dpaa.training.trainer import Interrupted, Trainer

_START = ("epoch", "step", "best_epoch", "patience_share", "measured")


def check_shared(method: GraphMethod, together: Together) -> None:
    """Refuse what several processes cannot train, before anything is trained."""
    split_columns(method.embedding_size, together.peers)  # has enough of them, or says so
    if together.peers.count > 1 and isinstance(method, WholeTable):
        raise InputError(
            f"{method.name} works on whole tables, whose columns cannot lie in several processes; train it in one "
            "process, without --processes or torchrun"
        )


def _made(data: Dataset, name: str, settings: dict[str, Any]) -> GraphMethod:
    method = make_method(data, name, settings)
    assert isinstance(method, GraphMethod)
    return method


def announce(trainer: Trainer, pretrained: Pretrained | None, checkpoint: Checkpoint | None) -> None:
    """Tell the others what is about to be trained, and hand over what it starts from."""
    together, method, start = trainer.together, trainer.method, trainer.start
    if together.peers.count == 1:
        return
    together.say(
        {
            "method": METHODS.address(method.name),
            "settings": method.get_params(),
            "validates": trainer.validate is not None,
            "keep_last": trainer.keep_last,
            "pretrained": pretrained is not None,
            "start": {name: getattr(start, name) for name in _START} if start else None,
            "checkpoint": checkpoint.progress if checkpoint else None,
        }
    )
    if pretrained is not None:
        layers = {f"layer.{place}": layer for place, layer in enumerate(pretrained.layers)}
        _hand_over(together, {"readout": pretrained.readout} | layers)
    if start is not None:
        _hand_over(together, {"table": start.table} | start.parameters)


def _hand_over(together: Together, tensors: dict[str, Tensor]) -> None:
    for _ in together.from_leader(tensors):
        pass


def follow(group: Group, data: Dataset | InputError) -> None:
    """Train along, whatever the leading process trains, until it ends."""
    if isinstance(data, InputError):
        group.report({"error": str(data)})
    else:
        group.report({"dataset": data.fingerprint})
    try:
        while True:
            order = group.hear()
            assert isinstance(data, Dataset)  # the leading process gives no orders otherwise
            _train_along(group, data, order)
    except Ended:
        return


def check_followers(together: Together, data: Dataset) -> None:
    """Whether all others have the same dataset before them."""
    for rank, report in together.reports():
        if "error" in report:
            raise InputError(f"process {rank}: {report['error']}")
        if report["dataset"] != data.fingerprint:
            raise InputError(
                f"process {rank} has read another dataset of the same name; give all processes the same files"
            )


def _train_along(group: Group, data: Dataset, order: dict[str, Any]) -> None:
    pretrained = None
    if order["pretrained"]:
        told = dict(group.from_leader({}))
        readout = told.pop("readout")
        pretrained = Pretrained(readout, tuple(told[f"layer.{place}"] for place in range(len(told))))
        del told, readout
    method = _made(data, order["method"], order["settings"])
    if pretrained is not None and isinstance(method, UsesPretrained):
        method.take_pretrained(pretrained)
    del pretrained
    start = None
    if order["start"] is not None:
        told = dict(group.from_leader({}))
        start = Start(told.pop("table"), told, **order["start"])
    trainer = Trainer(
        method,
        validate=_never if order["validates"] else None,
        start=start,
        keep_last=order["keep_last"],
        together=group,
    )
    try:
        trainer.run(Checkpoint({}, order["checkpoint"]) if order["checkpoint"] else None)
    except (Interrupted, DivergedError):
        return  # the leading process says so


def _never(_method: GraphMethod) -> dict[str, float]:
    raise AssertionError("the leading process validates")
