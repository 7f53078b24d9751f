"""What a page is made of: datasets, runs, comparisons and audits, told apart by what lies at each path."""

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

from dpaa.comparison.result import Comparison
from dpaa.data.dataset import ABOUT_FILE, Dataset, read_dataset
from dpaa.data.popularity import popular_items, popularity_deciles
from dpaa.errors import InputError
from dpaa.evaluation.concentration import head, share_of
from dpaa.files import LARGE_JSON, read_json, same_place, settled
from dpaa.frontier.debias import JSON, RUN
from dpaa.frontier.result import KIND
from dpaa.methods.graph_method import GraphMethod
from dpaa.ranking.rank import ColdUsers, rank
from dpaa.ranking.reranker import Reranker, told_reranker
from dpaa.report.lenient import lenient
from dpaa.report.records import AuditFile, FrontierFile, Groups, Manifest, Protocol
from dpaa.report.rendering import shown_item
from dpaa.runs.folder import CONFIG, MANIFEST, RunFolder, TrainedOn
from dpaa.runs.model import Model, load
from dpaa.text import printable
from dpaa.trace.run import Trace, trace_run

Ints = NDArray[Any]
LISTED_USERS = 20_000
"""Lists are made for at most so many users: shares over them are exact enough to draw."""
ALIKE = 0.005
"""Relative message weights closer to 1 than this are LightGCN's own: they are shown with two digits."""
WHAT = "name datasets, runs and JSON files of `dpaa compare` or `dpaa audit`"


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run as the page sees it."""

    folder_name: str
    folder: RunFolder
    model: Model
    history: list[dict[str, Any]]
    evaluation: dict[str, Any] | None
    """`metrics.json`: `metrics` and `protocol`; None if the run was not evaluated."""
    family: Family

    @cached_property
    def name(self) -> str:
        """On the page, with what the lists were made with where the run keeps another."""
        other = [] if self.dial is None else [f"dial at {self.dial:g}"]
        kept = self.model.reranker()
        if self.reranker != kept:
            other.append(f"re-ranked by {self.reranker.in_words()}" if self.reranker else "not re-ranked")
        return f"{self.folder_name} ({', '.join(other)})" if other else self.folder_name

    @cached_property
    def manifest(self) -> Manifest:
        """What the run says of itself."""
        return lenient(Manifest, self.model.manifest)

    @cached_property
    def protocol(self) -> Protocol:
        """How it was evaluated."""
        return lenient(Protocol, (self.evaluation or {}).get("protocol"))

    @property
    def method(self) -> str:
        """The method's name."""
        return self.model.method.name

    @property
    def kind(self) -> str:
        """Runs of one kind share a colour: the method's name, of the choice of a trade its own."""
        return self.folder_name if "debias" in self.model.manifest else self.method

    @property
    def metrics(self) -> dict[str, float]:
        """Those that have a value."""
        found = (self.evaluation or {}).get("metrics", {})
        return {name: float(value) for name, value in found.items() if isinstance(value, int | float)}

    @cached_property
    def groups(self) -> dict[str, dict[str, float | None]]:
        """`genre=Drama` → items, share of the history and of the lists of each k; empty where nobody asked."""
        return lenient(Groups, self.evaluation).groups

    @property
    def dial(self) -> float | None:
        """κ the run was evaluated with, where it is not the one that the run keeps."""
        kappa = self.protocol.popularity_dial
        return None if kappa == self.model.kappa() else kappa

    @cached_property
    def reranker(self) -> Reranker | None:
        """The one that the run was evaluated with; of a run that was not evaluated, the one that it keeps."""
        kept, words = self.model.reranker(), self.protocol.rerank
        if self.evaluation is None or (kept is not None and words == kept.in_words()):
            return kept
        return None if words is None else told_reranker(words, self.folder.path)

    @cached_property
    def lists(self) -> Ints:
        """Items recommended to the family's listed users, as `dpaa recommend` gives them.  Returns (users, k).

        Dial and re-ranker are those that the run was evaluated with.
        """
        model = self.model
        blocks = rank(
            model.method,
            self.family.users,
            self.family.k,
            masked=model.train,
            candidates=model.candidates,
            dial=model.kappa(self.dial),
            reranker=self.reranker,
            cold=ColdUsers.of(model.method.graph, model.fallback),
        )
        return np.concatenate([block.items for block in blocks])

    @cached_property
    def exposure(self) -> Ints:
        """How often each item is in the lists.  Returns (n_items,)."""
        return np.bincount(self.lists[self.lists >= 0], minlength=len(self.model.item_ids))

    @cached_property
    def trace(self) -> Trace | None:
        """Message weights by layer and popularity; None where all messages weigh what they weigh in LightGCN."""
        method = self.model.method
        if not isinstance(method, GraphMethod) or not method.layers:
            return None
        found = trace_run(self.folder.path)
        weights = [value for layer in found.weights for value in layer.relative if value is not None]
        return found if any(abs(value - 1) > ALIKE for value in weights) else None


