"""A method on the graph of a dataset, and the fitted model with the user's own ids."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import polars as pl
import torch

from dpaa._html import html_facts
from dpaa._text import in_digits
from dpaa.data.attributes import TITLE
from dpaa.data.columns import Column
from dpaa.data.dataset import Dataset
from dpaa.data.ids import check_ids, look_up
from dpaa.data.shards import Shard
from dpaa.errors import InputError, need_whole
from dpaa.evaluation.dial_curve import LARGEST_DIAL, SUGGESTED, DialCurve, kappa_in_force
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.graph.kernels import top_k
from dpaa.methods import find_method
from dpaa.methods.base import Method, Randomised, attach, changed_params
from dpaa.ranking.dial import DialVectors
from dpaa.ranking.rank import RankedBlock
from dpaa.ranking.reranker import Reranker, parse_reranker, stored_reranker
from dpaa.runs.folder import RunFolder, RunRecord, save_model
from dpaa.runs.lists import (
    RANK,
    SCORE,
    SOURCE,
    SOURCES,
    Dial,
    Engine,
    Ids,
    Ints,
    ItemColumns,
    ListOptions,
    Lists,
    People,
    excluded_pairs,
    known_ids,
    people_of,
    shortest,
)

BLOCK_VECTORS = 65_536
"""Users or items whose vectors are handed out at once."""
SIMILAR = "similar_item_id"


@dataclass(frozen=True, eq=False, repr=False)
class Model(RunRecord):
    """Scores, recommendations and similar items, in the ids the log came with."""

    def __repr__(self) -> str:
        return f"Model({self.method.name}: {len(self.user_ids):,} users × {len(self.item_ids):,} items)"

    def _repr_html_(self) -> str:
        training = self.manifest.get("training") or {}
        recall = training.get("best_valid_recall@20")
        trained_on = self.manifest.get("dataset") or {}
        reranker = self.manifest.get("rerank")
        changed = changed_params(self.method)
        facts = {
            "users × items": f"{len(self.user_ids):,} × {len(self.item_ids):,}",
            "trained on": trained_on.get("name"),
            "hyperparameters": ", ".join(f"{name} = {value}" for name, value in changed.items()) or "defaults",
            "best epoch": f"{training['best_epoch']:,} of {training['epochs']:,}" if training else None,
            "validation recall@20": None if recall is None else f"{recall:.4f}",
            "popularity dial": f"κ = {self.kappa():g}",
            "re-ranker": reranker.get("name") if isinstance(reranker, dict) else None,
            "folder": self.path,
        }
        return html_facts(f"Model: {self.method.name}", facts)

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
        blocks = list(lists.blocks)
        return pl.concat(blocks) if blocks else pl.DataFrame(schema=lists.schema)

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
        if how.get("strict"):
            look_up(taken, self.item_ids, "item")
        table = pl.DataFrame([pl.Series(Column.USER, np.zeros(len(taken), dtype=np.int64)), taken])
        return pl.concat(list(self.lists(None, k, histories=table, **how).blocks)).drop(Column.USER, SOURCE)

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
        users, k, histories, how : as in `recommend`; histories without users are those of everybody to list for
        shard : only this part of the users; the lists of all shards, one after the other, are the whole, bit by bit

        Returns
        -------
        blocks, their columns, and notes on what was unknown
        """
        strict = how.get("strict", False)
        if strict and users is not None and histories is None:
            look_up(users, self.user_ids, "user")
        warm = np.bincount(self.train.user, minlength=len(self.user_ids)) > 0
        people, notes = people_of(users, histories, self.user_ids, self.item_ids, warm)
        engine, more = self._engine(people, k, **how)
        schema = self.recommendation_schema | {Column.USER: people.ids.dtype}
        if people.marked:
            schema |= {SOURCE: pl.String}
        part = None if shard is None else shard.rows(len(people.ids))
        blocks = (self._frame(where, block, people) for where, block in engine.blocks(people, part))
        return Lists(blocks, schema, [*notes, *more])

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
        index = look_up(items, self.item_ids, "item")
        unit = self.unit_vectors
        frames = []
        for first in range(0, len(index), 1024):
            block = torch.from_numpy(index[first : first + 1024].astype(np.int64)).to(unit.device)
            cosines = unit[block] @ unit.T
            cosines[torch.arange(len(block)), block] = -torch.inf
            values, similar = top_k(cosines, min(need_whole(k, "k"), len(self.item_ids) - 1))
            owners = self.item_ids.gather(index[first : first + 1024]).alias(Column.ITEM)
            frames.append(self._lists(owners, SIMILAR, similar.cpu().numpy(), values.cpu().numpy()))
        schema: dict[str, Any] = {
            Column.ITEM: self.item_ids.dtype,
            SIMILAR: self.item_ids.dtype,
            SCORE: pl.Float32,
            RANK: pl.Int32,
        }
        schema |= {} if self.titles is None else {TITLE: pl.String}
        return pl.concat(frames) if frames else pl.DataFrame(schema=schema)

    def kappa(self, dial: Dial = None) -> float:
        """The dial's κ as a number; None and "run" are the one that the run keeps in force."""
        if dial is None or dial == "run":
            return kappa_in_force(self.manifest.get("dial"))
        if str(dial) == "auto":
            raise InputError(
                "the popularity dial has no value 'auto'; write `run` for the κ that the run keeps, or a number for "
                "another"
            )
        try:
            kappa = float(dial)
        except (TypeError, ValueError, OverflowError):
            kappa = float("nan")
        if not abs(kappa) <= LARGEST_DIAL or not in_digits(dial, kappa):
            raise InputError(
                f"the popularity dial must be `run` or a number from −{LARGEST_DIAL:g} to {LARGEST_DIAL:g}, "
                f"got {dial!r}"
            )
        return kappa

    def reranker(self, rerank: Reranker | str | None = "run") -> Reranker | None:
        """What makes lists from scores: "run" is the one that the run keeps, text is read like `--rerank`."""
        if isinstance(rerank, str):
            kept = rerank.strip().lower() == "run"
            return stored_reranker(self.manifest.get("rerank"), self.path or self) if kept else parse_reranker(rerank)
        return rerank

    @property
    def dial_curve(self) -> DialCurve | None:
        """The popularity dial's curve on validation, as the manifest has it; None for a run without."""
        stored = self.manifest.get("dial")
        if stored is None or (isinstance(stored, dict) and stored.get(SUGGESTED, 0) is None):
            return None
        return DialCurve.from_json(stored)

    def dial_vectors(self, users: Ids | None = None) -> tuple[Iterator[pl.DataFrame], Iterator[pl.DataFrame]]:
        """Vectors of users and items that serve every κ, a block at a time.

        The score at κ is the inner product of the v's plus `κ · deviation · popularity`: give an index the items with
        `popularity` as one more coordinate, and query it with `κ · deviation` as that of the user.

        Parameters
        ----------
        users : ids; default: all

        Returns
        -------
        frames of `user_id, v0 …, deviation` and of `item_id, v0 …, popularity`; at least one each, perhaps empty
        """
        prepared, vectors = self.prepared_dial, self.method.vectors()
        if prepared is None or vectors is None:
            raise InputError(
                f"method {self.method.name} does not rank by an inner product, so it has no vectors to export; "
                "use its recommendations"
            )
        people = np.arange(len(self.user_ids)) if users is None else look_up(users, self.user_ids, "user")
        items = np.arange(len(self.item_ids)) if self.candidates is None else self.candidates

        def of_users() -> Iterator[pl.DataFrame]:
            for block in _blocks(people):
                queries = vectors.queries(torch.from_numpy(block.astype(np.int64)))
                ids = self.user_ids.gather(block).alias(Column.USER)
                yield _vector_frame(ids, queries, "deviation", prepared.deviation(queries))

        def of_items() -> Iterator[pl.DataFrame]:
            for block in _blocks(items):
                rows = prepared.items[torch.from_numpy(block.astype(np.int64))]
                ids = self.item_ids.gather(block).alias(Column.ITEM)
                yield _vector_frame(ids, rows[:, :-1], "popularity", rows[:, -1])

        return of_users(), of_items()

    def save(self, folder: str | Path, overwrite: bool = False) -> None:
        """Write a run folder; `dpaa.load` reads it back."""
        save_model(self, folder, overwrite)

    @property
    def recommendation_schema(self) -> dict[str, pl.DataType | type[pl.DataType]]:
        """Columns and types of a recommendation table."""
        schema: dict[str, pl.DataType | type[pl.DataType]] = {Column.USER: self.user_ids.dtype}
        schema |= {Column.ITEM: self.item_ids.dtype, SCORE: pl.Float32, RANK: pl.Int32}
        return schema if self.titles is None else schema | {TITLE: pl.String}

    @cached_property
    def unit_vectors(self) -> torch.Tensor:
        """Item vectors of length 1, whose inner products are the cosines of `similar_items`; made once, and kept."""
        vectors = self.method.item_vectors()
        if vectors is None:
            raise InputError(f"method {self.method.name} has no item vectors to compare; use a trained method")
        return torch.nn.functional.normalize(vectors, dim=1)

    @cached_property
    def prepared_dial(self) -> DialVectors | None:
        """Made when the dial is first turned, and kept: about as large as the table of item vectors."""
        return DialVectors.of(self.method)

    @cached_property
    def columns(self) -> ItemColumns:
        """Columns of the items as limits of lists see them; kept."""
        return ItemColumns(self.attributes)

    @cached_property
    def fallback(self) -> torch.Tensor:
        """(n_items,) float32: recent popularity, training counts without times; ranks the list of unknown users."""
        counts = self.method.graph.item_degree.cpu()
        return counts if self.popularity is None else torch.tensor(self.popularity, dtype=torch.float32)

    def _engine(
        self,
        people: People,
        k: int,
        *,
        seen: bool = False,
        items: Ids | None = None,
        exclude: Ids = (),
        exclude_pairs: pl.DataFrame | None = None,
        only: Mapping[str, object] | None = None,
        at_most: Mapping[str, int] | None = None,
        at_least: Mapping[str, int] | None = None,
        popularity_dial: Dial = None,
        rerank: Reranker | str | None = "run",
        strict: bool = False,
    ) -> tuple[Engine, list[str]]:
        kappa = self.kappa(popularity_dial)
        allowed, notes = self._allowed(items, exclude, only or {}, strict)
        excluded, more = excluded_pairs(exclude_pairs, people, self.item_ids, strict)
        engine = Engine(
            method=self.method,
            train=self.train,
            k=shortest(k, len(self.item_ids)),
            kappa=kappa,
            seen=seen,
            candidates=allowed,
            dial=self.prepared_dial if kappa else None,
            reranker=self.reranker(rerank),
            quotas=self.columns.quotas(at_most or {}, at_least or {}),
            popularity=self.fallback,
            excluded=excluded,
        )
        return engine, [*notes, *more]

    def _allowed(
        self, items: Ids | None, exclude: Ids, only: Mapping[str, object], strict: bool
    ) -> tuple[Ints | None, list[str]]:
        denied, notes = known_ids(exclude, self.item_ids, "item", "to exclude", strict)
        allowed = self.candidates
        if items is not None:
            listed, more = known_ids(items, self.item_ids, "item", "to allow", strict)
            allowed, notes = np.unique(listed), [*notes, *more]
        if len(denied) or only:
            some = np.arange(len(self.item_ids)) if allowed is None else allowed
            allowed = self.columns.allowed(only, some[~np.isin(some, denied)])
        if allowed is not None and not len(allowed):
            raise InputError("no item is left to recommend; allow more items or exclude fewer")
        return allowed, notes

    def _frame(self, where: slice, block: RankedBlock, people: People) -> pl.DataFrame:
        owners = people.ids[where].alias(Column.USER)
        frame = self._lists(owners, Column.ITEM, block.items, block.scores)
        if not people.marked:
            return frame
        source = pl.Series(SOURCE, SOURCES).gather(people.source[where])
        lengths = (block.items >= 0).sum(axis=1)
        return frame.with_columns(source.gather(np.repeat(np.arange(len(owners)), lengths)).alias(SOURCE))

    def _lists(self, owners: pl.Series, name: str, items: Ints, scores: Ints) -> pl.DataFrame:
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


