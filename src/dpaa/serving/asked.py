"""What a request asks for, read and bounded: whatever a stranger sends is a question or one sentence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from typing import Annotated, Any

import numpy as np
import orjson
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr, ValidationError

from dpaa.ranking.quotas import Quota
from dpaa.ranking.reranker import Reranker
from dpaa.runs.lists import LONGEST_NUMBER, read_limits, read_only
from dpaa.serving.engine import NOTHING, Ask
from dpaa.serving.lookup import Id, IdTable
from dpaa.serving.problems import ProblemError
from dpaa.serving.settings import ServeSettings
from dpaa.serving.snapshot import Snapshot
from dpaa.text import LARGEST_INTEGER, in_digits

Ints = NDArray[Any]
LONGEST_TEXT = 1000
"""Characters of an id or of a re-ranker's settings."""
MOST_LIMITS = 20
"""Columns that a request may name, and values that it may ask for in one."""
LARGEST = 10**LONGEST_NUMBER - 1
Word = Annotated[StrictStr, Field(max_length=LONGEST_TEXT)]
OneId = StrictInt | Annotated[StrictStr, Field(max_length=LONGEST_TEXT)]


@dataclass(frozen=True, eq=False)
class Wanted:
    """How lists shall be made, in indices of a snapshot."""

    k: int
    kappa: float
    exclude: Ints
    allow: Ints | None
    reranker: Reranker | None
    quotas: tuple[Quota, ...]
    explain: bool

    def ask(self, snapshot: Snapshot, **who: Any) -> Ask:
        """For one person."""
        return Ask(
            snapshot,
            self.k,
            kappa=self.kappa,
            exclude=self.exclude,
            allow=self.allow,
            reranker=self.reranker,
            quotas=self.quotas,
            **who,
        )


