"""A fitted method with the user's own ids: what `fit` and `load` return."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from dpaa.data.attributes import TITLE
from dpaa.data.columns import Column
from dpaa.data.ids import encode, look_up
from dpaa.data.pairs import Pairs
from dpaa.errors import InputError, need_type, need_whole
from dpaa.evaluation.dial_curve import LARGEST_DIAL, SUGGESTED, DialCurve, kappa_in_force
from dpaa.evaluation.ranking import RankedBlock, ranked_blocks
from dpaa.html import html_facts
from dpaa.kernels.topk import top_k
from dpaa.methods import find_method
from dpaa.methods.base import Histories, Method
from dpaa.reranking.base import Reranker
from dpaa.reranking.choose import parse_reranker, stored_reranker
from dpaa.reranking.dial import DialVectors
from dpaa.runs.folder import RunFolder, save_model
from dpaa.runs.record import RunRecord
from dpaa.words import counted

Ids = Iterable[object] | pl.Series
Dial = float | str | None
Ints = NDArray[Any]


BLOCK_VECTORS = 65_536
"""Users or items whose vectors are handed out at once."""
SCORE, RANK, SIMILAR = "score", "rank", "similar_item_id"


class ListOptions(TypedDict, total=False):
    """How lists are made; all that recommends takes these."""

    seen: bool
    """Whether what a user has taken may be recommended again (no)."""
    items: Ids | None
    """An allow list; None allows all candidates."""
    exclude: Ids
    """What to leave out."""
    popularity_dial: Dial
    """κ: above 0 leans to popular items, below 0 away from them, 0 is the method itself.

    Without it, or with "run", it stands where the run keeps it.
    """
    rerank: Reranker | str | None
    """What makes lists from scores: "run" (without it) is the one that the run keeps, None is none."""


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
        changed = self.method.settings.model_dump(exclude_defaults=True)
        facts = {
            "users × items": f"{len(self.user_ids):,} × {len(self.item_ids):,}",
            "trained on": trained_on.get("name"),
            "settings": ", ".join(f"{name} = {value}" for name, value in changed.items()) or "defaults",
            "best epoch": f"{training['best_epoch']:,} of {training['epochs']:,}" if training else None,
            "validation recall@20": None if recall is None else f"{recall:.4f}",
            "popularity dial": f"κ = {self.kappa():g}",
            "re-ranker": reranker.get("name") if isinstance(reranker, dict) else None,
            "folder": self.path,
        }
        return html_facts(f"Model: {self.method.name}", facts)

    def recommend(self, users: Ids | None = None, k: int = 20, **how: Unpack[ListOptions]) -> pl.DataFrame:
        """The k best items for these users (all users of the log without argument); `how` as in `ListOptions`.

        Returns `user_id, item_id, score, rank` (rank from 1), users in the order asked for; and `title`, where the
        items have titles.
        """
        blocks = list(self.recommend_blocks(users, k, **how))
        return pl.concat(blocks) if blocks else pl.DataFrame(schema=self.recommendation_schema)

    def recommend_blocks(
        self, users: Ids | None = None, k: int = 20, **how: Unpack[ListOptions]
    ) -> Iterator[pl.DataFrame]:
        """The same, a block of users at a time, so that any number of users fits in memory."""
        index = np.arange(len(self.user_ids)) if users is None else look_up(users, self.user_ids, "user")
        return self._ranked(index, self.user_ids, k, self.train, None, **how)

    def recommend_for(self, history: Ids, k: int = 20, **how: Unpack[ListOptions]) -> pl.DataFrame:
        """The k best items for someone the model has never met, from the items taken so far.

        Returns `item_id, score, rank`.
        """
        taken = look_up(history, self.item_ids, "item")
        if not len(taken):
            raise InputError("the history is empty; give at least one item")
        pairs = Pairs.of(np.zeros(len(taken), np.int32), taken)
        return pl.concat(list(self._for_new_users(pairs, pl.Series(Column.USER, [0]), k, **how))).drop(Column.USER)

    def recommend_for_histories(
        self, histories: pl.DataFrame, k: int = 20, **how: Unpack[ListOptions]
    ) -> tuple[Iterator[pl.DataFrame], list[str]]:
        """The same for a table `user_id, item_id` of people the model has never met, a block at a time.

        Items the model does not know are left out, and so is who has no other; the second value says so in words.
        """
        need_type(histories, pl.DataFrame, "histories", "give a polars frame of user_id and item_id")
        if missing_columns := {Column.USER, Column.ITEM} - set(histories.columns):
            raise InputError(f"histories have no column {min(missing_columns)!r}; give a frame of user_id and item_id")
        index = encode(histories[Column.ITEM], self.item_ids)
        known = histories.filter(pl.Series(index >= 0))
        people = known[Column.USER].unique().sort()
        notes = []
        if len(known) < len(histories):
            rows = counted(len(histories) - len(known), "history row names", "history rows name")
            notes.append(f"{rows} an item the model does not know; left out")
        missing = histories[Column.USER].n_unique() - len(people)
        if missing:
            they = counted(
                missing, "person has no item the model knows and gets", "people have no item the model knows and get"
            )
            notes.append(f"{they} no recommendations")
        if not len(people):
            raise InputError("no item of the history file is known to the model; check the item ids")
        pairs = Pairs.of(encode(known[Column.USER], people), index[index >= 0])
        return self._for_new_users(pairs, people, k, **how), notes

    def similar_items(self, items: Ids, k: int = 10) -> pl.DataFrame:
        """The k items most like each of these by cosine.

        Returns `item_id, similar_item_id, score, rank`; and `title`, of the similar item, where the items have titles.
        """
        index = look_up(items, self.item_ids, "item")
        unit = self.unit_vectors
        frames = []
        for first in range(0, len(index), 1024):
            block = torch.from_numpy(index[first : first + 1024].astype(np.int64)).to(unit.device)
            cosines = unit[block] @ unit.T
            cosines[torch.arange(len(block)), block] = -torch.inf
            values, found = top_k(cosines, min(_positive(k), len(self.item_ids) - 1))
            owners = self.item_ids.gather(index[first : first + 1024]).alias(Column.ITEM)
            frames.append(self._lists(owners, SIMILAR, found.cpu().numpy(), values.cpu().numpy()))
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
            return kappa_in_force(self.manifest.get("dial"), self.method.popularity_dial)
        if str(dial) == "auto":
            raise InputError(
                "the popularity dial has no setting 'auto'; write `run` for the κ that the run keeps, or a number for "
                "another"
            )
        try:
            kappa = float(dial)
        except (TypeError, ValueError, OverflowError):
            kappa = float("nan")
        if not abs(kappa) <= LARGEST_DIAL:
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
        return DialCurve.from_json(stored, self.method.popularity_dial, self.method.dial_rule)

    def dial_vectors(self, users: Ids | None = None) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Users and items as vectors that serve every κ: `user_id, v0 …, deviation` and `item_id, v0 …, popularity`.

        The score at κ is the inner product of the v's plus `κ · deviation · popularity`: give an index the items with
        `popularity` as one more coordinate, and query it with `κ · deviation` as that of the user.
        """
        of_users, of_items = self.dial_vector_blocks(users)
        return pl.concat(of_users), pl.concat(of_items)

    def dial_vector_blocks(self, users: Ids | None = None) -> tuple[Iterator[pl.DataFrame], Iterator[pl.DataFrame]]:
        """The same, a block at a time; there is always a first block, if need be without rows."""
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
        found: dict[str, pl.DataType | type[pl.DataType]] = {Column.USER: self.user_ids.dtype}
        found |= {Column.ITEM: self.item_ids.dtype, SCORE: pl.Float32, RANK: pl.Int32}
        return found if self.titles is None else found | {TITLE: pl.String}

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

    def _allowed(self, items: Ids | None, exclude: Ids) -> Ints | None:
        denied = look_up(exclude, self.item_ids, "item")
        allowed = self.candidates if items is None else np.unique(look_up(items, self.item_ids, "item"))
        if len(denied):
            kept = np.ones(len(self.item_ids), dtype=bool)
            kept[denied] = False
            allowed = np.flatnonzero(kept) if allowed is None else allowed[kept[allowed]]
        if allowed is not None and not len(allowed):
            raise InputError("no item is left to recommend; allow more items or exclude fewer")
        return allowed

    def _for_new_users(
        self, pairs: Pairs, people: pl.Series, k: int, **how: Unpack[ListOptions]
    ) -> Iterator[pl.DataFrame]:
        return self._ranked(np.arange(len(people)), people, k, pairs, Histories(pairs, len(people)), **how)

    def _ranked(
        self,
        index: Ints,
        people: pl.Series,
        k: int,
        taken: Pairs,
        histories: Histories | None,
        *,
        seen: bool = False,
        items: Ids | None = None,
        exclude: Ids = (),
        popularity_dial: Dial = None,
        rerank: Reranker | str | None = "run",
    ) -> Iterator[pl.DataFrame]:
        kappa = self.kappa(popularity_dial)
        blocks = ranked_blocks(
            self.method,
            index,
            self._length(k),
            masked=None if seen else taken,
            candidates=self._allowed(items, exclude),
            histories=histories,
            dial=kappa,
            prepared=self.prepared_dial if kappa else None,
            reranker=self.reranker(rerank),
        )
        return (self._frame(block, people) for block in blocks)

    def _length(self, k: int) -> int:
        """Nobody's list is longer than the catalogue."""
        return min(_positive(k), max(len(self.item_ids), 1))

    def _frame(self, block: RankedBlock, people: pl.Series) -> pl.DataFrame:
        return self._lists(people.gather(block.users).alias(Column.USER), Column.ITEM, block.items, block.scores)

    def _lists(self, owners: pl.Series, name: str, items: Ints, scores: Ints) -> pl.DataFrame:
        """One row per owner and rank, the items in column `name`, titles last; lists that end early are shorter."""
        n, k = items.shape
        there = pl.Series(items.ravel() >= 0)
        places = np.maximum(items.ravel(), 0)
        columns = [
            owners.gather(np.repeat(np.arange(n), k)),
            self.item_ids.gather(places).alias(name),
            pl.Series(SCORE, scores.ravel()),
            pl.Series(RANK, np.tile(np.arange(1, k + 1, dtype=np.int32), n)),
        ]
        if self.titles is not None:
            columns.append(self.titles.gather(places).alias(TITLE))
        return pl.DataFrame([column.filter(there) for column in columns])


def _vector_frame(ids: pl.Series, vectors: torch.Tensor, name: str, last: torch.Tensor) -> pl.DataFrame:
    columns = [pl.Series(f"v{number}", column.numpy()) for number, column in enumerate(vectors.cpu().T.contiguous())]
    return pl.DataFrame([ids, *columns, pl.Series(name, last.cpu().numpy())])


def _blocks(index: Ints) -> Iterator[Ints]:
    for first in range(0, max(len(index), 1), BLOCK_VECTORS):
        yield index[first : first + BLOCK_VECTORS]


def _positive(k: int) -> int:
    return need_whole(k, "k")


def load(folder: str | Path, method: str | type[Method] | None = None) -> Model:
    """The model of a finished run.

    `method` names the class of a method that is neither built in nor an installed plug-in: nothing that a run's files
    say makes code be imported.
    """
    if method is not None:
        find_method(method)
    return Model(**vars(RunFolder(folder).read()))
