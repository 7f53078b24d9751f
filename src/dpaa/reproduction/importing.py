"""Results that somebody else made, on data that we may not have: checked wholly, then kept with their origin.

A file from elsewhere is a claim.  What can be checked is: that it has the form of a result, that its method, settings
and protocol are known here, that its name is the digest of what it says it is, and that every number is one that could
have been measured.  All files are checked before the first is kept.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NoReturn, cast

import polars as pl
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dpaa._io import check_regular, read_text, sweep
from dpaa._text import on_one_line, parse_json
from dpaa.data.parquet import parquet_schema, read_parquet
from dpaa.errors import InputError, reason
from dpaa.evaluation.evaluator import OVERLAPS
from dpaa.evaluation.metrics import GROUPS, METRICS
from dpaa.methods import find_method
from dpaa.methods.settings import first_error, make_settings, with_settings_of_old
from dpaa.reproduction.ablation import PRESETS, VARIANTS
from dpaa.reproduction.budget import BUDGETS
from dpaa.reproduction.readings import CONTROLS, readings
from dpaa.reproduction.readings import METHOD as READING
from dpaa.reproduction.results import JSON, KEY, KINDS, ResultStore, RunResult, Stored, TunedSettings
from dpaa.reproduction.sources import TITLES
from dpaa.reproduction.trainings import key_of, known_settings, parse_label, relevant_settings
from dpaa.reproduction.tuned import key_of_choice
from dpaa.tuning.trial import TRAINED

LARGEST, LARGEST_PACKED, MOST = 2_000_000, 200_000_000, 50_000
"""Bytes of one result and of a packed file, and how many results."""
LONGEST_ORIGIN, LONGEST_WORD = 300, 400
SHARES = "0 … 1"
REMEDY = "ask for the file as `dpaa reproduce` wrote it"
Number = Annotated[float, Field(allow_inf_nan=False)]


class _Details(BaseModel):
    """What a result may say besides its numbers."""

    model_config = ConfigDict(extra="forbid", strict=True)
    dataset: str
    fingerprint: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    versions: dict[str, str | None]
    users: dict[str, Annotated[int, Field(ge=0)]] = {}
    training: dict[str, Number | None] | None = None
    tuned: dict[str, Number] | None = None
    auto: dict[str, Any] | None = None
    seconds: Annotated[float, Field(ge=0)] | None = None
    failed: str | None = None
    pretrained: dict[str, Any] | None = None
    direction: dict[str, Any] | None = None


@dataclass(frozen=True)
class Foreign:
    """One result of a stranger's files."""

    place: str
    kind: str
    key: str
    result: Stored
    digest: str


@dataclass(frozen=True)
class Imported:
    """What came of an import."""

    new: int
    known: int
    """Already there, the same to the last digit."""
    data: tuple[str, ...]


def import_results(places: list[Path], results: Path, origin: str) -> Imported:
    """Keep the results of files or folders in `results`, all of them or none."""
    told = origin.strip()
    if not told or len(told) > LONGEST_ORIGIN or on_one_line(told) != told:
        raise InputError(
            f"--origin must say in one line of at most {LONGEST_ORIGIN} characters who made the results, on what; "
            f"got {origin[:60]!r}"
        )
    found = [one for place in places for one in read_foreign(place)]
    if not found:
        raise InputError(f"{places[0]} holds no results (KEY.json, or one Parquet file per kind); {REMEDY}")
    for kind in KINDS:
        sweep(results / kind)  # what a killed call left; where all is known, nobody writes there
    new = [one for one in found if not _known(one, results)]
    for one in new:
        store = ResultStore(results, one.kind, cast("type[Any]", KINDS[one.kind]))
        note = {"origin": told, "sha256": one.digest}
        store.write(one.key, one.result.model_copy(update={"imported": note}))
    return Imported(len(new), len(found) - len(new), tuple(sorted({one.result.data for one in found})))


