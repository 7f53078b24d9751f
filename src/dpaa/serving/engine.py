"""What is asked of a snapshot, and its answers: those of `Model`, several at a time where that is faster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from dpaa.data.pairs import Pairs
from dpaa.errors import InputError
from dpaa.methods.base import Histories
from dpaa.ranking.quotas import Quota
from dpaa.ranking.rank import RankedBlock, Ranker, rank
from dpaa.ranking.reranker import Reranker
from dpaa.serving.index import MOST_HIDDEN
from dpaa.serving.snapshot import Snapshot
from dpaa.serving.tables import Found, Question, Table

Ints = NDArray[Any]
NOTHING: Ints = np.empty(0, dtype=np.int64)
MOST_SCORES = 16_000_000
"""Scores that a batch may hold (64 MB)."""
FASTER_ALONE = 10_000
"""Items below which reading the table again costs less than settling what a batch found (measured at 64 columns)."""
SLACK = 2
"""An index is asked for so many times k."""


@dataclass(frozen=True, eq=False)
class Ask:
    """One list, in indices of its snapshot."""

    snapshot: Snapshot
    k: int
    kind: Literal["user", "history", "similar", "popular"] = "user"
    number: int = -1
    """The user, or with `similar` the item."""
    history: Ints = field(default_factory=lambda: NOTHING)
    kappa: float = 0.0
    exclude: Ints = field(default_factory=lambda: NOTHING)
    """Ascending, distinct."""
    allow: Ints | None = None
    """Ascending, distinct; None allows all candidates."""
    reranker: Reranker | None = None
    quotas: tuple[Quota, ...] = ()
    """How alike the items of the list may be."""


@dataclass(frozen=True, eq=False)
class Answer:
    """Item indices and scores, best first."""

    items: Ints
    scores: NDArray[np.float32]


def answer(asks: Sequence[Ask]) -> list[Answer | Exception]:
    """A batch; what goes wrong with one is its own answer."""
    found: dict[int, Answer | Exception] = {}
    together: dict[tuple[int, bool], list[int]] = {}
    for place, ask in enumerate(asks):
        if _by_table(ask) is not None:
            together.setdefault((id(ask.snapshot), ask.kind == "similar"), []).append(place)
        else:
            found[place] = _tried(ask)
    for places in together.values():
        for part in _parts(places, asks):
            try:
                found |= zip(part, _in_a_batch([asks[place] for place in part]), strict=True)
            except Exception as error:  # the batch must not take the worker with it
                found |= dict.fromkeys(part, error)
    return [found[place] for place in range(len(asks))]


def _parts(places: list[int], asks: Sequence[Ask]) -> Iterator[list[int]]:
    table = _by_table(asks[places[0]])
    step = max(1, MOST_SCORES // max(1, len(table or ())))
    for first in range(0, len(places), step):
        yield places[first : first + step]


def _by_table(ask: Ask) -> Table | None:
    """The table that answers it by inner products; None where the library does."""
    snapshot = ask.snapshot
    if ask.kind == "similar":
        return snapshot.unit
    if ask.reranker is not None or ask.allow is not None or ask.quotas or ask.kind == "popular":
        return None
    return snapshot.dialled if ask.kappa else snapshot.plain


def _tried(ask: Ask) -> Answer | Exception:
    try:
        return _by_the_library(ask)
    except Exception as error:
        return error


def _by_the_library(ask: Ask) -> Answer:
    """One list as `Model.recommend` makes it."""
    snapshot, model = ask.snapshot, ask.snapshot.model
    if ask.kind == "similar":
        model.unit_vectors  # noqa: B018  # says that there are none
    if ask.kind == "popular":
        return _most_popular(ask)
    users, masked, histories = np.array([ask.number]), model.train, None
    if ask.kind == "history":
        users, masked = np.zeros(1, dtype=np.int64), Pairs.of(np.zeros(len(ask.history), np.int32), ask.history)
        histories = Histories(masked, 1)
    elif ask.number >= 0:
        masked = Pairs(np.full(len(taken := snapshot.taken(ask.number)), ask.number, np.int32), taken)
    blocks = rank(
        model.method,
        users,
        min(ask.k, len(snapshot.items)),
        masked=masked,
        candidates=_candidates(ask),
        histories=histories,
        dial=ask.kappa,
        prepared=model.prepared_dial if ask.kappa else None,
        reranker=ask.reranker,
        quotas=ask.quotas,
    )
    return _listed(next(iter(blocks)))


def _candidates(ask: Ask) -> Ints | None:
    """What may be listed; None: everything."""
    snapshot, found = ask.snapshot, ask.snapshot.model.candidates if ask.allow is None else ask.allow
    if len(ask.exclude):
        kept = np.ones(len(snapshot.items), dtype=bool)
        kept[ask.exclude] = False
        found = np.flatnonzero(kept) if found is None else found[kept[found]]
    if found is not None and not len(found):
        raise InputError("no item is left to recommend; allow more items or exclude fewer")
    return found


def _listed(block: RankedBlock) -> Answer:
    there = block.items[0] >= 0
    return Answer(block.items[0][there], block.scores[0][there])


def _most_popular(ask: Ask) -> Answer:
    """For a user without training pairs or history: the library's own popularity list."""
    snapshot = ask.snapshot
    if ask.quotas or ask.allow is not None:
        ranker = Ranker(len(snapshot.items), torch.device("cpu"), None, _candidates(ask), ask.quotas)
        k = min(ask.k, len(snapshot.items))
        return _listed(ranker.rank_popular(snapshot.model.fallback, np.zeros(1, dtype=np.int64), k))
    order, scores = snapshot.fallback_order
    found, values = order[: ask.k + len(ask.exclude)], scores[: ask.k + len(ask.exclude)]
    kept = ~np.isin(found, ask.exclude)
    return Answer(found[kept][: ask.k], values[kept][: ask.k])


