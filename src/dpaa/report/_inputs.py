"""What a page is made of: datasets, runs, comparisons, audits and frontiers, recognised by the files at each path."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from markupsafe import Markup
from numpy.typing import NDArray

from dpaa._io import LARGE_JSON, read_json, same_place, settled
from dpaa._text import printable
from dpaa.data.dataset import ABOUT_FILE, Dataset, read_dataset
from dpaa.data.popularity import popular_items, popularity_deciles
from dpaa.errors import InputError
from dpaa.evaluation.concentration import head, share_of
from dpaa.methods.graph_method import GraphMethod
from dpaa.ranking.rank import ColdUsers, rank
from dpaa.report._html import shown_item
from dpaa.report._partial import Partial, is_number
from dpaa.runs.folder import CHOSEN, CONFIG, FRONTIER, MANIFEST, RunFolder
from dpaa.runs.model import Model, load
from dpaa.trace import Trace, trace_run

Ints = NDArray[Any]
LISTED_USERS = 20_000
"""Lists are made for at most so many users: shares over them are exact enough to draw."""
ALIKE = 0.005
"""Relative message weights closer to 1 than this are LightGCN's own: they are shown with two digits."""
REMEDY = "name datasets, runs and JSON files of `dpaa compare` or `dpaa audit`"


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run as the page sees it."""

    name: str
    folder: RunFolder
    model: Model
    history: list[dict[str, Any]]
    evaluation: Partial | None
    """`metrics.json`; None if the run was not evaluated."""
    family: Family

    @cached_property
    def manifest(self) -> Partial:
        """`manifest.json`."""
        return Partial(self.model.manifest)

    @cached_property
    def protocol(self) -> Partial:
        """How it was evaluated."""
        return Partial(None) if self.evaluation is None else self.evaluation.part("protocol")

    @property
    def k(self) -> int:
        """Length of the longest lists that were evaluated: their metrics are shown."""
        return max((k for k in self.protocol.items("k") if isinstance(k, int)), default=20)

    @property
    def method(self) -> str:
        """The method's name."""
        return self.model.method.name

    @property
    def kind(self) -> str:
        """What runs share a colour by: the method's name, or that of the run which `dpaa debias` chose."""
        return self.name if "debias" in self.model.manifest else self.method

    @cached_property
    def metrics(self) -> dict[str, float]:
        """Those that have a value."""
        metrics = Partial(None) if self.evaluation is None else self.evaluation.part("metrics")
        return {name: float(value) for name, value in metrics.content.items() if is_number(value)}

    @cached_property
    def groups(self) -> dict[str, Partial]:
        """`genre=Drama` → items, share of the history, and of the lists of each k."""
        groups = Partial(None) if self.evaluation is None else self.evaluation.part("groups")
        return {name: Partial(group) for name, group in groups.content.items() if isinstance(group, dict)}

    @cached_property
    def lists(self) -> Ints:
        """Items recommended to the family's listed users, as `dpaa recommend` does: (users, k)."""
        model = self.model
        blocks = rank(
            model.method,
            self.family.users,
            self.family.k,
            masked=model.train,
            candidates=model.candidates,
            dial=model.kappa(),
            reranker=model.reranker(),
            cold=ColdUsers.of(model.method.graph, model.fallback),
        )
        return np.concatenate([block.items for block in blocks])

    @cached_property
    def hits(self) -> NDArray[np.bool_]:
        """Which of the recommended items are test items: (users, k)."""
        data = self.family.dataset
        if data is None or not len(data.test):
            return np.zeros(self.lists.shape, dtype=bool)
        keys = self.family.users[:, None].astype(np.int64) * data.n_items + self.lists
        return np.isin(keys, data.test.keys(data.n_items)) & (self.lists >= 0)

    @cached_property
    def exposure(self) -> Ints:
        """How many lists hold each item: (n_items,)."""
        return np.bincount(self.lists[self.lists >= 0], minlength=len(self.model.item_ids))

    @cached_property
    def trace(self) -> Trace | None:
        """Message weights by layer and popularity; None where they are LightGCN's or there are no messages."""
        method = self.model.method
        if not isinstance(method, GraphMethod) or not method.layers:
            return None
        trace = trace_run(self.folder.path)
        weights = [value for layer in trace.weights for value in layer.relative if value is not None]
        return trace if any(abs(value - 1) > ALIKE for value in weights) else None