def _known(one: Foreign, results: Path) -> bool:
    """Whether the same is there; a result of the same training with other numbers is refused."""
    kept = ResultStore(results, one.kind, cast("type[Any]", KINDS[one.kind])).read(one.key)
    if kept is None:
        return False
    measured = ("metrics", "settings", "seed", "valid")
    differing = [name for name in measured if getattr(kept, name, None) != getattr(one.result, name, None)]
    if differing:
        raise InputError(
            f"{one.place}: {results} has another result of the same training ({one.key}, other {differing[0]}); "
            "remove the one that is wrong"
        )
    return True


# ---------------------------------------------------------------------- reading


def read_foreign(place: Path) -> list[Foreign]:
    """All results of a file or folder, checked."""
    if place.is_dir():
        files = sorted(file for file in place.iterdir() if file.suffix in (".json", ".parquet"))
        for kind in KINDS:
            files += sorted((place / kind).glob("*.json")) if (place / kind).is_dir() else []
    else:
        files = [place]
    if len(files) > MOST:
        raise InputError(f"{place} has {len(files):,} files, more than {MOST:,} results; name a folder of results")
    found: list[Foreign] = []
    for file in files:
        for name, key, text in _texts(file):
            found.append(_checked(name, key, text, file.parent.name if file.suffix == ".json" else file.stem))
            if len(found) > MOST:
                raise InputError(f"{place} has more than {MOST:,} results; take in fewer at a time")
    return found


def _texts(file: Path) -> Iterator[tuple[str, str, str]]:
    """Place, key and JSON of each result of a file."""
    if file.suffix == ".json":
        yield str(file), file.stem, read_text(file, LARGEST)
        return
    if file.suffix != ".parquet":
        raise InputError(f"{file} is neither a result (KEY.json) nor a file of packed results (.parquet); {REMEDY}")
    if check_regular(file) > LARGEST_PACKED:
        raise InputError(f"{file} is larger than {LARGEST_PACKED / 1e6:g} MB, more than results can need; {REMEDY}")
    try:
        types = parquet_schema(file)
        if any(types.get(name) != pl.String for name in (KEY, JSON)):
            raise InputError(f"{file} has no columns {KEY!r} and {JSON!r} of text; {REMEDY}")
        table = read_parquet(file, [KEY, JSON])
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f"{file} is not a readable file of packed results ({reason(error)}); {REMEDY}") from None
    for row, (key, text) in enumerate(table.select(KEY, JSON).iter_rows()):
        if key is None or text is None or len(text) > LARGEST:
            raise InputError(f"{file}, row {row:,}: no result of at most {LARGEST / 1e6:g} MB; {REMEDY}")
        yield f"{file}, row {row:,}", key, text


def _checked(place: str, key: str, text: str, folder: str) -> Foreign:
    """One result, or a sentence that says what is wrong with it."""
    try:
        content = parse_json(text)
        if not isinstance(content, dict):
            raise ValueError("it is no JSON object")
        json.loads(text, parse_constant=_refuse)  # ours write null where there is no number
        kind = folder if folder in KINDS else _kind(content)
        result = KINDS[kind].model_validate(content)
        _check_common(result)
        wanted = _check_run(result, kind) if isinstance(result, RunResult) else _check_choice(result)
        if key != wanted:
            raise ValueError(
                f"what it says it is has the name {wanted}: name or content was changed, or its method has"
            )
    except ValidationError as error:
        raise InputError(f"{place} is not a result that can be taken in ({first_error(error)}); {REMEDY}") from None
    except ValueError as error:
        said = str(error) if isinstance(error, InputError) else reason(error)
        raise InputError(f"{place} is not a result that can be taken in ({said}); {REMEDY}") from None
    return Foreign(place, kind, key, result, hashlib.sha256(text.encode()).hexdigest())


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _kind(content: dict[str, Any]) -> str:
    """Of a result that lies in no folder of a kind."""
    if "tried" in content:
        return "tuned"
    if content.get("method") == READING:
        return "readings"
    return "severity" if str(content.get("data", "")).startswith("s=") else "overall"


# ---------------------------------------------------------------------- checking


def _check_common(result: Stored) -> None:
    _check_words(result.model_dump())
    if result.data not in TITLES and not re.fullmatch(r"s=\d{1,3}(\.\d{1,6})?", result.data):
        raise ValueError(f"data: {result.data!r} is none of {', '.join(TITLES)} and no severity")
    protocols = sorted({budget.protocol for budget in BUDGETS.values()})
    if result.protocol not in protocols:
        raise ValueError(f"protocol: {result.protocol!r} is none of {', '.join(protocols)}")
    if result.imported is not None:
        raise ValueError("imported: it was taken in from elsewhere; take it from where it was made")
    find_method(result.method)


