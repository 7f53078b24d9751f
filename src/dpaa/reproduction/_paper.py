"""The DPAA paper: its numbers (`paper.toml`), our rows beside them, and budgets of a reproduction (`budgets.toml`)."""

import tomllib
from importlib.resources import files
from typing import Any

from pydantic import BaseModel, ConfigDict

EVERY_SEVERITY = tuple(float(severity) for severity in range(10))
ROWS = (
    *("most-popular", "lightgcn", "sam-reg", "ips", "cvib", "macr", "ppac", "dap", "navip", "apda"),
    *("dpaa", "dpaa-as-printed", "dpaa-normalised"),
)
"""The paper's methods in its order, most-popular before them, the interpretations of DPAA at the end."""
SIMPLE = ("item-knn", "ease", "als")
"""Strong simple methods that the paper does not compare with."""
FIRST = "first"
"""The protocol of results that do not name theirs: the paper's training, and a seed draws the severity data, too."""


class Tuning(BaseModel):
    """How hyperparameters are chosen on validation, with the same effort for every method."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    space: str
    """Of `dpaa tune`: `wide`, `lists` or `paper`."""
    severities: tuple[float, ...]
    """Where methods are tuned; other severities take the hyperparameters of the nearest of these."""
    trials: int | None = None
    """For each method; None is the whole grid, unless trials are counted per hyperparameter."""
    trials_per_hyperparameter: int | None = None
    """For each searched hyperparameter of a method."""
    learning_rates: tuple[float, ...] | None = None
    """Candidates; None leaves them to the space."""
    prune_after: int = 30
    """Epochs before a trial may be pruned; 0 is never."""

    def effort(self) -> dict[str, Any]:
        """What identifies a stored choice; the keys are those of the committed results."""
        effort = self.model_dump(exclude={"trials_per_hyperparameter"})
        if self.trials_per_hyperparameter is not None:
            del effort["severities"]
            effort["trials_per_setting"] = self.trials_per_hyperparameter
        return effort


class Budget(BaseModel):
    """What a reproduction may cost."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
    about: str
    severities: tuple[float, ...] = EVERY_SEVERITY
    seeds: int = 3
    coat_seeds: int = 10
    """Coat is small and gets more."""
    simple_methods: bool = True
    """Whether `SIMPLE` are rows, too."""
    hyperparameters: dict[str, Any] = {"embedding_size": 256}
    """Of every method that has them."""
    tuning: Tuning | None = None
    """None keeps the methods' defaults."""
    preset_severities: tuple[float, ...] = EVERY_SEVERITY
    """Where the ablation of `dpaa-as-printed` and `dpaa-normalised` is trained as well."""
    protocol: str = FIRST
    one_draw: bool = False
    """Whether all seeds see one draw of the severity data; else a seed draws the data, too."""


BUDGETS = {
    name: Budget(name=name, **content)
    for name, content in tomllib.loads(files(__package__).joinpath("budgets.toml").read_text(encoding="utf-8")).items()
}


METHODS = ("dpaa", "apda", "navip", "dap", "ppac", "macr", "cvib", "ips", "sam-reg", "lightgcn")
PRESETS = ("dpaa", "dpaa-as-printed", "dpaa-normalised")
"""Interpretations of the paper's equations."""
BASELINES = METHODS[1:]
"""The methods that its "Improvement" is measured against."""
OVERALL_METRICS = ("recall@20", "ndcg@20", "hit@20")
GROUP_METRICS = ("recall@20/popular", "ndcg@20/popular", "recall@20/niche", "ndcg@20/niche")

_NUMBERS = tomllib.loads(files(__package__).joinpath("paper.toml").read_text(encoding="utf-8"))
DATASETS: dict[str, list[float]] = _NUMBERS["datasets"]
BEST_HYPERPARAMETERS: dict[str, list[float]] = _NUMBERS["best_settings"]
OVERALL: dict[str, dict[str, list[float]]] = _NUMBERS["overall"]
GROUPS: dict[str, dict[str, list[float]]] = _NUMBERS["groups"]
SEVERITY: dict[str, list[float]] = _NUMBERS["severity"]
ABLATION: dict[str, list[float]] = _NUMBERS["ablation"]


def row_of(method: str) -> str:
    """The paper's row beside a method of ours, DPAA's for every interpretation of it."""
    return "dpaa" if method in PRESETS else method


def reported(data: str) -> dict[str, float]:
    """C, η and δ that the paper reports for its DPAA on a dataset; those of KuaiRec for severities."""
    names = ("half_trust_shift", "layer_emphasis", "initial_residual")
    values = BEST_HYPERPARAMETERS.get(data, BEST_HYPERPARAMETERS["kuairec"])
    return dict(zip(names, values, strict=True))


def at_severity(rows: dict[str, list[float]], severity: float) -> dict[str, float]:
    """The paper's values at a severity by row; none between its ten."""
    known = float(severity).is_integer() and 0 <= severity < 10
    return {name: values[int(severity)] for name, values in rows.items()} if known else {}
