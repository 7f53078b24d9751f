"""`--processes N`: the same call in N processes of this machine, started by torch's own launcher; or our part in it."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from dpaa.errors import InputError

if TYPE_CHECKING:
    from dpaa.data.dataset import Dataset
    from dpaa.training.together import Group, Together

OURS = "dpaa-processes"
"""The launcher's name for trainings that we started."""
LOST = 3
"""How a process ends that has lost another one: whoever started it says so."""
SHUTDOWN_SECONDS = 120
"""To write a checkpoint when told to stop."""


def launch_if_asked(processes: int) -> None:
    """Do all of this call in several processes, where they are asked for and not yet there."""
    started = int(os.environ.get("WORLD_SIZE", "1")) if "RANK" in os.environ else 1
    if processes > 1 and started == 1:
        _launch(processes)
    if processes > 1 and started != processes:
        raise InputError(
            f"--processes {processes} in a process that torchrun started with {started}; leave --processes out"
        )


def _launch(processes: int) -> NoReturn:
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    from dpaa.training.together import LostProcessError

    logging.disable(logging.CRITICAL)  # the launcher's own words; those of the training come from its processes
    if sys.platform == "linux":
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # they are all here: nobody else need reach them
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=processes,
        run_id=OURS,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=0,
        shutdown_timeout=SHUTDOWN_SECONDS,
    )
    try:
        elastic_launch(config, sys.executable)("-m", "dpaa", *sys.argv[1:])
    except ChildFailedError as error:
        codes = {rank: failure.exitcode for rank, failure in error.failures.items()}
        if set(codes) == {0} and codes[0] > 0 and codes[0] != LOST:
            sys.exit(codes[0])  # it has said why
        raise LostProcessError from None
    except SignalException as stopped:
        sys.exit(128 + stopped.sigval)
    sys.exit(0)


@contextmanager
def taking_part(read: Callable[[], Dataset], method: str | None) -> Iterator[Together]:
    """The processes of this training; those that only follow train along in here, and end."""
    from dpaa.training.together import ONE_PROCESS, Group, LostProcessError, started_together

    if not started_together():
        yield ONE_PROCESS
        return
    try:
        with Group.joined() as group:
            if group.rank:
                _follow(group, read, method)
            yield group
    except LostProcessError:
        if os.environ.get("TORCHELASTIC_RUN_ID") == OURS:
            sys.exit(LOST)
        raise


def _follow(group: Group, read: Callable[[], Dataset], method: str | None) -> NoReturn:
    from dpaa.methods import find_method
    from dpaa.runs.distributed import follow
    from dpaa.training.together import LostProcessError

    group.follow_signals()
    data: Dataset | InputError
    try:
        if method is not None:
            find_method(method)
        data = read()
    except InputError as error:
        data = error
    try:
        follow(group, data)
    except LostProcessError:
        sys.exit(LOST)
    sys.exit(0)