def _check_words(content: Any) -> None:
    """No text of a file may be long or hold what moves a terminal."""
    if isinstance(content, dict):
        for name, value in content.items():
            _check_words(name)
            _check_words(value)
    elif isinstance(content, list):
        for value in content:
            _check_words(value)
    elif isinstance(content, str) and (len(content) > LONGEST_WORD or on_one_line(content) != content):
        raise ValueError(f"text that no result of ours has: {content[:40]!r}")


def _check_run(result: RunResult, kind: str) -> str:
    """A training; returns the key that it must have."""
    details = _Details.model_validate(result.details)
    method = find_method(result.method)
    values = with_settings_of_old(method.settings_type, result.settings)
    settings = relevant_settings(make_settings(method.settings_type, values, method.name))
    if settings != result.settings or result.seed != settings["seed"]:
        changed = next((name for name in settings if settings[name] != result.settings.get(name)), "seed")
        raise ValueError(f"settings.{changed}: {result.settings.get(changed)!r} is not what {method.name} would keep")
    _check_label(result, kind)
    if not result.metrics and details.failed is None:
        raise ValueError("metrics: there are none, and nothing says that the training failed")
    if result.metrics and set(result.metrics) != set(OVERLAPS):
        raise ValueError(f"metrics: of {', '.join(map(repr, result.metrics))}, not of {', '.join(OVERLAPS)}")
    for overlap, metrics in [*result.metrics.items(), *([("dial", result.dial.metrics)] if result.dial else [])]:
        for needed in ("recall@20", "ndcg@20", "hit@20"):
            if metrics.get(needed) is None:
                raise ValueError(f"metrics.{overlap}.{needed}: there is no number")
        for name, value in metrics.items():
            _check_metric(f"metrics.{overlap}.{name}", name, value)
    return key_of(details.fingerprint, method.name, settings, details.pretrained)


def _check_label(result: RunResult, kind: str) -> None:
    """A row that a table of ours could have."""
    label = result.label
    variants = {f"{preset}: {variant}" for preset in PRESETS for variant in VARIANTS}
    if kind == "readings":
        names = {one.name for one in (*readings(), *CONTROLS)}
        sound = result.method == READING and any(label in (n, *(f"{n}: {v}" for v in VARIANTS)) for n in names)
    else:
        sound = label in variants or parse_label(label)[0] == result.method
    if not sound:
        raise ValueError(f"label: {label!r} is no row of method {result.method}")


def _check_metric(place: str, name: str, value: float | None) -> None:
    """Known, and a number that it can have."""
    base, at, rest = name.partition("@")
    k, _, group = rest.partition("/")
    known = METRICS.get(base)
    if known is None or not at or not k.isdecimal() or (group and group not in GROUPS):
        raise ValueError(f"{place}: there is no such metric")
    if value is None:
        return
    low = -1.0 if known.range.startswith("> −1") else 0.0
    high = 1.0 if known.range == SHARES else float(k) if known.range == "0 … k" else math.inf
    if not math.isfinite(value) or not low <= value <= high + 1e-9:
        raise ValueError(f"{place}: {value!r} is not in its range ({known.range})")


def _check_choice(result: Stored) -> str:
    """Settings that were tuned; returns the key that they must have."""
    assert isinstance(result, TunedSettings)
    method = find_method(result.method)
    make_settings(method.settings_type, known_settings(result.fixed, method.name) | result.settings, method.name)
    if not 0 <= result.valid <= 1 or not result.seconds >= 0:
        raise ValueError(f"valid: {result.valid!r}, seconds: {result.seconds!r}: no recall or no time")
    if sum(one.get("state") in TRAINED for one in result.tried) != result.trials:
        raise ValueError(f"trials: {result.trials}, but {len(result.tried)} are told, not all of them trained")
    return key_of_choice(result.fingerprint, method.name, result.fixed, result.tuning)