@dataclass(eq=False)
class Family:
    """Runs on one dataset: only they can be compared."""

    name: str
    fingerprint: str
    dataset: Dataset | None
    """None if it is not where the runs say it was."""
    k: int
    runs: list[Run] = field(default_factory=list)

    @property
    def source(self) -> Dataset | Model:
        """What knows users, items and training pairs: the dataset, else the first run."""
        return self.dataset or self.runs[0].model

    @cached_property
    def counts(self) -> Ints:
        """Training interactions: (n_items,)."""
        train = self.source.train
        return np.bincount(train.item, train.count, minlength=len(self.source.item_ids))

    @cached_property
    def popular(self) -> NDArray[np.bool_]:
        """The most popular items, which have 80% of the interactions: (n_items,)."""
        return popular_items(self.counts)

    @cached_property
    def titles(self) -> pl.Series | None:
        """Titles of the items, from the dataset or the first run that has any."""
        sources = [self.dataset, *(run.model for run in self.runs)]
        return next((one.titles for one in sources if one is not None and one.titles is not None), None)

    def shown(self, item: int) -> Markup:
        """The item with this index, as tables show it."""
        return shown_item(self.source.item_ids[item], None if self.titles is None else self.titles[item])

    @property
    def head_share(self) -> float:
        """Share of the interactions that the top fifth of the items has."""
        return share_of(head(self.counts), self.counts)

    @cached_property
    def deciles(self) -> Ints:
        """Popularity decile of each item, 0 (rare) to 9; −1 without training pair."""
        return popularity_deciles(self.counts)

    @cached_property
    def known_users(self) -> Ints:
        """Indices of the users with training pairs."""
        return np.unique(self.runs[0].model.train.user)

    @cached_property
    def users(self) -> Ints:
        """Those whose lists are made: all with training pairs, or evenly spaced ones."""
        known = self.known_users
        if len(known) <= LISTED_USERS:
            return known
        return known[np.linspace(0, len(known) - 1, LISTED_USERS).round().astype(np.int64)]

    @property
    def users_in_words(self) -> str:
        """Whose lists are counted."""
        total = len(self.known_users)
        return f"all {total:,} users" if total == len(self.users) else f"{len(self.users):,} of {total:,} users"

    def reference(self, run: Run) -> Run | None:
        """The run to compare another with: what it was trained from, else plain LightGCN, else the first."""
        others = [other for other in self.runs if other is not run]
        origin = run.manifest.part("pretrained").text("run")
        candidates = [other for other in others if origin and same_place(origin, other.folder.path)]
        candidates += [other for other in others if other.method == "lightgcn"]
        candidates += self.runs[:1] if run is not self.runs[0] else []
        return next(iter(candidates), None)


