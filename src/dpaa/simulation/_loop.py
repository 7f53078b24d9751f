"""`dpaa simulate`: recommendations become clicks, clicks become training data.

Each round a policy recommends k items to every user who likes something that the log does not have, users click by a
stated model, the clicks join the log, and the policy is refitted, or not.  Nothing a user clicked is shown again, nor
what was shown without a click (`ClickModel.repeat`).

Taste is a set of liked pairs, from one of two sources:

- observed: all pairs of a dataset of (nearly) complete exposure, such as KuaiRec's fully observed matrix.  No
  preference is invented; the first log is a biased draw of stated severity from them (`dpaa.data.sources.severity`).
- simulated: the built-in world (`dpaa.data.sources.world`).  Each pair is liked with the world's probability, drawn
  once.

Validation pairs are those of the source, from unbiased exposure; they stay as they are.  The test split of a round is
all that users like and that is neither in the log nor in validation.  So round 0 is what `dpaa.evaluate` measures.
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from scipy.special import stdtrit
from torch import Tensor

from dpaa._io import temporary_folder
from dpaa._text import finite, name_and_values
from dpaa.data.dataset import Dataset
from dpaa.data.ids import SPLITS, Column, Floats, Mask
from dpaa.data.pairs import Pairs, popular_items
from dpaa.data.sources.severity import distinct_pairs, with_severity
from dpaa.data.sources.world import simulate_world
from dpaa.debiasing import debias
from dpaa.errors import InputError, need_type, need_whole
from dpaa.evaluation.bias import TASTES, gini
from dpaa.evaluation.evaluator import Evaluator
from dpaa.evaluation.metrics import at_k
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods import METHODS, find_method
from dpaa.methods.base import Histories, Method, Scorer, attach, fitted
from dpaa.methods.graph_method import GraphMethod
from dpaa.ranking.reranker import Reranker, parse_reranker
from dpaa.runs.fit import fit_method
from dpaa.runs.folder import RunFolder
from dpaa.runs.model import Model, load, make_method

Keys = NDArray[np.int64]
"""Pairs as ascending `user · n_items + item`."""
Refit = Literal["warm", "cold", "never"]
BOUNDS = ("oracle", "random")
"""Policies that no recommender is: all that users like first, and any order."""
DEBIAS = "debias"
KEPT_ACCURACY = 0.98
CONFIDENCE = 0.95
REPORTED = ("ndcg", "recall", "recall/niche", "coverage", "gini", "arp")
"""Metrics of `dpaa evaluate` that every round has."""


@dataclass(frozen=True)
class ClickModel:
    """Click model.  By default users examine all ranks and click exactly the items they like.

    Parameters
    ----------
    position : η of position bias, P(place r is looked at) = r^−η; 0 = no bias, as in a feed of one item at a time; 1 is
        usual for result pages (Joachims et al., WSDM 2017)
    slots : places that a user looks at; None = the whole list
    noise : P(click) of a place that is looked at and holds nothing the user likes
    organic : share of what users come across without the recommender (search, friends), in proportion to the first
        log's popularity; a fifth of viewing at Netflix (Gomez-Uribe & Hunt, TMIS 2015)
    repeat : whether an item that was shown without a click may be shown again
    """

    position: float = 0.0
    slots: int | None = None
    noise: float = 0.0
    organic: float = 0.0
    repeat: bool = False

    def __post_init__(self) -> None:
        if self.slots is not None:
            need_whole(self.slots, "slots")
        for name, high in (("position", 10.0), ("noise", 1.0), ("organic", 0.99)):
            if not 0 <= getattr(self, name) <= high:
                raise InputError(f"{name} of the click model must be from 0 to {high:g}, got {getattr(self, name):g}")

    def clicked(self, liked: Mask, chance: Floats) -> tuple[Mask, Mask]:
        """Draw which ranks are examined, and which are clicked.

        Parameters
        ----------
        liked : (users, k) whether each place holds an item that its user likes
        chance : (2, users, k) uniform random numbers

        Returns
        -------
        (users, k) twice
        """
        rank = np.arange(1, liked.shape[1] + 1)
        seen = (chance[0] < rank**-self.position) & (rank <= (self.slots or len(rank)))
        return seen, seen & (liked | (chance[1] < self.noise))

    def in_words(self) -> str:
        """Describe the model in a sentence.

        Returns
        -------
        every parameter with its value
        """
        slots = "all places" if self.slots is None else f"{self.slots} places"
        shown = "shown again" if self.repeat else "not shown again"
        return (
            f"click model: users look at {slots}, position bias η = {self.position:g}, noise {self.noise:g}, "
            f"organic share {self.organic:g}; what was not clicked is {shown}"
        )


@dataclass(frozen=True, eq=False)
class _Taste:
    """Liked pairs, and the log that a simulation starts with."""

    data: Dataset
    liked: Keys

    def at(self, log: Keys) -> Dataset:
        """The data of a round: the log to train on, all else that users like to test."""
        n = self.data.n_items
        rest = np.setdiff1d(self.liked, np.union1d(log, self.data.valid.keys(n)), assume_unique=True)
        train, test = Pairs.from_keys(log, n), Pairs.from_keys(rest, n)
        return replace(self.data, train=train, test=test, columns={}, path=None)

    @property
    def matrix(self) -> Tensor:
        """(n_users, n_items) bool."""
        table = torch.zeros(self.data.n_users * self.data.n_items, dtype=torch.bool)
        table[torch.from_numpy(self.liked)] = True
        return table.view(self.data.n_users, self.data.n_items)


def _taste(source: Dataset | str, severity: float, seed: int) -> _Taste:
    """Draw the liked pairs and the first log of one seed."""
    if isinstance(source, str):
        size = re.fullmatch(r"world(:(\d+)x(\d+))?", source)
        if size is None:
            raise InputError(f"the source must be a dataset, world or world:USERSxITEMS, got {source!r}")
        world = simulate_world(int(size[2] or 2000), int(size[3] or 1500), severity, seed)
        data = replace(world.dataset.with_items(world.publishers), notes=world.dataset.notes)
        rng = np.random.default_rng([seed, 3])
        drawn = np.flatnonzero(rng.random(world.affinity.shape, dtype=np.float32) < world.affinity)
    else:
        pairs = distinct_pairs(source)
        data = with_severity(pairs, severity, seed, f"{source.name} at severity {severity:g}")
        if source.attributes is not None:
            data = replace(data, attributes=source.attributes.aligned(source.item_ids, data.item_ids))
        user, item = (pairs[name].rank("dense").to_numpy().astype(np.int64) - 1 for name in (Column.USER, Column.ITEM))
        drawn = np.sort(user * data.n_items + item)
    known = [data.split(split).keys(data.n_items) for split in SPLITS]
    taste = _Taste(data, np.unique(np.concatenate([drawn, *known])))
    return replace(taste, data=taste.at(known[0]))


class _Bound(Method):
    """Fixed scores, for the bounds `oracle` and `random`."""

    table: Tensor = fitted()

    def scorer(self, items: Tensor | None = None, histories: Histories | None = None) -> Scorer:
        """Return the rows of the users; there are no unseen users here."""
        assert histories is None
        table = self.table if items is None else self.table[:, items]
        return lambda index: table[index].float()


@dataclass(frozen=True, eq=False)
class _Policy:
    """A policy: how it builds lists, and whether its model is refitted between rounds."""

    name: str
    method: Method
    kappa: float = 0.0
    reranker: Reranker | None = None
    refit: Refit = "warm"
    model: Model | None = None
    """The first model, where choosing the policy trained it already."""

    def fitted(self, taste: _Taste, data: Dataset, before: Model | None, rng: np.random.Generator) -> Method | Model:
        """Fit the model of a round, or keep the last one."""
        if self.name in BOUNDS:
            bound: _Bound = attach(self.method, BipartiteGraph.from_pairs(data.train, data.n_users, data.n_items))
            size = data.n_users, data.n_items
            bound.table = taste.matrix if self.name == "oracle" else torch.from_numpy(rng.random(size, np.float32))
            return bound
        if before is None and self.model is not None:
            return self.model
        if before is not None and self.refit == "never":
            return before
        method = make_method(data, self.method, {})
        warm = before if isinstance(method, GraphMethod) and self.refit == "warm" else None
        return fit_method(method, data, dial=False, warm_start=warm)


def _policy(text: str, data: Dataset, seed: int) -> _Policy:
    """Read `METHOD|RUN|debias|oracle|random[,NAME=VALUE…][+RERANKER[,NAME=VALUE…]]`."""
    head, plus, rerank = text.partition("+")
    name, params = name_and_values(head, f"the policy {text!r}", "METHOD,NAME=VALUE+RERANKER,NAME=VALUE")
    refit: Any = params.pop("refit", "warm")
    if refit not in get_args(Refit):
        raise InputError(f"refit of the policy {text!r} must be one of {', '.join(get_args(Refit))}, got {refit!r}")
    reranker = parse_reranker(rerank) if plus else None
    if name in BOUNDS:
        return _Policy(name, _Bound(), reranker=reranker)
    if name == DEBIAS:
        return _chosen(text, params, refit, data, seed)
    if name not in METHODS and RunFolder(name).finished:
        run = load(name)
        method = type(run.method)(**run.method.get_params({"seed"}) | {"seed": seed} | params)
        return _Policy(text, method, run.kappa(), reranker if plus else run.reranker(), refit)
    return _Policy(text, find_method(name)(**{"seed": seed} | params), 0.0, reranker, refit)


def _chosen(text: str, params: Mapping[str, str], refit: Any, data: Dataset, seed: int) -> _Policy:
    """The choice of `dpaa debias` on the first log; hyperparameters beside its options are those of the methods."""
    settings = dict(params)
    methods, kept = settings.pop("methods", ""), settings.pop("keep_accuracy", KEPT_ACCURACY)
    try:
        keep = float(kept)
    except ValueError:
        raise InputError(f"keep_accuracy of the policy {text!r} must be a number, got {kept!r}") from None
    with temporary_folder("dpaa-simulate-") as folder:
        debias(folder, data, keep_accuracy=keep, methods=methods.split() or None, settings=settings, seed=seed)
        model = load(folder)
    return _Policy(text, model.method, model.kappa(), model.reranker(), refit, replace(model, path=None))


@dataclass(frozen=True, eq=False)
class Simulation:
    """Result of a simulation: a row per policy, seed and round.

    Parameters
    ----------
    frame : `policy, seed, round`, the metrics of the round, and what has come about by its end:
        `click_rate` (clicks per place), `satisfaction` (share of what users like, beyond the first log, that they were
        shown and looked at so far; mean over users), `satisfaction_worst` (of the taste group with the least),
        `never_shown` (share of the catalogue in no list so far); `log_pairs`, `log_gini`, `log_arp` (mean popularity of
        a logged pair) and `log_items_for_80` (share of the items that have 80% of the log) are those that the round
        began with; `cpu_seconds`
    about : source, severity, click model, rounds, k, seeds, and what each policy is
    """

    frame: pl.DataFrame
    about: dict[str, Any]

    @property
    def policies(self) -> list[str]:
        """Their names, as given."""
        return self.frame["policy"].unique(maintain_order=True).to_list()

    def over_seeds(self, metric: str, policy: str) -> list[tuple[float, float]]:
        """Mean over seeds and half the width of its 95% interval (Student's t), by round.

        Parameters
        ----------
        metric : a column of the frame
        policy : by name

        Returns
        -------
        a pair per round; the width is NaN with one seed
        """
        rows = self.frame.filter(pl.col("policy") == policy).group_by("round").agg(pl.col(metric)).sort("round")
        seeds = np.array(rows[metric].to_list())  # (rounds, seeds)
        n = seeds.shape[1]
        deviation = seeds.std(axis=1, ddof=1) if n > 1 else np.full(len(seeds), np.nan)
        wide = stdtrit(n - 1, (1 + CONFIDENCE) / 2) * deviation / np.sqrt(n)
        return list(zip(seeds.mean(axis=1).tolist(), wide.tolist(), strict=True))

    def sentences(self) -> list[str]:
        """Summarise the result of each policy in one sentence.

        Returns
        -------
        sentences, in the order of the policies
        """
        sentences = []
        for policy in self.policies:
            first, last = (
                {name: self.over_seeds(name, policy)[index][0] for name in ("log_gini", "never_shown", "satisfaction")}
                for index in (0, -1)
            )
            turn = "rose" if last["log_gini"] > first["log_gini"] else "fell"
            sentences.append(
                f"{policy}: after {self.about['rounds']} rounds {1 - last['never_shown']:.0%} of the catalogue has "
                f"been shown, and users have found {last['satisfaction']:.0%} of the items they like; the log's Gini "
                f"{turn} from {first['log_gini']:.2f} to {last['log_gini']:.2f}"
            )
        return sentences

    def as_json(self) -> dict[str, Any]:
        """Describe the simulation for `--json`.

        Returns
        -------
        about, sentences, and the rows of the frame
        """
        return dict(finite({"about": self.about, "sentences": self.sentences(), "rounds": self.frame.to_dicts()}))


def simulate(
    source: Dataset | str,
    policies: Sequence[str],
    *,
    rounds: int = 10,
    k: int = 20,
    severity: float = 1.0,
    seeds: int | Sequence[int] = 1,
    clicks: ClickModel | None = None,
    group_by: str | None = None,
    say: Callable[[str], None] = lambda _line: None,
) -> Simulation:
    """Let policies recommend, users click and models be refitted, round after round.

    Parameters
    ----------
    source : a dataset of (nearly) complete exposure, all pairs of which are what users like; `"world"` or
        `"world:2000x1500"` (users × items) for the built-in world
    policies : `METHOD[,NAME=VALUE…][+RERANKER[,NAME=VALUE…]]` such as `"lightgcn,epochs=50+dial,kappa=-0.4"`; a run
        folder (its method, hyperparameters, dial and re-ranker); `"debias[,keep_accuracy=0.98][,methods=ease
        lightgcn]"`, chosen once, on the first log; the bounds `"oracle"` and `"random"`.  Each takes `refit=warm` (the
        default), `cold` or `never`
    rounds : rounds of clicks; the last round's lists are measured too
    k : length of the lists
    severity : bias of the first log, from 0 (none)
    seeds : how many, from 0, or which; each has a world, first log and clicks of its own, the same for all policies
    clicks : how users look and click
    group_by : column of the items, for the exposure of its groups
    say : gets lines of progress

    Returns
    -------
    the trajectories
    """
    if not isinstance(source, str):
        need_type(source, Dataset, "source", "read one with dpaa.read_dataset, or give 'world'")
    for value, name in ((rounds, "rounds"), (k, "k")):
        need_whole(value, name)
    which = (
        range(need_whole(seeds, "seeds")) if isinstance(seeds, int) else [need_whole(seed, "seed", 0) for seed in seeds]
    )
    if not which:
        raise InputError("name at least one seed")
    if not policies or len(set(policies)) < len(policies):
        raise InputError("name at least one policy, and each once")
    clicks = clicks or ClickModel()
    rows: list[dict[str, Any]] = []
    chosen: dict[str, list[str]] = {}
    for seed in which:
        taste = _taste(source, severity, seed)
        for text in policies:
            policy = _policy(text, taste.data, seed)
            reranked = [] if policy.reranker is None else [policy.reranker.in_words()]
            dial = [f"dial {policy.kappa:g}"] if policy.kappa else []
            chosen.setdefault(text, []).append(", ".join([repr(policy.method), *dial, *reranked]))
            for row in _loop(taste, policy, rounds, k, clicks, seed, group_by):
                rows.append({"policy": text, "seed": seed} | row)
                say(f"{text}, seed {seed}, round {row['round']}: click rate {row['click_rate']:.4f}")
    about = {"source": taste.data.about["source"], "severity": severity, "rounds": rounds, "k": k, "seeds": list(which)}
    about |= {"clicks": asdict(clicks), "in_words": clicks.in_words(), "group_by": group_by, "policies": chosen}
    return Simulation(pl.DataFrame(rows, infer_schema_length=None), about)


def _loop(
    taste: _Taste, policy: _Policy, rounds: int, k: int, clicks: ClickModel, seed: int, group_by: str | None
) -> Iterator[dict[str, Any]]:
    """Run the rounds of one policy."""
    first = taste.data
    n_users, n_items = first.n_users, first.n_items
    log, shown, model = first.train.keys(n_items), np.zeros(0, dtype=np.int64), None
    n_found, n_liked = np.zeros(n_users), np.bincount(np.setdiff1d(taste.liked, log) // n_items, minlength=n_users)
    taste_of = Evaluator(first, k).truth.taste_of_users
    for number in range(rounds + 1):
        # The same draws for every policy of a seed: what differs is theirs, and not chance.
        began, rng = time.process_time(), np.random.default_rng([seed, number, 7])
        data = taste.at(log) if number else first
        if not len(data.test):
            return
        fitted_now = policy.fitted(taste, data, model, rng)
        model, method = (fitted_now, fitted_now.method) if isinstance(fitted_now, Model) else (None, fitted_now)
        evaluator = Evaluator(data, k, group_by=group_by)
        if number and not clicks.repeat:
            evaluator.masked = Pairs.from_keys(np.union1d(log, shown), n_items)
            evaluator.truth = replace(evaluator.truth, masked=(evaluator.masked.user, evaluator.masked.item))
        if policy.name in BOUNDS:  # they know users without a log too, who else get the most popular items
            evaluator.protocol = replace(evaluator.protocol, cold_users=0)
        result = evaluator.evaluate(method, policy.kappa, policy.reranker)
        owner, filled = evaluator.users[:, None].astype(np.int64), result.lists >= 0
        keys = owner * n_items + np.maximum(result.lists, 0)
        likes = np.isin(keys, taste.liked) & filled
        seen, clicked = clicks.clicked(likes, rng.random((2, *keys.shape)))
        shown = np.union1d(shown, keys[filled])
        n_found += np.bincount((keys // n_items)[seen & likes], minlength=n_users)
        counts = np.bincount(log % n_items, minlength=n_items)
        share = np.divide(n_found, n_liked, out=np.full(n_users, np.nan), where=n_liked > 0)
        by_taste = [share[(taste_of == index) & (n_liked > 0)] for index in range(len(TASTES))]
        reported = {at_k(name, k) for name in REPORTED}
        yield (
            {"round": number}
            | {name: value for name, value in result.metrics.items() if name in reported or name.startswith("exposure")}
            | {
                "click_rate": float((clicked & filled).sum() / max(filled.sum(), 1)),
                "satisfaction": float(np.nanmean(share)),
                "satisfaction_worst": min(float(part.mean()) for part in by_taste if len(part)),
                "never_shown": float(1 - len(np.unique(shown % n_items)) / n_items),
                "log_pairs": len(log),
                "log_gini": gini(counts),
                "log_arp": float((counts**2).sum() / counts.sum()),
                "log_items_for_80": float(popular_items(counts).mean()),
                "cpu_seconds": time.process_time() - began,
            }
        )
        log = np.union1d(log, np.concatenate([keys[clicked & filled], _organic(taste, clicks, k, rng)]))


def _organic(taste: _Taste, clicks: ClickModel, k: int, rng: np.random.Generator) -> Keys:
    """Draw liked items that users find without the recommender, in proportion to popularity."""
    each = round(k * clicks.organic / (1 - clicks.organic))
    counts = np.bincount(taste.data.train.item, minlength=taste.data.n_items) + 1.0
    items = rng.choice(len(counts), (taste.data.n_users, each), p=counts / counts.sum())
    return np.intersect1d((np.arange(taste.data.n_users)[:, None] * len(counts) + items).ravel(), taste.liked)
