r"""A log becomes train, validation and test: one SQL query per rule labels every pair 0 train, 1 validation or 2 test.

Labels depend on ids, times and the seed alone, never on the order of rows or on the engine. What is random is the MD5
digest of a text: `number` is its first 64 bits, `fraction` 53 bits of either half as a number below 1:

- a pair, `seed\0user id\0item id`: pairs with the smallest numbers are test, the next are validation
- a user, `seed\0user id`: the two fractions round the numbers of the user's test and validation pairs up or down
- a cold user or item, `seed\0id`; the fold of a user, `seed\0fold\0user id`

Where a rule goes by time, pairs of one time are in the order of their item ids (of their numbers, where users or items
are cold).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from dpaa._text import counted
from dpaa.data._engine import SqlEngine
from dpaa.data.columns import Column
from dpaa.errors import InputError, need_whole

SPLIT_KINDS = (
    *("random", "random-global", "temporal", "leave-last"),
    *("user-folds", "cold-users", "cold-items", "time-windows"),
)
IN_PARTS = ("user-folds", "time-windows")
"""Kinds that make several datasets of one log, one for each part."""
BY_TIME = ("temporal", "leave-last", "time-windows")
"""Kinds that need times."""
LABELS = {"train": 0, "valid": 1, "test": 2}
LEFT_OUT = -1
Labels = npt.NDArray[np.int8]


@dataclass(frozen=True)
class SplitRule:
    """How a log is cut into train, validation and test."""

    kind: str = "random"
    """`random` per user, `random-global` over all pairs, `temporal` by time, `leave-last` pairs of each user,
    `user-folds`, `cold-users`, `cold-items` or `time-windows`."""
    valid: float = 0.1
    """Share of the pairs for validation (not used by `leave-last`); of users or items where they are cold."""
    test: float = 0.2
    """The same for the test."""
    last_k: int = 1
    """Pairs of each user for validation, and as many for the test (`leave-last`)."""
    parts: int = 5
    """How many folds or windows there are."""
    part: int = 1
    """Which of them this is, from 1."""
    support: int = 5
    """Pairs of a cold user or item that stay in training."""

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or self.kind not in SPLIT_KINDS:
            raise InputError(f"there is no split {self.kind!r}; choose one of {', '.join(SPLIT_KINDS)}")
        if not (0 <= self.valid < 1 and 0 <= self.test < 1 and self.valid + self.test < 1):
            raise InputError(
                f"the shares of validation ({self.valid:g}) and test ({self.test:g}) must be at least 0 and leave "
                "something to train on; make their sum less than 1"
            )
        if self.last_k < 1:
            raise InputError(f"last_k must be at least 1, got {self.last_k}; leave it out for 1")
        need_whole(self.support, "support", least=0)
        need_whole(self.part, "part")
        if need_whole(self.parts, "parts") < 2 or self.part > self.parts:
            raise InputError(f"part {self.part} of {self.parts} is not there; parts are at least 2 and counted from 1")
        if self.kind == "time-windows" and self.valid + self.parts * self.test >= 1:
            raise InputError(
                f"{self.parts} windows with {self.test:g} of the pairs each and validation ({self.valid:g}) leave "
                "nothing to train on; use fewer parts or smaller shares"
            )

    def each(self) -> list[SplitRule]:
        """One rule for every part; the rule itself where it has none."""
        return [replace(self, part=part) for part in range(1, self.parts + 1)] if self.kind in IN_PARTS else [self]

    @property
    def needs_times(self) -> bool:
        """Whether every pair must have a time."""
        return self.kind in BY_TIME

    def __str__(self) -> str:
        shares = f"{self.valid:g} validation, {self.test:g} test"
        return {
            "leave-last": f"leave-last, {self.last_k} + {self.last_k} per user",
            "user-folds": f"user-folds, fold {self.part} of {self.parts}, {shares} of a user's pairs",
            "cold-users": f"cold-users, {shares} of the users, who keep {self.support} pairs in training",
            "cold-items": f"cold-items, {shares} of the items, which keep {self.support} pairs in training",
            "time-windows": f"time-windows, window {self.part} of {self.parts}, {shares}",
        }.get(self.kind, f"{self.kind}, {shares}")


def define_labels(
    engine: SqlEngine,
    rule: SplitRule,
    seed: int,
    columns: Sequence[str],
    source: str,
    *,
    trained: bool = False,
    times_appended: int = 0,
) -> list[str]:
    """Make the table `labelled` from the table `pairs`: its columns and a `label`.

    Parameters
    ----------
    engine : has the table `pairs`, and with `trained` the table `trained` of training pairs from before
    rule : how pairs are split
    seed : another seed gives another split
    columns : those of the table
    source : where the pairs come from, for messages
    trained : users and items may have training pairs already, since the pairs are appended to a dataset
    times_appended : how often that was done

    Returns
    -------
    notes about the split
    """
    need_whole(seed, "seed", least=0)
    timed = Column.TIMESTAMP in columns
    if rule.needs_times and not timed:
        raise InputError(f"the split {rule.kind!r} needs times, and {source} has none; name the --timestamp-column")
    n, n_timed = engine.row(f"SELECT count(*), {'count(timestamp)' if timed else 'count(*)'} FROM pairs")
    if rule.needs_times and n_timed < n:
        pairs = counted(n - n_timed, "pair of", "pairs of")
        raise InputError(f"the split {rule.kind!r} needs times, and {pairs} {source} have none; add or remove them")
    work = _Work(engine, rule, seed, ", ".join(columns), timed, int(n), trained, times_appended)
    engine.define("labelled", work.query())
    counts: dict[int, int] = dict.fromkeys((LEFT_OUT, 0, 1, 2), 0)
    totals = ", ".join(f"sum(CASE WHEN label = {label} THEN 1 ELSE 0 END)" for label in counts)
    counts = dict(zip(counts, (int(one or 0) for one in engine.row(f"SELECT {totals} FROM labelled")), strict=True))
    return work.notes(counts)


@dataclass
class _Work:
    """One split as SQL."""

    engine: SqlEngine
    rule: SplitRule
    seed: int
    columns: str
    timed: bool
    n: int
    trained: bool
    times_appended: int
    sizes: dict[str, int] = field(default_factory=dict)
    """Pairs that each split would have if no two had the same time."""

    def query(self) -> str:
        """The columns of the pairs, and their labels."""
        kind = self.rule.kind
        if kind in ("random", "user-folds"):
            return self._per_user(f"number({self._key('user_id', 'item_id')}), item_id", *self._random_sizes())
        if kind == "leave-last":
            return self._per_user("timestamp DESC, item_id DESC", str(self.rule.last_k), str(self.rule.last_k))
        if kind == "random-global":
            return self._random_global()
        return (
            self._by_time() if self.rule.needs_times else self._cold("user_id" if kind == "cold-users" else "item_id")
        )

    def _key(self, *columns: str, seed: str | None = None) -> str:
        """The text that a digest is made of."""
        words = [f"'{self.seed if seed is None else seed}'"]
        for column in columns:
            words += ["chr(0)", column]
        return f"concat({', '.join(words)})"

    def _random_sizes(self) -> tuple[str, str]:
        """Test and validation pairs of a user with n of them."""
        # Users who append a pair a day would else always give the test all of them, or none.
        key = self._key("user_id", seed=f"{self.seed}+{self.times_appended}" if self.times_appended else None)
        test, valid = (
            f"CAST(floor(n * {_double(share)} + fraction({key}, {half})) AS BIGINT)"
            for half, share in ((1, self.rule.test), (2, self.rule.valid))
        )
        return test, valid

    def _per_user(self, order: str, test: str, valid: str) -> str:
        """The first pairs of each user are test, the next validation; one is training.

        No pair need be training of a user who has a training pair already.
        """
        known = "LEFT JOIN (SELECT DISTINCT user_id AS known FROM trained) AS before ON user_id = known"
        most = "CASE WHEN known IS NULL THEN n - 1 ELSE n END" if self.trained else "n - 1"
        users = "SELECT user_id, count(*) AS n FROM pairs GROUP BY user_id"
        wanted = (
            f"SELECT user_id AS owner, {most} AS most, {test} AS n_test, {valid} AS n_valid FROM ({users}) AS users"
        )
        sizes = (
            "SELECT owner, least(n_test, most) AS last_test, least(n_test, most) + "
            "least(n_valid, most - least(n_test, most)) AS last_valid "
            f"FROM ({wanted} {known if self.trained else ''}) AS wanted"
        )
        ranked = f"SELECT {self.columns}, row_number() OVER (PARTITION BY user_id ORDER BY {order}) AS place FROM pairs"
        is_test, is_valid = "place <= last_test", "place <= last_valid AND place > last_test"
        if self.rule.kind == "user-folds":
            parts, part = self.rule.parts, self.rule.part
            fold = f"floor(fraction({self._key(chr(39) + 'fold' + chr(39), 'user_id')}, 1) * {parts})"
            is_test, is_valid = f"{is_test} AND {fold} = {part - 1}", f"{is_valid} AND {fold} = {part % parts}"
        label = f"CASE WHEN {is_test} THEN 2 WHEN {is_valid} THEN 1 ELSE 0 END"
        joined = f"({ranked}) AS ranked JOIN ({sizes}) AS sizes ON user_id = owner"
        return f"SELECT {self.columns}, {label} AS label FROM {joined}"

    def _random_global(self) -> str:
        numbered = f"SELECT {self.columns}, number({self._key('user_id', 'item_id')}) AS number FROM pairs"
        n_test, n_valid = round(self.n * self.rule.test), round(self.n * self.rule.valid)
        cases = ""
        for label, size in ((2, n_test), (1, n_test + n_valid)):
            first = f"SELECT number FROM numbered ORDER BY number LIMIT {size}"
            cases += f"WHEN number <= (SELECT max(number) FROM ({first}) AS first) THEN {label} " if size else ""
        chosen = f"CASE {cases}ELSE 0 END" if cases else "0"
        return f"WITH numbered AS ({numbered}) SELECT {self.columns}, {chosen} AS label FROM numbered"

    def _by_time(self) -> str:
        """Pairs at the time of a cut go to the earlier split."""
        n_test, n_valid = round(self.n * self.rule.test), round(self.n * self.rule.valid)
        end = self.n
        if self.rule.kind == "temporal":
            n_valid = round(self.n * (self.rule.valid + self.rule.test)) - n_test
            n_test = n_test if n_test < self.n else 0
            n_valid = n_valid if n_valid + n_test < self.n else 0  # of very few pairs, some are training
        else:
            end -= n_test * (self.rule.parts - self.rule.part)
        self.sizes = {"train": end - n_test - n_valid, "valid": n_valid, "test": n_test}
        cases, first = "", 0
        for split, label in LABELS.items():
            first += self.sizes[split]
            last = f"SELECT timestamp FROM pairs ORDER BY timestamp LIMIT 1 OFFSET {first - 1}"
            if self.sizes[split] and first >= 1:
                cases += f"WHEN timestamp <= ({last}) THEN {label} " if first < self.n else f"ELSE {label} "
        cases = cases if "ELSE" in cases else f"{cases}ELSE {LEFT_OUT} "
        chosen = f"CASE {cases}END" if cases.startswith("WHEN") else cases.split()[1]
        return f"SELECT {self.columns}, {chosen} AS label FROM pairs"

    def _cold(self, column: str) -> str:
        order = f"{'timestamp NULLS LAST, ' if self.timed else ''}number({self._key('user_id', 'item_id')})"
        ranked = (
            f"SELECT {self.columns}, row_number() OVER (PARTITION BY {column} ORDER BY {order}) AS place FROM pairs"
        )
        drawn = f"fraction({self._key(column)}, 1)"
        test, both = _double(self.rule.test), _double(self.rule.test + self.rule.valid)
        kind = f"CASE WHEN {drawn} < {test} THEN 2 WHEN {drawn} < {both} THEN 1 ELSE 0 END"
        support, joined = str(self.rule.support), ""
        if self.trained:
            before = f"SELECT {column} AS known, count(*) AS n FROM trained GROUP BY {column}"
            joined = f"LEFT JOIN ({before}) AS before ON {column} = known"
            support = f"({support} - coalesce(n, 0))"
        label = f"CASE WHEN place <= {support} THEN 0 ELSE {kind} END"
        return f"SELECT {self.columns}, {label} AS label FROM ({ranked}) AS ranked {joined}"

    def notes(self, counts: dict[int, int]) -> list[str]:
        """What is to be said of so many pairs of each label."""
        if self.rule.kind in ("cold-users", "cold-items"):
            column = "user_id" if self.rule.kind == "cold-users" else "item_id"
            is_cold = f"fraction({self._key(column)}, 1) < {_double(self.rule.test + self.rule.valid)}"
            cold, n = self.engine.row(
                f"SELECT sum(CASE WHEN {is_cold} THEN 1 ELSE 0 END), count(*) "
                f"FROM (SELECT DISTINCT {column} FROM pairs) AS owners"
            )
            what = self.rule.kind.removeprefix("cold-")
            kept = f"they keep at most {self.rule.support} pairs in training"
            return [f"{int(cold or 0):,} of {n:,} {what} are cold: {kept}"]
        notes, wanted, got, tied = [], 0, 0, 0
        for split, size in self.sizes.items():
            wanted, got = wanted + size, got + counts[LABELS[split]]
            tied += got - wanted if size and wanted < self.n else 0
        if tied:
            pairs = counted(tied, "pair", "pairs")
            notes.append(f"{pairs} at the time of a cut went to the earlier split, so the shares are not exact")
        if counts[LEFT_OUT]:
            notes.append(f"{counted(counts[LEFT_OUT], 'pair', 'pairs')} after the window were left out")
        return notes


def _double(number: float) -> str:
    """A literal that no engine takes for a decimal."""
    return f"CAST('{number!r}' AS DOUBLE)"


def drop_rare(engine: SqlEngine, least: dict[str, int], columns: Sequence[str]) -> list[str]:
    """Drop users and items from the table `pairs` until all that are left have enough pairs (a k-core).

    Parameters
    ----------
    engine : has the table
    least : `user_id` and `item_id` → fewest pairs
    columns : those of the table

    Returns
    -------
    notes about what was dropped
    """
    if all(few <= 1 for few in least.values()):
        return []
    totals = "SELECT count(*), count(DISTINCT user_id), count(DISTINCT item_id) FROM pairs"
    before = now = engine.row(totals)
    while True:
        enough = " AND ".join(
            f"{column} IN (SELECT {column} FROM pairs GROUP BY {column} HAVING count(*) >= {few})"
            for column, few in least.items()
        )
        engine.define("kept", f"SELECT {', '.join(columns)} FROM pairs WHERE {enough}")
        engine.define("pairs", "SELECT * FROM kept")
        was, now = now, engine.row(totals)
        if now == was:
            break
    if not now[0]:
        raise InputError(
            f"no pair is left when every user must have {least[Column.USER]} interactions and every item "
            f"{least[Column.ITEM]}; lower --min-user or --min-item"
        )
    if now == before:
        return []
    dropped = [
        f"{gone:,} {what} with fewer than {few} interactions"
        for what, gone, few in zip(
            ("users", "items"), (before[1] - now[1], before[2] - now[2]), least.values(), strict=True
        )
        if gone
    ]
    return [f"{' and '.join(dropped)} were dropped, {before[0] - now[0]:,} pairs in all"]


def random_global(n: int, valid: float, test: float, rng: np.random.Generator) -> Labels:
    """Random labels by position, for published files, whose order is fixed.

    Parameters
    ----------
    n : number of pairs
    valid, test : shares
    rng : draws a permutation

    Returns
    -------
    (n,) labels
    """
    n_test, n_valid = round(n * test), round(n * valid)
    labels = np.zeros(n, dtype=np.int8)
    order = rng.permutation(n)
    labels[order[:n_test]] = 2
    labels[order[n_test : n_test + n_valid]] = 1
    return labels