@dataclass
class Inputs:
    """Everything on one page; comparisons and audits with the names of their files."""

    families: list[Family] = field(default_factory=list)
    comparisons: list[tuple[str, Partial]] = field(default_factory=list)
    audits: list[tuple[str, Partial]] = field(default_factory=list)
    frontiers: list[Partial] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def runs(self) -> list[Run]:
        """Of all datasets."""
        return [run for family in self.families for run in family.runs]


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
    runs: list[Path] = []
    for path in dict.fromkeys(Path(path) for path in paths):
        if (path / ABOUT_FILE).is_file():
            data = read_dataset(path)
            inputs.families.append(Family(printable(data.name), data.fingerprint, data, k))
        elif (path / CONFIG).is_file() or (path / MANIFEST).is_file():
            runs.append(path)
        elif (path / FRONTIER).is_file():
            _add_json(inputs, path / FRONTIER)
            runs += [path / CHOSEN] if (path / CHOSEN / MANIFEST).is_file() else []
        elif path.exists() and not path.is_dir():
            _add_json(inputs, path)
        elif path.is_dir():
            raise InputError(
                f"{path} is neither a prepared dataset nor a run; name a folder made by `dpaa data` or `dpaa train`"
            )
        else:
            raise InputError(f"there is no {path}; {REMEDY}")
    # The run that `dpaa debias` chose is named after the folder around it: `run` says nothing.
    named = [path.parent if path.name == CHOSEN and (path.parent / FRONTIER).is_file() else path for path in runs]
    for path, name in zip(runs, _names(named), strict=True):
        _add_run(inputs, path, name, k)
    return inputs


def _add_run(inputs: Inputs, path: Path, name: str, k: int) -> None:
    folder = RunFolder(path)
    model = load(folder.path)
    about = model.trained_on
    family = next((family for family in inputs.families if family.fingerprint == str(about.fingerprint)), None)
    if family is None:
        dataset = None
        if about.path is not None and (Path(about.path) / ABOUT_FILE).is_file():
            dataset = read_dataset(about.path)
        if dataset is None or dataset.fingerprint != about.fingerprint:
            dataset = None
            note = f"the dataset of {path} is not where it was, so test items are not marked; name it too on the call"
            inputs.notes.append(note)
        family = Family(printable(about.name or path.name), str(about.fingerprint), dataset, k)
        inputs.families.append(family)
    source = family.source if family.dataset or family.runs else model
    if not (source.user_ids.equals(model.user_ids) and source.item_ids.equals(model.item_ids)):
        raise InputError(f"{path} has other users or items than its dataset {family.name}; train it again")
    content = folder.read_evaluation()
    evaluation, missing = None, "was not evaluated"
    if content is not None:
        # Earlier versions also kept metrics of other lists than the run's own.
        protocol, kept = Partial(content).part("protocol"), model.reranker()
        own = protocol.get("rerank") == (kept.in_words() if kept else None)
        own = own and protocol.get("popularity_dial") in (None, model.kappa())
        missing = "was evaluated with another popularity dial or re-ranker than it keeps"
        evaluation = Partial(content) if own else None
    if evaluation is None:
        inputs.notes.append(f"{path} {missing}, so it has no metrics here; run `dpaa evaluate {path}`")
    family.runs.append(Run(name, folder, model, folder.history(), evaluation, family))


def _add_json(inputs: Inputs, path: Path) -> None:
    content = Partial(read_json(path, LARGE_JSON, REMEDY))
    kind = content.get("kind")
    if kind == "comparison":
        inputs.comparisons.append((printable(path.stem), content))
    elif kind == "audit":
        unclear = [n for n in content.part("numbers").content if not n.startswith("log_") and "@" not in n]
        if unclear:
            raise InputError(
                f"{path} has a number {unclear[0]!r}, which does not say whether it is the log's or the lists': an "
                "earlier version made the file; make it again with `dpaa audit … --json`"
            )
        inputs.audits.append((printable(path.stem), content))
    elif kind == "frontier":
        inputs.frontiers.append(content)
    else:
        raise InputError(
            f"{path} is neither a comparison nor an audit nor a frontier; make one with `dpaa compare … --out "
            "FILE.json`, `dpaa audit … --json` or `dpaa debias`"
        )


def _names(paths: Sequence[Path]) -> list[str]:
    """Short names of folders: the last part, with as many of the parts before it as make them unique."""
    parts = [settled(path).parts for path in paths]
    for length in range(1, max((len(part) for part in parts), default=1) + 1):
        names = [printable("/".join(part[-length:])) for part in parts]
        if len(set(names)) == len(names):
            return names
    return [printable(str(path)) for path in paths]
