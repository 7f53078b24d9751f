"""How much to spend on a reproduction: minutes, a day, or what the paper's authors spent."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from dpaa.errors import InputError

PAPER_SIZE = {"embedding_size": 256}
EVERY_SEVERITY = tuple(float(severity) for severity in range(10))
ROWS = (
    *("most-popular", "lightgcn", "sam-reg", "ips", "cvib", "macr", "ppac", "dap", "navip", "apda"),
    *("dpaa", "dpaa-as-printed", "dpaa-auto"),
)
"""The paper's methods in its order, most-popular before them, both readings of DPAA and ours at the end."""
SIMPLE = ("item-knn", "ease", "als")
"""Strong simple methods that a fair table has as well."""
FIRST, SECOND = "first", "standard-2"
"""Protocols.  The first: the paper's way of training, a seed draws severity data anew, as many trials per method."""
DEFAULT_TRAINING: dict[str, Any] = {
    "learning_rate": 1e-2,
    "learning_rate_schedule": "inverse-sqrt",
    "warmup_steps": 100,
    "patience": 15,
    "patience_steps": "auto",
    "minimum_steps": "auto",
    "validation_steps": 6,
    "validation_smoothing": 0.0,
}
"""Today's defaults, written down: a protocol does not move when they do."""


@dataclass(frozen=True)
class Tuning:
    """How settings are chosen, on validation: the same number of trials for every method."""

    space: str
    """Of `dpaa tune`: `wide` or `paper`."""
    trials: int | None
    """For each method; None is the whole grid."""
    learning_rates: tuple[float, ...] | None
    """What is tried of it; None leaves it to the space."""
    severities: tuple[float, ...]
    """Where methods are tuned; other severities take the settings of the nearest of these."""
    prune_after: int = 30
    """Epochs before a trial may be given up."""

    def effort(self) -> dict[str, Any]:
        """What names a choice of settings."""
        return asdict(self)


@dataclass(frozen=True)
class TuningPerSetting(Tuning):
    """The same number of trials for every setting that is searched: who has more to choose gets more."""

    trials_per_setting: int = 4

    def effort(self) -> dict[str, Any]:
        """Without the other places where methods are tuned, which do not matter here."""
        return {name: value for name, value in asdict(self).items() if name != "severities"}

    def trials_of(self, free: int) -> int:
        """For a method with so many free settings."""
        return self.trials_per_setting * free


@dataclass(frozen=True)
class Budget:
    """What a reproduction may cost."""

    name: str
    about: str
    severities: tuple[float, ...] = EVERY_SEVERITY
    seeds: int = 3
    coat_seeds: int = 10
    rows: tuple[str, ...] = (*ROWS, *SIMPLE)
    settings: dict[str, Any] = field(default_factory=lambda: dict(PAPER_SIZE))
    """For every method that has them."""
    tuning: Tuning | None = None
    as_printed_severities: tuple[float, ...] = EVERY_SEVERITY
    """Where the ablation is made for `dpaa-as-printed` too."""
    protocol: str = FIRST
    draws: int | None = None
    """Draws of the severity data, apart from the seeds of training, which then all see the first; None: a seed is both,
    of the data and of training."""


QUICK = Budget(
    "quick",
    "severity 0, 5 and 9, one seed, methods at their defaults, embedding size 64, at most 100 epochs",
    severities=(0.0, 5.0, 9.0),
    seeds=1,
    coat_seeds=1,
    rows=ROWS,
    settings={"embedding_size": 64, "epochs": 100},
)
UNTUNED = Budget("untuned", "every severity, three seeds (Coat: ten), methods at their defaults, embedding size 256")
STANDARD = Budget(
    "standard",
    "every severity, three seeds (Coat: ten), embedding size 256; 12 trials per method with learning rate 1e-3 or "
    "1e-4, pruned after 30 epochs, at severity 0, 5, 9 and on each real dataset; other severities take the "
    "nearest tuned setting, the lower of two as near",
    tuning=Tuning("wide", 12, (1e-3, 1e-4), (0.0, 5.0, 9.0)),
    as_printed_severities=(0.0, 5.0, 9.0),
)
PAPER = Budget(
    "paper",
    "the paper's whole grids at every severity and on each real dataset, embedding size 256, three seeds (Coat: ten)",
    tuning=Tuning("paper", None, None, EVERY_SEVERITY),
)
STANDARD_2 = Budget(
    SECOND,
    "every severity, three seeds of training (Coat: ten) on one draw of the data, further draws apart; embedding size "
    "64 and one way of training for all: learning rate 0.01 with warm-up and decay; four trials per free setting, from "
    "lists that have 0 where 0 means off, none pruned, at severity 5 (for all of them) and on each real dataset",
    settings={"embedding_size": 64} | DEFAULT_TRAINING,
    tuning=TuningPerSetting("lists", None, None, (5.0,), prune_after=0),
    protocol=SECOND,
    draws=3,
)
BUDGETS = {budget.name: budget for budget in (QUICK, UNTUNED, STANDARD, STANDARD_2, PAPER)}


def find_budget(name: str) -> Budget:
    """The budget of this name."""
    if name not in BUDGETS:
        raise InputError(f"there is no budget {name!r}; use one of {', '.join(BUDGETS)}")
    return BUDGETS[name]


def nearest(severity: float, tuned: tuple[float, ...]) -> float:
    """The tuned severity that is nearest; of two that are as near the lower."""
    return min(tuned, key=lambda one: (abs(one - severity), one))
