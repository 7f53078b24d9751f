"""A method on the graph of a dataset, and the fitted model with the user's own ids."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import polars as pl
import torch

from dpaa.data.attributes import TITLE
from dpaa.data.dataset import Dataset
from dpaa.data.ids import IDS, Column, Ints, Mask, check_ids, encode, look_up
from dpaa.data.shards import Shard
from dpaa.data.tables import as_table
from dpaa.errors import InputError, need_whole
from dpaa.evaluation.dial_curve import LARGEST_DIAL, SUGGESTED, DialCurve, active_kappa
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.graph.kernels import top_k
from dpaa.methods import find_method
from dpaa.methods.base import Method, Randomised, attach
from dpaa.ranking.dial import DialVectors, dialled
from dpaa.ranking.rank import RankedBlock, Ranker, rank, users_at_once
from dpaa.ranking.reranker import Reranker, parse_reranker, stored_reranker
from dpaa.runs import lists as _lists
from dpaa.runs.folder import RunFolder, RunRecord, save_model
from dpaa.runs.lists import RANK, SCORE, SOURCE, Dial, Ids, ListOptions, Lists, Rerank

BLOCK_VECTORS = 65_536
"""Users or items whose vectors are exported at once."""
BLOCK_ITEMS = 1024
"""Items whose similar items are computed at once."""
SIMILAR = "similar_item_id"


@dataclass(frozen=True, eq=False, repr=False)
class Model(RunRecord):
    """Scores, recommendations and similar items, in the ids of the log."""

    def __repr__(self) -> str:
        return f"Model({self.method.name}: {len(self.user_ids):,} users × {len(self.item_ids):,} items)"

    def recommend(
        self,
        users: Ids | None = None,
        k: int = 20,
        *,
        histories: pl.DataFrame | None = None,
        **how: Unpack[ListOptions],
    ) -> pl.DataFrame:
        """Recommend the k best items to users.

        Parameters
        ----------
        users : ids; default: all users of the log
        k : length of the lists
        histories : `user_id, item_id` of users that the model does not know; others of them get the popularity list
        how : filters, popularity dial and re-ranker, as in `ListOptions`

        Returns
        -------
        `user_id, item_id, score, rank` (rank from 1), users in the given order; `title` where the items have titles;
        `source` (`model`, `history` or `popularity`) where some users are not known to the model
        """
        lists = self.lists(users, k, histories=histories, **how)
        return pl.concat([pl.DataFrame(schema=lists.schema), *lists.blocks])

    def recommend_for(self, history: Ids, k: int = 20, **how: Unpack[ListOptions]) -> pl.DataFrame:
        """Recommend the k best items to one user that the model does not know.

        Parameters
        ----------
        history : ids of the items taken so far
        k : length of the list
        how : as in `ListOptions`

        Returns
        -------
        `item_id, score, rank`, and `title` where the items have titles
        """
        taken = check_ids(history, self.item_ids, "item").alias(Column.ITEM)
        if not len(taken):
            raise InputError("the history is empty; give at least one item")
        table = pl.DataFrame([pl.Series(Column.USER, np.zeros(len(taken), dtype=np.int64)), taken])
        return self.recommend(None, k, histories=table, **how).drop(Column.USER, SOURCE)

    def lists(
        self,
        users: Ids | None = None,
        k: int = 20,
        *,
        histories: pl.DataFrame | None = None,
        shard: Shard | None = None,
        **how: Unpack[ListOptions],
    ) -> Lists:
        """Lists of `recommend` a block of users at a time, so that any number of users fits in memory.

        Parameters
        ----------
        users, k, histories, how : as in `recommend`; with histories alone, all of their users
        shard : only this part of the users; the lists of all shards, one after the other, are the whole, bit by bit

        Returns
        -------
        blocks, their columns, and notes on unknown ids
        """
        if unknown := how.keys() - ListOptions.__annotations__.keys():
            raise TypeError(f"recommendations have no option {min(unknown)!r}")
        k = min(need_whole(k, "k"), max(len(self.item_ids), 1))
        people = _lists.people_of(users, histories, self.user_ids, self.item_ids, self._warm)
        kappa, reranker = self.kappa(how.get("popularity_dial")), self.reranker(how.get("rerank", "run"))
        if shard is not None and reranker is not None and reranker.together:
            raise InputError(f"{reranker.name} ranks all users at once, so their lists cannot be made in shards")
        candidates, notes = self._allowed(how.get("items"), how.get("exclude", ()), how.get("only") or {})
        quotas = self.columns.quotas(how.get("at_most") or {}, how.get("at_least") or {})
        pairs = how.get("exclude_pairs")
        excluded = None if pairs is None else _lists.excluded_pairs(pairs, people, self.item_ids)
        n_items = len(self.item_ids)

        def rank_source(source: int, members: Ints) -> Iterator[RankedBlock]:
            index = people.index[members]
            if source == _lists.BY_POPULARITY:
                masked = _lists.masked_pairs(None, excluded, members, index)
                ranker = Ranker(n_items, torch.device("cpu"), masked, candidates, quotas)
                return (ranker.rank_popular(self.fallback, block, k) for block, _ in ranker.blocks(index))
            own = people.histories if source == _lists.BY_HISTORY else None
            taken = None if how.get("seen") else self.train if own is None else own.pairs
            return rank(
                self.method,
                index,
                k,
                masked=_lists.masked_pairs(taken, excluded, members, index),
                candidates=candidates,
                histories=own,
                dial=kappa,
                prepared=self.prepared_dial if kappa else None,
                reranker=reranker,
                quotas=quotas,
            )

        schema = self.recommendation_schema | {Column.USER: people.ids.dtype}
        schema |= {SOURCE: pl.String} if people.marked else {}
        part = None if shard is None else shard.rows(len(people.ids))
        blocks = people.blocks(rank_source, users_at_once(n_items, candidates), part)
        frames = (self._frame(where, block, people) for where, block in blocks)
        return Lists(frames, schema, [*people.notes, *notes])

    def score(self, pairs: Any, popularity_dial: Dial = None) -> pl.DataFrame:
        """Score pairs of a user and an item, as `recommend` does before a re-ranker.

        Parameters
        ----------
        pairs : dataframe with columns `user_id` and `item_id`
        popularity_dial : as in `ListOptions`

        Returns
        -------
        `user_id, item_id, score` in the given order; null where the item is unknown or the user has no training pairs
        """
        frame = _lists.pairs_frame(as_table(pairs, "pairs").frame, "pairs").select(IDS)
        user, item = (
            encode(check_ids(frame[column], ids, column.removesuffix("_id")), ids)
            for column, ids in zip(IDS, (self.user_ids, self.item_ids), strict=True)
        )
        rows = np.flatnonzero((user >= 0) & (item >= 0) & self._warm[user])
        scores, kappa = np.full(len(frame), np.nan, dtype=np.float32), self.kappa(popularity_dial)
        scorer = dialled(self.method, kappa, prepared=self.prepared_dial if kappa else None)
        users, where = np.unique(user[rows], return_inverse=True)
        for first in range(0, len(users), step := users_at_once(len(self.item_ids), None)):
            block = scorer(torch.from_numpy(users[first : first + step].astype(np.int64)).to(self.method.graph.device))
            here = (where >= first) & (where < first + step)
            scores[rows[here]] = block.cpu().numpy()[where[here] - first, item[rows[here]]]
        return frame.with_columns(pl.Series(SCORE, scores).fill_nan(None))

    def similar_items(self, items: Ids, k: int = 10) -> pl.DataFrame:
        """The k items most similar to each of these, by the cosine of their vectors.

        Parameters
        ----------
        items : ids
        k : similar items of each

        Returns
        -------
        `item_id, similar_item_id, score, rank`, and `title` of the similar item where the items have titles
        """
        # Looked up before anything is computed: an unknown id is refused at once.
        index, unit = look_up(items, self.item_ids, "item"), self.unit_vectors
        k = min(need_whole(k, "k"), len(self.item_ids) - 1)
        frames = []
        for first in range(0, max(len(index), 1), BLOCK_ITEMS):
            some = index[first : first + BLOCK_ITEMS].astype(np.int64)
            block = torch.from_numpy(some).to(unit.device)
            cosines = unit[block] @ unit.T
            cosines[torch.arange(len(block)), block] = -torch.inf
            values, similar = top_k(cosines, k)
            owners = self.item_ids.gather(some).alias(Column.ITEM)
            frames.append(self._table(owners, SIMILAR, similar.cpu().numpy(), values.cpu().numpy()))
        return pl.concat(frames)

    def kappa(self, dial: Dial = None) -> float:
        """κ of the popularity dial.

        Parameters
        ----------
        dial : a number; None and "run" are the one that the run keeps

        Returns
        -------
        κ
        """
        if dial is None or dial == "run":
            return active_kappa(self.manifest.get("dial"))
        try:
            kappa = float(dial)
        except (TypeError, ValueError, OverflowError):
            kappa = float("nan")
        if not abs(kappa) <= LARGEST_DIAL:
            allowed = f"`run` or a number from −{LARGEST_DIAL:g} to {LARGEST_DIAL:g}"
            raise InputError(f"the popularity dial must be {allowed}, got {dial!r}")
        return kappa

    def reranker(self, rerank: Rerank = "run") -> Reranker | None:
        """The re-ranker that makes lists from scores.

        Parameters
        ----------
        rerank : "run" is the one that the run keeps, other text is read like `--rerank`

        Returns
        -------
        the re-ranker, or None
        """
        if isinstance(rerank, str) and rerank.strip().lower() == "run":
            return stored_reranker(self.manifest.get("rerank"), self.path or self)
        return parse_reranker(rerank) if isinstance(rerank, str) else rerank

    @property
    def dial_curve(self) -> DialCurve | None:
        """The popularity dial's curve on validation, as the manifest has it; None for a run without."""
        stored = self.manifest.get("dial")
        drawn = stored is not None and not (isinstance(stored, dict) and stored.get(SUGGESTED, 0) is None)
        return DialCurve.from_json(stored) if drawn else None

    def save(self, folder: str | Path, overwrite: bool = False) -> None:
        """Write a run folder; `dpaa.load` reads it back.

        Parameters
        ----------
        folder : where to
        overwrite : whether a run there is replaced
        """
        save_model(self, folder, overwrite)

    @property
    def recommendation_schema(self) -> dict[str, pl.DataType | type[pl.DataType]]:
        """Columns and types of a recommendation table."""
        schema: dict[str, pl.DataType | type[pl.DataType]] = {Column.USER: self.user_ids.dtype}
        schema |= {Column.ITEM: self.item_ids.dtype, SCORE: pl.Float32, RANK: pl.Int32}
        return schema if self.titles is None else schema | {TITLE: pl.String}

    @cached_property
    def unit_vectors(self) -> torch.Tensor:
        """(n_items, d) item vectors of length 1, whose inner products are the cosines of `similar_items`."""
        vectors = self.method.item_vectors()
        if vectors is None:
            raise InputError(f"method {self.method.name} has no item vectors to compare; use a trained method")
        return torch.nn.functional.normalize(vectors, dim=1)

    @cached_property
    def prepared_dial(self) -> DialVectors | None:
        """Vectors of the popularity dial, computed on first use: about as large as the table of item vectors."""
        return DialVectors.of(self.method)

    @cached_property
    def columns(self) -> _lists.ItemColumns:
        """Columns of the items as limits of lists."""
        return _lists.ItemColumns(self.attributes)

    @cached_property
    def fallback(self) -> torch.Tensor:
        """(n_items,) float32: recent popularity, training counts without times; ranks the list of unknown users."""
        counts = self.method.graph.item_degree.cpu()
        return counts if self.popularity is None else torch.tensor(self.popularity, dtype=torch.float32)

    @cached_property
    def _warm(self) -> Mask:
        """Whether users have training pairs: of validation alone, a user has a vector of noise."""
        return np.bincount(self.train.user, minlength=len(self.user_ids)) > 0

    def _allowed(self, items: Ids | None, exclude: Ids, only: Mapping[str, object]) -> tuple[Ints | None, list[str]]:
        """Indices of the items that may be listed, None = all; notes on unknown ids."""
        denied, notes = _lists.known_ids(exclude, self.item_ids, "item")
        allowed = self.candidates
        if items is not None:
            listed, more = _lists.known_ids(items, self.item_ids, "item")
            allowed, notes = np.unique(listed), [*notes, *more]
        if len(denied) or only:
            some = np.arange(len(self.item_ids)) if allowed is None else allowed
            allowed = self.columns.allowed(only, some[~np.isin(some, denied)])
        if allowed is not None and not len(allowed):
            raise InputError("no item is left to recommend; allow more items or exclude fewer")
        return allowed, notes

    def _frame(self, where: slice, block: RankedBlock, people: _lists.People) -> pl.DataFrame:
        frame = self._table(people.ids[where].alias(Column.USER), Column.ITEM, block.items, block.scores)
        if not people.marked:
            return frame
        lengths = (block.items >= 0).sum(axis=1)
        return frame.with_columns(
            pl.Series(SOURCE, _lists.SOURCES).gather(np.repeat(people.source[where], lengths)).alias(SOURCE)
        )

    def _table(self, owners: pl.Series, name: str, items: Ints, scores: Ints) -> pl.DataFrame:
        """One row per owner and rank, the items in column `name`, titles last; lists that end early are shorter."""
        n, k = items.shape
        there = pl.Series(items.ravel() >= 0)
        index = np.maximum(items.ravel(), 0)
        columns = [
            owners.gather(np.repeat(np.arange(n), k)),
            self.item_ids.gather(index).alias(name),
            pl.Series(SCORE, scores.ravel()),
            pl.Series(RANK, np.tile(np.arange(1, k + 1, dtype=np.int32), n)),
        ]
        if self.titles is not None:
            columns.append(self.titles.gather(index).alias(TITLE))
        return pl.DataFrame([column.filter(there) for column in columns])