def _in_a_batch(asks: Sequence[Ask]) -> list[Answer]:
    snapshot = asks[0].snapshot
    tables = [_by_table(ask) for ask in asks]
    questions = [_question(ask, table) for ask, table in zip(asks, tables, strict=True) if table is not None]
    made = [table for table in tables if table is not None]
    if asks[0].kind == "similar" or (all(ask.kappa == 0 for ask in asks) and snapshot.index is None):
        wide, whole = [question.vector for question in questions], made[0]
    else:
        assert snapshot.dialled is not None
        whole = snapshot.dialled
        nought = torch.zeros(1, 1)
        wide = [
            question.vector if ask.kappa else torch.cat([question.vector, nought], dim=1)
            for ask, question in zip(asks, questions, strict=True)
        ]
    found: list[Found | None] = [None] * len(asks)
    if snapshot.index is not None and asks[0].kind != "similar":
        _from_index(snapshot, questions, wide, made, found)
    rest = [place for place, one in enumerate(found) if one is None]
    if len(rest) == 1 and not len(questions[rest[0]].removed):
        found[rest[0]] = made[rest[0]].alone(questions[rest[0]])
        rest = []
    if rest and (len(whole) < FASTER_ALONE or not all(made[place].batches for place in rest)):
        for place in rest:
            found[place] = made[place].alone(questions[place])
        rest = []
    if rest:
        stacked = torch.cat([wide[place] for place in rest])
        settled = _together(whole, [questions[place] for place in rest], [made[place] for place in rest], stacked)
        for place, one in zip(rest, settled, strict=True):
            found[place] = one
    return [Answer(table.items_of(one.columns), one.scores) for table, one in zip(made, found, strict=True) if one]


def _together(whole: Table, questions: Sequence[Question], own: Sequence[Table], wide: torch.Tensor) -> list[Found]:
    """One product with the widest table finds who may be listed; each is settled with its own."""
    near = whole.near(questions, wide)
    return [
        table.settled(question, columns, about, sure=True)
        for table, question, (columns, about) in zip(own, questions, near, strict=True)
    ]


def _from_index(
    snapshot: Snapshot,
    questions: Sequence[Question],
    wide: Sequence[torch.Tensor],
    tables: Sequence[Table],
    found: list[Found | None],
) -> None:
    """Answer what an index can; the rest stays None."""
    assert snapshot.index is not None
    hidden = [len(question.hidden) + len(question.removed) for question in questions]
    able = [place for place, number in enumerate(hidden) if number <= MOST_HIDDEN]
    if not able:
        return
    most = min(max(SLACK * questions[place].k + hidden[place] for place in able), len(tables[0]))
    rows, scores = snapshot.index.search(torch.cat([wide[place] for place in able]), most)
    for place, columns, about in zip(able, rows, scores, strict=True):
        question = questions[place]
        there = (columns >= 0) & ~np.isin(columns, question.hidden) & ~np.isin(columns, question.removed)
        if there.sum() >= min(question.k, len(tables[0]) - hidden[place]):
            found[place] = tables[place].settled(question, columns[there], about[there], sure=False)


def _question(ask: Ask, table: Table) -> Question:
    """The vector is made for this ask alone, as the library makes it."""
    snapshot, model = ask.snapshot, ask.snapshot.model
    if ask.kind == "similar":
        row = np.array([ask.number], dtype=np.int64)
        return Question(table.rows[torch.from_numpy(row)], min(ask.k, len(table) - 1), row, NOTHING)
    histories, index, taken = None, ask.number, ask.history
    if ask.kind == "history":
        pairs = Pairs.of(np.zeros(len(ask.history), np.int32), ask.history)
        histories, index, taken = Histories(pairs, 1), 0, pairs.item
    else:
        taken = snapshot.taken(ask.number)
    vectors = model.method.vectors(None, histories)
    assert vectors is not None
    plain = vectors.queries(torch.tensor([index]))
    removed = np.sort(table.rows_of(ask.exclude)) if len(ask.exclude) else NOTHING
    if len(removed) == len(table):
        raise InputError("no item is left to recommend; allow more items or exclude fewer")
    dial = model.prepared_dial
    vector = dial.queries(plain, ask.kappa) if ask.kappa and dial is not None else plain
    return Question(vector, min(ask.k, len(snapshot.items)), np.sort(table.rows_of(taken)), removed)
