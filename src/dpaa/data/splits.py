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
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dpaa.data._engine import Engine
from dpaa.data.ids import IDS, Column
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


@dataclass(frozen=True)
class SplitRule:
    """How a log is split into train, validation and test.

    Parameters
    ----------
    kind : `random` per user, `random-global` over all pairs, `temporal` by time, `leave-last` pairs of each user,
        `user-folds`, `cold-users`, `cold-items` or `time-windows`
    valid : share of the pairs for validation (not used by `leave-last`); of users or items where they are cold
    test : the same for the test
    last_k : pairs of each user for validation, and as many for the test (`leave-last`)
    parts : number of folds or windows
    part : which of them this is, from 1
    support : pairs of a cold user or item that stay in training
    """

    kind: str = "random"
    valid: float = 0.1
    test: float = 0.2
    last_k: int = 1
    parts: int = 5
    part: int = 1
    support: int = 5

    def __post_init__(self) -> None:
        if self.kind not in SPLIT_KINDS:
            raise InputError(f"there is no split {self.kind!r}; choose one of {', '.join(SPLIT_KINDS)}")
        windows = self.parts if self.kind == "time-windows" else 1
        if not (0 <= self.valid < 1 and 0 <= self.test < 1 and self.valid + windows * self.test < 1):
            shares = f"validation ({self.valid:g}) and test ({self.test:g}) × {windows}"
            raise InputError(f"the shares of {shares} must be at least 0, and their sum less than 1")
        need_whole(self.last_k, "last_k")
        need_whole(self.support, "support", least=0)
        if need_whole(self.parts, "parts") < 2 or need_whole(self.part, "part") > self.parts:
            raise InputError(f"there is no part {self.part} of {self.parts}; use at least 2 parts, counted from 1")

    def each(self) -> list[SplitRule]:
        """List one rule for every part.

        Returns
        -------
        the rules; the rule itself where it has no parts
        """
        return [replace(self, part=part) for part in range(1, self.parts + 1)] if self.kind in IN_PARTS else [self]

    @property
    def needs_times(self) -> bool:
        """Whether every pair must have a time."""
        return self.kind in BY_TIME

    def __str__(self) -> str:
        if self.kind == "leave-last":
            return f"leave-last, {self.last_k} + {self.last_k} per user"
        part = f", part {self.part} of {self.parts}" if self.kind in IN_PARTS else ""
        support = f", {self.support} pairs of each in training" if self.kind.startswith("cold") else ""
        return f"{self.kind}{part}, {self.valid:g} validation, {self.test:g} test{support}"


def define_labels(
    engine: Engine, rule: SplitRule, seed: int, columns: Sequence[str], source: str, times_appended: int = 0
) -> None:
    """Make the table `labelled` from the table `pairs`: its columns and a `label`.

    Parameters
    ----------
    engine : has the table `pairs`, and where these are appended the table `trained` of training pairs from before
    rule : how pairs are split
    seed : another seed gives another split
    columns : those of the table
    source : where the pairs come from, for messages
    times_appended : how often pairs were appended to the dataset, this time included; 0 = it is new
    """
    need_whole(seed, "seed", least=0)
    timed, trained = Column.TIMESTAMP in columns, times_appended > 0
    n, n_timed = engine.row(f"SELECT count(*), {'count(timestamp)' if timed else '0'} FROM pairs")
    if rule.needs_times and n_timed < n:
        raise InputError(
            f"the split {rule.kind!r} needs times, and {source} lacks them; name them with --columns timestamp=…"
        )
    own = ", ".join(columns)
    if rule.kind in ("random", "user-folds"):
        # Users who append a pair a day would otherwise always give the test all of them, or none.
        key = _key(f"{seed}+{times_appended}" if times_appended else seed, "user_id")
        # Rounded up for as many users as the share asks for: sizes are right on average, also with a few pairs each.
        test, valid = (
            f"CAST(floor(n * {_double(share)} + fraction({key}, {half})) AS BIGINT)"
            for half, share in ((1, rule.test), (2, rule.valid))
        )
        query = _per_user(own, f"number({_key(seed, *IDS)}), item_id", test, valid, trained, _fold(rule, seed))
    elif rule.kind == "leave-last":
        query = _per_user(own, "timestamp DESC, item_id DESC", str(rule.last_k), str(rule.last_k), trained)
    elif rule.kind == "random-global":
        query = _random_global(own, rule, seed, n)
    elif rule.needs_times:
        query = _by_time(own, rule, n)
    else:
        query = _cold(own, rule, seed, timed, trained)
    engine.define("labelled", query)


def _key(seed: int | str, *columns: str) -> str:
    """Write SQL of the text that a digest is made of."""
    return f"concat('{seed}', {', '.join(f'chr(0), {column}' for column in columns)})"


def _fold(rule: SplitRule, seed: int) -> tuple[str, str]:
    """Conditions on the users of test and validation pairs."""
    if rule.kind != "user-folds":
        return "", ""
    fold = f"floor(fraction({_key(seed, chr(39) + 'fold' + chr(39), 'user_id')}, 1) * {rule.parts})"
    return f" AND {fold} = {rule.part - 1}", f" AND {fold} = {rule.part % rule.parts}"