def load(folder: str | Path, method: str | type[Method] | None = None, device: str = "cpu") -> Model:
    """Read the model of a finished run.

    Parameters
    ----------
    folder : the run folder
    method : class of a method that is neither built in nor an installed plug-in; nothing in a run's files makes code
        be imported
    device : where it scores, `cpu` or `cuda`

    Returns
    -------
    the model
    """
    if method is not None:
        find_method(method)
    return Model(**vars(RunFolder(folder).read(_resolve_device(device))))


def make_method(data: Dataset, method: str | type[Method] | Method, hyperparameters: Mapping[str, object]) -> Method:
    """Configure a method and attach it to the training graph of a dataset.

    Parameters
    ----------
    data : the dataset
    method : name, class or configured object
    hyperparameters : checked; they override those of a configured object

    Returns
    -------
    a method that can be fitted
    """
    kind = find_method(method)
    own = method.get_params() if isinstance(method, Method) else {}
    configured = kind(**own | dict(hyperparameters))
    device = _resolve_device(getattr(configured, "device", "cpu"))
    graph = BipartiteGraph.from_pairs(data.train, data.n_users, data.n_items, device, data.attributes)
    attached: Method = attach(configured, graph)
    if isinstance(attached, Randomised):
        if data.randomised is None:
            raise InputError(
                f"{attached.name} needs randomised exposure; {data.name} has none: make one with `dpaa data randomised`"
            )
        attached.take(data.randomised)
    return attached


def _resolve_device(wanted: str) -> str:
    """Name of a device as torch has it; of several processes on a machine each takes its own GPU."""
    if wanted not in ("auto", "cpu", "cuda"):
        raise InputError(f"device must be auto, cpu or cuda, got {wanted!r}")
    if wanted == "cuda" and not torch.cuda.is_available():
        raise InputError("hyperparameter device: torch finds no CUDA device here; use device=cpu or device=auto")
    if wanted == "cpu" or not torch.cuda.is_available():
        return "cpu"
    local = os.environ.get("LOCAL_RANK", "")
    return f"cuda:{local}" if local.isdigit() else "cuda"
