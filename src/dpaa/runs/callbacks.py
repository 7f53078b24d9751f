"""Who wants to know how a fit goes, and whether to stop it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dpaa.methods.base import Method
from dpaa.training.together import ONE_PROCESS, Together
from dpaa.training.trainer import CHECKPOINT_SECONDS, EpochReport


@dataclass
class Callbacks:
    """Every answer is optional."""

    on_start: Callable[[Method, list[str]], None] = lambda _method, _notes: None
    """The method that is about to be trained, and what its data lacks, in words."""
    on_part: Callable[[str, Method], None] = lambda _label, _method: None
    """A training that is one part of the whole begins: what part, in words (`pre-training for dpaa`)."""
    on_epoch: Callable[[EpochReport], None] = lambda _report: None
    stop_requested: Callable[[], bool] = lambda: False
    say: Callable[[str], None] = lambda _line: None
    """What else a person would want to know."""
    checkpoint_seconds: float = CHECKPOINT_SECONDS
    together: Together = ONE_PROCESS
    """The processes that train together, of which this one leads."""