def _per_user(own: str, order: str, test: str, valid: str, trained: bool, fold: tuple[str, str] = ("", "")) -> str:
    """The first pairs of each user are test, the next validation; one is training.

    No pair need be training of a user who has a training pair already.
    """
    known = "LEFT JOIN (SELECT DISTINCT user_id AS known FROM trained) AS before ON user_id = known" if trained else ""
    most = "CASE WHEN known IS NULL THEN n - 1 ELSE n END" if trained else "n - 1"
    users = "SELECT user_id, count(*) AS n FROM pairs GROUP BY user_id"
    wanted = f"SELECT user_id AS owner, {most} AS most, {test} AS n_test, {valid} AS n_valid FROM ({users}) AS users"
    # Where a user has too few pairs for all three, the test takes them first and training keeps one.
    sizes = (
        "SELECT owner, least(n_test, most) AS last_test, least(n_test, most) + "
        f"least(n_valid, most - least(n_test, most)) AS last_valid FROM ({wanted} {known}) AS wanted"
    )
    ranked = f"SELECT {own}, row_number() OVER (PARTITION BY user_id ORDER BY {order}) AS ordinal FROM pairs"
    label = (
        f"CASE WHEN ordinal <= last_test{fold[0]} THEN 2 "
        f"WHEN ordinal <= last_valid AND ordinal > last_test{fold[1]} THEN 1 ELSE 0 END"
    )
    return f"SELECT {own}, {label} AS label FROM ({ranked}) AS ranked JOIN ({sizes}) AS sizes ON user_id = owner"


def _random_global(own: str, rule: SplitRule, seed: int, n: int) -> str:
    numbered = f"SELECT {own}, number({_key(seed, *IDS)}) AS number FROM pairs"
    n_test, n_valid = round(n * rule.test), round(n * rule.valid)
    cases = "WHEN false THEN 0 "  # SQL knows no CASE without a condition, as where nothing is held out
    for label, size in ((2, n_test), (1, n_test + n_valid)):
        first = f"SELECT number FROM numbered ORDER BY number LIMIT {size}"
        cases += f"WHEN number <= (SELECT max(number) FROM ({first}) AS first) THEN {label} " if size else ""
    return f"WITH numbered AS ({numbered}) SELECT {own}, CASE {cases}ELSE 0 END AS label FROM numbered"


def _by_time(own: str, rule: SplitRule, n: int) -> str:
    """Pairs at the time of a cut go to the earlier split."""
    n_test, n_valid, end = round(n * rule.test), round(n * rule.valid), n
    if rule.kind == "temporal":
        n_valid = round(n * (rule.valid + rule.test)) - n_test
        n_test = n_test if n_test < n else 0
        n_valid = n_valid if n_valid + n_test < n else 0  # of very few pairs, some are training
    else:
        end -= n_test * (rule.parts - rule.part)
    cases, otherwise, last = "WHEN false THEN 0 ", LEFT_OUT, 0
    for label, size in enumerate((end - n_test - n_valid, n_valid, n_test)):
        last += size
        if size and last >= n:
            otherwise = label
        elif size and last >= 1:
            cut = f"SELECT timestamp FROM pairs ORDER BY timestamp LIMIT 1 OFFSET {last - 1}"
            cases += f"WHEN timestamp <= ({cut}) THEN {label} "
    return f"SELECT {own}, CASE {cases}ELSE {otherwise} END AS label FROM pairs"


def _cold(own: str, rule: SplitRule, seed: int, timed: bool, trained: bool) -> str:
    column = "user_id" if rule.kind == "cold-users" else "item_id"
    order = f"{'timestamp NULLS LAST, ' if timed else ''}number({_key(seed, *IDS)})"
    ranked = f"SELECT {own}, row_number() OVER (PARTITION BY {column} ORDER BY {order}) AS ordinal FROM pairs"
    drawn, support, joined = f"fraction({_key(seed, column)}, 1)", str(rule.support), ""
    if trained:
        before = f"SELECT {column} AS known, count(*) AS n FROM trained GROUP BY {column}"
        joined = f"LEFT JOIN ({before}) AS before ON {column} = known"
        support = f"({support} - coalesce(n, 0))"
    label = (
        f"CASE WHEN ordinal <= {support} THEN 0 WHEN {drawn} < {_double(rule.test)} THEN 2 "
        f"WHEN {drawn} < {_double(rule.test + rule.valid)} THEN 1 ELSE 0 END"
    )
    return f"SELECT {own}, {label} AS label FROM ({ranked}) AS ranked {joined}"


def _double(number: float) -> str:
    """A literal that no engine takes for a decimal."""
    return f"CAST('{number!r}' AS DOUBLE)"


def drop_rare(engine: Engine, least: dict[str, int], columns: Sequence[str]) -> list[str]:
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
    before, was, now = engine.row(totals), None, engine.row(totals)
    enough = " AND ".join(
        f"{column} IN (SELECT {column} FROM pairs GROUP BY {column} HAVING count(*) >= {few})"
        for column, few in least.items()
    )
    # To drop an item may leave a user with too few pairs, and the reverse; it ends, as pairs only become fewer.
    while now != was:
        engine.define("kept", f"SELECT {', '.join(columns)} FROM pairs WHERE {enough}")
        engine.define("pairs", "SELECT * FROM kept")
        was, now = now, engine.row(totals)
    fewest = f"{least[Column.USER]} interactions of every user and {least[Column.ITEM]} of every item"
    if not now[0]:
        raise InputError(f"no pair is left with {fewest}; lower --min-pairs")
    pairs, users, items = (old - new for old, new in zip(before, now, strict=True))
    return [f"{users:,} users and {items:,} items were dropped for {fewest}, {pairs:,} pairs in all"] if pairs else []


def random_share(n: int, share: float, seed: int) -> npt.NDArray[np.bool_]:
    """Choose a share of positions at random, for published files, whose order is fixed.

    Parameters
    ----------
    n : number of positions
    share : of them that are chosen
    seed : another seed gives another choice

    Returns
    -------
    (n,) mask
    """
    mask = np.zeros(n, dtype=np.bool_)
    mask[np.random.default_rng(seed).permutation(n)[: round(n * share)]] = True
    return mask
