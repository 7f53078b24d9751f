"""What a page is made of: datasets, runs, comparisons, audits and frontiers, recognised by the files at each path."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
import polars as pl
from markupsafe import Markup
from pydantic import BaseModel, ConfigDict, Field, field_validator

from dpaa._io import LARGE_JSON, read_json
from dpaa._text import printable
from dpaa.data.dataset import ABOUT_FILE, Dataset, read_dataset
from dpaa.data.ids import Column, Ints, Mask, encode
from dpaa.data.pairs import popular_items, popularity_deciles
from dpaa.errors import InputError
from dpaa.evaluation.bias import head, share_of
from dpaa.evaluation.evaluator import Protocol
from dpaa.report._html import shown_item
from dpaa.runs.folder import CHOSEN, CONFIG, FRONTIER, MANIFEST, METRICS, RunFolder, checked
from dpaa.runs.model import Model, load

LISTED_USERS = 20_000
"""Lists are made for at most so many users: shares over them are exact enough to draw."""
REMEDY = "name datasets, runs and JSON files of `dpaa compare` or `dpaa audit`"

# ---------------------------------------------------------------------- files

Share = Annotated[float, Field(ge=0, le=1)]
Metrics = dict[str, float | None]
"""Metric → value; None where it is undefined."""


class Document(BaseModel):
    """A JSON file that may come from anywhere: what the page shows of it has these types."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class Measured(Document):
    """`metrics.json` of a run."""

    metrics: Metrics
    protocol: Protocol
    groups: dict[str, Metrics] = {}
    """`genre=Drama` → items, share of the history, and of the lists of each k."""


class Point(Document):
    """A model with one κ of the popularity dial or one re-ranker."""

    name: str
    model: str
    plain: bool = False
    on_frontier: bool = False
    accuracy_change: float | None = None
    metrics: Metrics


class Goal(Document):
    """What a frontier was drawn for."""

    name: str
    metric: str
    better: str


class HeldOut(Document):
    """Baseline and choice on held-out users."""

    users: int
    folds: int = 0
    base: Metrics
    chosen: Metrics
    better: float
    worse: float


class Frontier(Document):
    """`frontier.json` of `dpaa debias`."""

    k: int
    users: dict[str, int]
    """All validation users, and the number of folds."""
    goals: list[Goal]
    base: Point
    chosen: Point
    headline: str
    sentences: list[str]
    points: list[Point]
    estimates: list[dict[str, Any]]
    validation: dict[str, Any]
    held_out: HeldOut
    notes: list[str] = []


class Delta(Document):
    """The difference of one metric between an entry and the baseline."""

    entry: str
    metric: str
    baseline: float | None
    value: float | None
    delta: float | None
    relative: float | None = None
    """To the baseline; None where that is near 0."""
    interval: tuple[float, float] | None = None
    p_holm: float | None = None
    verdict: str

    @field_validator("interval", mode="before")
    @classmethod
    def _without_ends(cls, ends: object) -> object:
        return None if ends == [None, None] else ends  # too few users have a value


class NoHarm(Document):
    """Whether the loss on popular items is within a margin."""

    entry: str
    metric: str
    margin: float
    baseline: float | None
    value: float | None
    verdict: str


class Comparison(Document):
    """JSON of `dpaa compare`."""

    baseline: str
    k: int
    confidence: float = 0.95
    design: str = ""
    family: str = ""
    protocol_in_words: str = ""
    deltas: list[Delta]
    no_harm: list[NoHarm] = []
    notes: list[str] = []


class Spread(Document):
    """How interactions, or recommendations, are spread over the items."""

    lorenz: list[tuple[Share, Share]] = []
    deciles: list[Share] = Field(default=[], max_length=10)


class Audited(Document):
    """JSON of `dpaa audit`."""

    source: str
    in_words: list[str]
    numbers: Metrics
    meanings: dict[str, str] = {}
    log: Spread
    recommendations: Spread | None = None
    checks: list[dict[str, Any]] = []
    """Conditions of `--fail-if`."""
    notes: list[str] = []


D = TypeVar("D", bound=Document)
AGAIN = "make it again with this version"
KINDS: dict[str, type[Document]] = {"comparison": Comparison, "audit": Audited, "frontier": Frontier}


# ---------------------------------------------------------------------- runs and their datasets


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run as the page sees it."""

    name: str
    path: Path
    model: Model
    history: list[dict[str, Any]]
    measured: Measured | None
    """`metrics.json`; None if the run was not evaluated."""
    family: Family

    @property
    def k(self) -> int:
        """Length of the longest lists that were evaluated: their metrics are shown."""
        return max(self.measured.protocol.k, default=20) if self.measured else 20

    @property
    def method(self) -> str:
        """The method's name."""
        return self.model.method.name

    @property
    def colour(self) -> int:
        """Index of its colour in all figures."""
        return self.family.colours[self.name.partition(" (")[0]]  # as comparisons call it

    @property
    def metrics(self) -> dict[str, float]:
        """Metrics that have a value."""
        known = self.measured.metrics if self.measured else {}
        return {name: value for name, value in known.items() if value is not None}

    @cached_property
    def exposure(self) -> Ints:
        """How many lists of the family's users hold each item: (n_items,)."""
        ids = self.model.item_ids
        lists = self.model.recommend(self.model.user_ids.gather(self.family.users), self.family.k)
        return np.bincount(encode(lists[Column.ITEM], ids), minlength=len(ids))


class Colours(dict[str, int]):
    """Name of a model or run → index of its colour in all figures of a page, in the order of first use."""

    def __missing__(self, name: str) -> int:
        self[name] = len(self)
        return self[name]