class Many(BaseModel):
    """The body of `POST /recommend`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    users: list[OneId] | None = None
    histories: list[list[OneId]] | None = None
    k: StrictInt = 20
    dial: StrictInt | float | StrictStr | None = None
    exclude: list[OneId] = []
    allow: list[OneId] | None = None
    only: dict[Word, list[Word] | Word] | None = None
    at_most: dict[Word, StrictInt] | None = None
    at_least: dict[Word, StrictInt] | None = None
    rerank: Annotated[StrictStr, Field(max_length=LONGEST_TEXT)] | None = None
    explain: StrictBool = False


def refuse(sentence: str) -> ProblemError:
    """A request that cannot be understood."""
    return ProblemError(400, sentence)


def only(given: Iterable[tuple[str, str]], once: Iterable[str], many: Iterable[str] = ()) -> dict[str, Any]:
    """Parameters of a query: those of `once` at most once, those of `many` as lists, no others."""
    once, many = tuple(once), tuple(many)
    found: dict[str, Any] = {}
    for name, value in given:
        if name in many:
            found.setdefault(name, []).append(value)
        elif name not in once:
            known = ", ".join((*once, *many)) or "none"
            raise refuse(f"there is no parameter {name[:60]!r}; known here: {known}")
        elif name in found:
            raise refuse(f"the parameter {name!r} is given twice; give it once")
        else:
            found[name] = value
    return found


def whole(value: object, name: str, most: int, least: int = 1) -> int:
    """A whole number within bounds."""
    try:
        number = int(value) if isinstance(value, int) or (isinstance(value, str) and len(value) < 20) else None
    except ValueError:
        number = None
    if number is None or isinstance(value, bool) or not least <= number <= most or not in_digits(value, number):
        raise refuse(f"{name} must be a whole number from {least} to {most:,}, got {_short(value)}")
    return number


def yes_or_no(value: str, name: str) -> bool:
    """A switch."""
    if value.lower() not in ("true", "false", "1", "0"):
        raise refuse(f"{name} must be true or false, got {_short(value)}")
    return value.lower() in ("true", "1")


def wanted(snapshot: Snapshot, settings: ServeSettings, given: dict[str, Any]) -> Wanted:
    """How lists shall be made: k, dial, exclude, allow, only, at_most, at_least, rerank, explain."""
    explain = given.get("explain", False)
    most, least = (_limits(given.get(name), name) for name in ("at_most", "at_least"))
    return Wanted(
        k=whole(given.get("k", 20), "k", settings.most_k),
        kappa=kappa(snapshot, given.get("dial")),
        exclude=_known(given.get("exclude") or [], snapshot.items, settings, "exclude"),
        allow=_only(_allowed(given.get("allow"), snapshot, settings), given.get("only"), snapshot),
        reranker=reranker(snapshot, given.get("rerank")),
        quotas=snapshot.model.columns.quotas(most, least),
        explain=explain if isinstance(explain, bool) else yes_or_no(explain, "explain"),
    )


def kappa(snapshot: Snapshot, given: object) -> float:
    """Where the dial stands; by itself where the run keeps it."""
    if given is None or given == "run":
        return snapshot.kappa
    try:
        number = (
            float(given) if isinstance(given, int | float) or (isinstance(given, str) and len(given) < 40) else None
        )
    except (ValueError, OverflowError):
        number = None
    if number is None or isinstance(given, bool) or not isfinite(number) or not in_digits(given, number):
        raise refuse(f"dial must be run or a number, got {_short(given)}")
    return snapshot.model.kappa(number) + 0.0  # -0.0 is 0


def reranker(snapshot: Snapshot, given: str | None) -> Reranker | None:
    """By its name; only those that are built in or were made known when the service started."""
    if given is not None and ":" in given:
        raise refuse(f"a request names no class: {_short(given)}; name a re-ranker that the service knows")
    if given is not None and len(given) > LONGEST_TEXT:
        raise refuse("rerank is too long; write NAME,SETTING=VALUE")
    return snapshot.model.reranker(given or "run")


def _allowed(given: list[Id] | None, snapshot: Snapshot, settings: ServeSettings) -> Ints | None:
    if given is None:
        return None
    found = _known(given, snapshot.items, settings, "allow")
    if not len(found):
        raise refuse("no item of allow is known; give ids of the training log")
    return found


def _only(allowed: Ints | None, given: Any, snapshot: Snapshot) -> Ints | None:
    """Of what is allowed, items with a wanted value in every column that is named."""
    if not given:
        return allowed
    wanted = read_only(_few(given, "only"), "only", "only=in_stock=true") if isinstance(given, list) else given
    for column, values in _few(wanted, "only").items():
        _few(values, f"only of column {column[:60]!r}")
    if allowed is None:
        some = snapshot.model.candidates
        allowed = np.arange(len(snapshot.items)) if some is None else np.asarray(some)
    found = snapshot.model.columns.allowed(wanted, allowed)
    if not len(found):
        raise refuse("no item is left to recommend; allow more items or exclude fewer")
    return found


def _limits(given: Any, name: str) -> dict[str, int]:
    """Column → a number from 1: `COLUMN=N` of a query, or as a body has it."""
    found = _few(given or {}, name)
    found = read_limits(found, name, f"{name}=genre=3") if isinstance(found, list) else found
    return {column: whole(value, f"{name} of column {column[:60]!r}", LARGEST) for column, value in found.items()}


def _few(given: Any, name: str) -> Any:
    """What somebody gave, if it is not too much."""
    words = [given] if isinstance(given, str) else list(given)
    if len(words) > MOST_LIMITS:
        raise refuse(f"{name} has {len(words):,} entries, at most {MOST_LIMITS} are taken")
    if any(len(word) > LONGEST_TEXT for word in words):
        raise refuse(f"{name} has more than {LONGEST_TEXT:,} characters in an entry")
    return given


def _known(given: list[Id], table: IdTable, settings: ServeSettings, name: str) -> Ints:
    """Indices of the known ids, ascending, each once; what nobody knows cannot be recommended anyhow."""
    if len(given) > settings.most_ids:
        raise refuse(f"{name} has {len(given):,} ids, at most {settings.most_ids:,} are taken")
    found = [index for one in given if (index := table.find(_checked(one))) >= 0]
    return np.unique(np.array(found, dtype=np.int64)) if found else NOTHING


def _checked(one: Id) -> Id:
    if isinstance(one, int):
        if abs(one) > LARGEST_INTEGER:
            raise refuse("an id has more than 64 bits; no dataset has such ids")
        return one
    if len(one) > LONGEST_TEXT:
        raise refuse(f"an id has {len(one):,} characters, at most {LONGEST_TEXT:,} are taken")
    try:
        one.encode()
    except UnicodeEncodeError:
        raise refuse(f"the id {one!r} is not UTF-8 text") from None
    return one


def user_index(snapshot: Snapshot, given: Id) -> int:
    """−1 for somebody nobody knows."""
    return snapshot.users.find(_checked(given))


def item_index(snapshot: Snapshot, given: Id) -> int:
    """Of an item that must be there."""
    found = snapshot.items.find(_checked(given))
    if found < 0:
        raise ProblemError(404, f"there is no item {_short(given)} in this run")
    return found


def history(given: list[Id], snapshot: Snapshot, settings: ServeSettings) -> Ints:
    """The known items of somebody's history; maybe none."""
    return _known(given, snapshot.items, settings, "a history").astype(np.int32)


def body(content: bytes, settings: ServeSettings) -> Many:
    """`POST /recommend`, read."""
    try:
        given = Many.model_validate(orjson.loads(content))
    except orjson.JSONDecodeError as error:
        raise refuse(f"the body is not readable JSON ({error.msg})") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"][:2])[:80] or "the body"
        raise refuse(f"{place}: {first['msg'].lower()}, got {_short(first.get('input'))}") from None
    if (given.users is None) == (given.histories is None):
        raise refuse("give either users or histories")
    people = given.users if given.users is not None else given.histories or []
    if not 1 <= len(people) <= settings.most_people:
        raise refuse(f"1 to {settings.most_people} users or histories are taken at a time, got {len(people):,}")
    return given


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"