def _vector_frame(ids: pl.Series, vectors: torch.Tensor, name: str, last: torch.Tensor) -> pl.DataFrame:
    columns = [pl.Series(f"v{number}", column.numpy()) for number, column in enumerate(vectors.cpu().T.contiguous())]
    return pl.DataFrame([ids, *columns, pl.Series(name, last.cpu().numpy())])


def _blocks(index: Ints) -> Iterator[Ints]:
    for first in range(0, max(len(index), 1), BLOCK_VECTORS):
        yield index[first : first + BLOCK_VECTORS]


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
    return Model(**vars(RunFolder(folder).read(resolve_device(device))))


def make_method(data: Dataset, method: str | type[Method] | Method, hyperparameters: Mapping[str, object]) -> Method:
    """Configure a method and attach it to the training graph of a dataset.

    Parameters
    ----------
    data : the dataset
    method : name, class or configured object
    hyperparameters : checked; those of a configured object come below these

    Returns
    -------
    a method that can be fitted
    """
    kind = find_method(method)
    own = method.get_params() if isinstance(method, Method) else {}
    configured = kind(**own | dict(hyperparameters))
    device = resolve_device(getattr(configured, "device", "cpu"))
    attached: Method = attach(configured, BipartiteGraph.from_pairs(data.train, data.n_users, data.n_items, device))
    if isinstance(attached, Randomised):
        if data.randomised is None:
            raise InputError(
                f"{attached.name} also learns from pairs of randomised exposure, and {data.name} carries none; make a "
                "dataset that does with `dpaa data randomised DATASET --out DIR`, or use another method"
            )
        attached.take(data.randomised)
    return attached


def resolve_device(wanted: str) -> str:
    """`cpu` or a GPU as torch names it; of several processes on a machine each takes its own."""
    if wanted not in ("auto", "cpu", "cuda"):
        raise InputError(f"device must be auto, cpu or cuda, got {wanted!r}")
    if wanted == "cuda" and not torch.cuda.is_available():
        raise InputError("hyperparameter device: torch finds no CUDA device here; use device=cpu or device=auto")
    if wanted == "auto":
        wanted = "cuda" if torch.cuda.is_available() else "cpu"
    here = os.environ.get("LOCAL_RANK", "")
    return f"cuda:{here}" if wanted == "cuda" and here.isdigit() else wanted