@dataclass(eq=False)
class Family:
    """Runs on one dataset: only they can be compared."""

    name: str
    fingerprint: str
    source: Dataset | Model
    """What knows users, items and training pairs: the dataset if the call names it, else the first run."""
    k: int
    colours: Colours
    runs: list[Run] = field(default_factory=list)

    @cached_property
    def counts(self) -> Ints:
        """Training interactions: (n_items,)."""
        train = self.source.train
        return np.bincount(train.item, train.count, minlength=len(self.source.item_ids))

    @cached_property
    def popular(self) -> Mask:
        """The most popular items, which have 80% of the interactions: (n_items,)."""
        return popular_items(self.counts)

    @property
    def head_share(self) -> float:
        """Share of the interactions that the top fifth of the items has."""
        return share_of(head(self.counts), self.counts)

    @cached_property
    def users(self) -> Ints:
        """Indices of the users whose lists are made: all with training pairs, or evenly spaced ones."""
        known = np.unique(self.source.train.user)
        return known[np.linspace(0, len(known) - 1, min(LISTED_USERS, len(known))).round().astype(np.int64)]

    def decile_shares(self, weights: Ints) -> list[float]:
        """Share of the total in each popularity decile, rare → popular; items without training pair are in none."""
        deciles = popularity_deciles(self.counts)
        sums = np.bincount(deciles[deciles >= 0], weights[deciles >= 0], minlength=10)
        return list(map(float, sums / max(weights.sum(), 1)))

    def shown(self, item: int) -> Markup:
        """The item with this index, as tables show it."""
        titles: pl.Series | None = self.source.titles
        return shown_item(self.source.item_ids[item], None if titles is None else titles[item])

    def reference(self, run: Run) -> Run | None:
        """The run to compare another with: plain LightGCN, else the first other one."""
        plain = [other for other in self.runs if other.method == "lightgcn"]
        return next((other for other in [*plain, *self.runs] if other is not run), None)


@dataclass
class Inputs:
    """Everything on one page."""

    families: list[Family] = field(default_factory=list)
    documents: list[Document] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    colours: Colours = field(default_factory=Colours)

    @property
    def runs(self) -> list[Run]:
        """Runs of all datasets."""
        return [run for family in self.families for run in family.runs]

    def of(self, kind: type[D]) -> list[D]:
        """Documents of a kind: comparisons, audits or frontiers."""
        return [document for document in self.documents if isinstance(document, kind)]


def gather(paths: Iterable[str | Path], k: int = 20) -> Inputs:
    """Read what a page is made of.

    Parameters
    ----------
    paths : prepared datasets, runs, folders of `dpaa debias`, JSON of `dpaa compare` and `dpaa audit`
    k : length of the lists that exposure is counted in

    Returns
    -------
    everything, with notes on what is missing
    """
    inputs = Inputs()
    runs: dict[Path, str] = {}
    choices: dict[Path, str] = {}  # after all other runs: whatever the order of the call, a choice is not "before"
    for path in dict.fromkeys(Path(path) for path in paths):
        if (path / ABOUT_FILE).is_file():
            data = read_dataset(path)
            inputs.families.append(Family(printable(data.name), data.fingerprint, data, k, inputs.colours))
        elif (path / CONFIG).is_file() or (path / MANIFEST).is_file():
            runs[path] = path.resolve().name
        elif (path / FRONTIER).is_file():
            _add_json(inputs, path / FRONTIER)
            if (path / CHOSEN / MANIFEST).is_file():
                choice, name = inputs.of(Frontier)[-1], path.resolve().name
                changed = choice.chosen.name != choice.base.name
                choices[path / CHOSEN] = f"{name} ({choice.chosen.name})" if changed else name
        elif path.is_file():
            _add_json(inputs, path)
        elif path.exists():
            raise InputError(
                f"{path} is neither a prepared dataset nor a run; make one with `dpaa data` or `dpaa train`"
            )
        else:
            raise InputError(f"there is no {path}; {REMEDY}")
    runs |= choices
    for path, name in runs.items():
        _add_run(inputs, path, printable(name if list(runs.values()).count(name) == 1 else str(path)), k)
    for run in inputs.runs:
        _ = run.colour  # first come runs, which most figures show: the palette repeats
    return inputs


def _add_run(inputs: Inputs, path: Path, name: str, k: int) -> None:
    folder, model = RunFolder(path), load(path)
    fingerprint = str(model.trained_on.fingerprint)
    family = next((family for family in inputs.families if family.fingerprint == fingerprint), None)
    if family is None:
        family = Family(printable(model.trained_on.name or name), fingerprint, model, k, inputs.colours)
        inputs.families.append(family)
    # A fingerprint may be copied into another manifest; figures go by index, and need the ids themselves.
    if not (family.source.user_ids.equals(model.user_ids) and family.source.item_ids.equals(model.item_ids)):
        raise InputError(f"{path} has other users or items than its dataset {family.name}; train it again")
    content = folder.read_evaluation()
    if content is None:
        inputs.notes.append(f"{path} was not evaluated, so it has no metrics here; run `dpaa evaluate {path}`")
    measured = None if content is None else checked(Measured, content, path / METRICS, AGAIN)
    family.runs.append(Run(name, path, model, folder.history(), measured, family))


def _add_json(inputs: Inputs, path: Path) -> None:
    content = read_json(path, LARGE_JSON, REMEDY)
    model = KINDS.get(str(content.get("kind")))
    if model is None:
        remedy = "make one with `dpaa compare … --out FILE.json`, `dpaa audit … --json` or `dpaa debias`"
        raise InputError(f"{path} is neither a comparison nor an audit nor a frontier; {remedy}")
    inputs.documents.append(checked(model, content, path, AGAIN))