@dataclass(eq=False)
class Family:
    """Runs on one dataset: what they can be compared by."""

    name: str
    fingerprint: str
    dataset: Dataset | None
    """None if it is not where the runs say it was."""
    k: int
    runs: list[Run] = field(default_factory=list)

    @cached_property
    def counts(self) -> Ints:
        """Training interactions of each item, in the order of the runs' items.  Returns (n_items,)."""
        pairs = self.dataset.train if self.dataset is not None else self.runs[0].model.train
        n_items = self.dataset.n_items if self.dataset is not None else len(self.runs[0].model.item_ids)
        return np.bincount(pairs.item, pairs.count, minlength=n_items)

    @cached_property
    def popular(self) -> NDArray[np.bool_]:
        """The most popular items, which have 80 % of the interactions."""
        return popular_items(self.counts)

    @cached_property
    def titles(self) -> pl.Series | None:
        """What people call the items: as the dataset has it, else the first run that knows; None where nobody does."""
        known = [self.dataset, *(run.model for run in self.runs)]
        return next((one.titles for one in known if one is not None and one.titles is not None), None)

    def title(self, item: int) -> str | None:
        """Of the item with this index."""
        return None if self.titles is None else self.titles[item]

    def shown(self, item: int) -> Markup:
        """The item with this index, as tables show it."""
        return shown_item(self.runs[0].model.item_ids[item], self.title(item))

    @property
    def head_share(self) -> float:
        """Share of the interactions that the top fifth of the items has."""
        return share_of(head(self.counts), self.counts)

    @property
    def n_users(self) -> int:
        """Of all splits."""
        return self.dataset.n_users if self.dataset is not None else len(self.runs[0].model.user_ids)

    @cached_property
    def deciles(self) -> Ints:
        """Popularity decile of each item, 0 (rare) to 9; −1 without training pair."""
        return popularity_deciles(self.counts)

    @cached_property
    def users(self) -> Ints:
        """Users with training pairs, all of them or evenly spaced ones."""
        known = np.unique(self.runs[0].model.train.user)
        if len(known) <= LISTED_USERS:
            return known
        return known[np.linspace(0, len(known) - 1, LISTED_USERS).round().astype(np.int64)]

    @property
    def users_in_words(self) -> str:
        """Whose lists are counted."""
        total = len(np.unique(self.runs[0].model.train.user))
        return f"all {total:,} users" if total == len(self.users) else f"{len(self.users):,} of {total:,} users"

    def reference(self, run: Run) -> Run | None:
        """The run to measure another against: what it was trained from, else plain LightGCN, else the first."""
        others = [other for other in self.runs if other is not run]
        origin = run.manifest.pretrained.run
        found = [other for other in others if origin and same_place(origin, other.folder.path)]
        found += [other for other in others if other.method == "lightgcn"]
        found += self.runs[:1] if run is not self.runs[0] else []
        return next(iter(found), None)


@dataclass
class Inputs:
    """Everything on one page."""

    families: list[Family] = field(default_factory=list)
    comparisons: list[tuple[str, Comparison]] = field(default_factory=list)
    audits: list[tuple[str, AuditFile]] = field(default_factory=list)
    frontiers: list[FrontierFile] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def runs(self) -> list[Run]:
        """Of all datasets."""
        return [run for family in self.families for run in family.runs]


def gather(paths: Iterable[str | Path], k: int = 20) -> Inputs:
    """Read what lies at the paths: prepared datasets, runs, and JSON of `dpaa compare` and `dpaa audit`."""
    found = Inputs()
    datasets: list[Dataset] = []
    runs: list[Path] = []
    for path in dict.fromkeys(Path(path) for path in paths):
        if (path / ABOUT_FILE).is_file():
            datasets.append(read_dataset(path))
        elif (path / CONFIG).is_file() or (path / MANIFEST).is_file():
            runs.append(path)
        elif (path / JSON).is_file():
            _add_json(found, path / JSON)
            if (path / RUN / MANIFEST).is_file():
                runs.append(path / RUN)
        elif path.exists() and not path.is_dir():
            _add_json(found, path)
        elif path.is_dir():
            raise InputError(
                f"{path} is neither a prepared dataset nor a run; name a folder made by `dpaa data` or `dpaa train`"
            )
        else:
            raise InputError(f"there is no {path}; {WHAT}")
    found.families = [Family(printable(data.name), data.fingerprint, data, k) for data in datasets]
    # The run of a trade is called by the trade's folder: `run` says nothing.
    called = [path.parent if path.name == RUN and (path.parent / JSON).is_file() else path for path in runs]
    for path, name in zip(runs, _names(called), strict=True):
        _add_run(found, path, name, k)
    return found


def _add_run(found: Inputs, path: Path, name: str, k: int) -> None:
    folder = RunFolder(path)
    model = load(folder.path)
    about = model.trained_on
    fingerprint = str(about.fingerprint)
    family = next((family for family in found.families if family.fingerprint == fingerprint), None)
    if family is None:
        dataset = _dataset_of(path, about, fingerprint, found.notes)
        family = Family(printable(about.name or path.name), fingerprint, dataset, k)
        found.families.append(family)
    _check_ids(family, model, path)
    evaluation = folder.read_evaluation()
    if evaluation is None:
        found.notes.append(f"{path} was not evaluated, so it has no metrics here; run `dpaa evaluate {path}`")
    family.runs.append(Run(name, folder, model, folder.history(), evaluation, family))


def _check_ids(family: Family, model: Model, path: Path) -> None:
    """Indices of runs on one dataset must mean the same users and items."""
    one = family.dataset or (family.runs[0].model if family.runs else model)
    if not (one.user_ids.equals(model.user_ids) and one.item_ids.equals(model.item_ids)):
        raise InputError(f"{path} has other users or items than its dataset {family.name}; train it again")


def _dataset_of(path: Path, about: TrainedOn, fingerprint: str, notes: list[str]) -> Dataset | None:
    """The dataset a run was trained on, if it is still there and still the same."""
    if about.path is not None and (Path(about.path) / ABOUT_FILE).is_file():
        dataset = read_dataset(about.path)
        if dataset.fingerprint == fingerprint:
            return dataset
    notes.append(f"the dataset of {path} is not where it was, so test items are not marked; name it too on the call")
    return None


def _add_json(found: Inputs, path: Path) -> None:
    content = read_json(path, LARGE_JSON, WHAT)
    if content.get("kind") == "comparison":
        found.comparisons.append((printable(path.stem), lenient(Comparison, content)))
    elif content.get("kind") == "audit":
        audit = lenient(AuditFile, content)
        strange = [name for name in audit.numbers if not name.startswith("log_") and "@" not in name]
        if strange:
            raise InputError(
                f"{path} has a number {strange[0]!r}, which does not say whether it is the log's or the lists': an "
                "earlier version made the file; make it again with `dpaa audit … --json`"
            )
        found.audits.append((printable(path.stem), audit))
    elif content.get("kind") == KIND:
        found.frontiers.append(lenient(FrontierFile, content))
    else:
        raise InputError(
            f"{path} is neither a comparison nor an audit nor a frontier; make one with `dpaa compare … --out "
            "FILE.json`, `dpaa audit … --json` or `dpaa debias`"
        )


def _names(paths: Sequence[Path]) -> list[str]:
    """Short names of folders: the last part, with as many of the parts before it as tell them apart."""
    parts = [settled(path).parts for path in paths]
    for length in range(1, max((len(part) for part in parts), default=1) + 1):
        names = [printable("/".join(part[-length:])) for part in parts]
        if len(set(names)) == len(names):
            return names
    return [printable(str(path)) for path in paths]
