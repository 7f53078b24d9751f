"""Options that several commands share, each declared once, and what reads their values."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from typer import Argument, Option

from dpaa._io import SMALL_JSON, check_file_target, read_text
from dpaa.cli.console import err
from dpaa.errors import InputError, need_whole

if TYPE_CHECKING:
    import polars as pl

    from dpaa.data.log import ColumnNames
    from dpaa.data.tables import Table
    from dpaa.runs.model import Model

DatasetArgument = Annotated[Path, Argument(help="A prepared dataset (folder made by `dpaa data`).")]
DatasetOption = Annotated[Path | None, Option(help="The dataset, for files or if it has moved since training.")]
RunArgument = Annotated[Path, Argument(help="A finished run folder.")]
Method = Annotated[str, Option(help="Method; `dpaa methods` lists them.")]
Assignments = Annotated[list[str] | None, Option("--set", metavar="NAME=VALUE", help="A hyperparameter; repeatable.")]
Config = Annotated[Path | None, Option(help="TOML file of hyperparameters.")]
Seed = Annotated[int, Option(min=0, help="Random seed.")]
Jobs = Annotated[int, Option(min=1, help="Parallel trainings, one core each.")]
K = Annotated[int, Option("--k", min=1, help="Length of the lists.")]
Users = Annotated[list[str] | None, Option("--users", help="Only these users: ID,ID or @FILE of ids; repeatable.")]
Overlap = Annotated[str, Option(help="Test pairs that are also training pairs: drop, mask or keep.")]
Severity = Annotated[float, Option(min=0, help="Bias of the log; 0 for none.")]
GroupBy = Annotated[str | None, Option(metavar="COLUMN", help="Also show accuracy and exposure by an item column.")]
PopularityDial = Annotated[str | None, Option(metavar="X|run", help="κ: above 0 favours popular items, below 0 niche.")]
Rerank = Annotated[str | None, Option(metavar="NAME[,PARAMETER=VALUE…]", help="Re-ranker of the lists, or `none`.")]
Metrics = Annotated[list[str] | None, Option("--metric", help="Metric, such as ndcg or recall/niche; repeatable.")]
KeepAccuracy = Annotated[
    str | None, Option(metavar="SHARE[,confidence=X]", help="Share of the baseline's accuracy to keep: 0.98.")
]
FailIf = Annotated[list[str] | None, Option(help='Exit with 1 if, e.g., "ndcg@20 < 0.98 * RUN"; repeatable.')]
FigureFolder = Annotated[Path | None, Option("--figures", metavar="DIR", help="Folder for figures, as SVG and PNG.")]
Overwrite = Annotated[bool, Option("--overwrite", help="Replace existing output.")]
AsJson = Annotated[bool, Option("--json", help="Print JSON.")]
Columns = Annotated[
    str | None,
    Option(metavar="ROLE=NAME,…", help="user=, item=, rating=, timestamp=; or NAME,…; default: detected."),
]
MinPairs = Annotated[str, Option(metavar="N|user=N,item=N", help="Drop users and items with fewer pairs.")]
FORMATS = "csv, tsv, inter, jsonl, parquet or list"
ROLES = ("user", "item", "rating", "timestamp")
PAGES = (".html", ".htm")
TABLES = (".csv", ".tsv", ".parquet", ".inter", ".jsonl")
LARGEST = 200_000_000
"""Bytes of a file of ids."""


@dataclass(frozen=True)
class ColumnOptions:
    """Which columns have users, items, ratings and times, and which rows are positive."""

    columns: Columns = None
    positive: Annotated[str | None, Option(metavar="RULE", help="Positive rows: rating>=3; default: all.")] = None

    @property
    def names(self) -> ColumnNames:
        """What the columns are called."""
        return parse_columns(self.columns)[0]


@dataclass(frozen=True)
class LogOptions(ColumnOptions):
    """How the files of a log are read, and which rows are used."""

    invalid: Annotated[str | None, Option(metavar="drop|FILE", help="Drop invalid rows, or write them to FILE.")] = None
    items: Annotated[
        Path | None, Option(metavar="FILE", help="Attributes of the items: item_id, title, …", rich_help_panel="Input")
    ] = None
    read_as: Annotated[
        str | None, Option("--format", metavar="FORMAT", help=f"{FORMATS}; text also ,separator=X,encoding=X.")
    ] = None

    @property
    def names(self) -> ColumnNames:
        """What the columns are called; None where `--columns` has those of a file without a header line."""
        return parse_columns(self.columns, headerless=True)[0]

    @property
    def reading(self) -> dict[str, Any]:
        """The format, None = by the ending, and how text files are read."""
        from dpaa.data.inputs import TextForm

        kinds = dict.fromkeys(("value", "separator", "encoding"), str)
        given = {} if self.read_as is None else parse_values(self.read_as, "format", **kinds)
        fmt = given.pop("value", None)
        return {"fmt": fmt, "form": TextForm(columns=parse_columns(self.columns, headerless=True)[1], **given)}

    @property
    def attributes(self) -> Table | None:
        """The table of `--items`."""
        from dpaa.data.inputs import open_table

        return None if self.items is None else open_table(self.items)

    @property
    def rows(self) -> dict[str, Any]:
        """Which rows count."""
        return {"positive": self.positive, "drop_invalid": self.invalid is not None}

    @property
    def invalid_out(self) -> Path | None:
        """Where rows with faults go."""
        return None if self.invalid in (None, "drop") else Path(str(self.invalid))

    def check(self, overwrite: bool) -> None:
        """Refuse, before any work, a file of invalid rows that could not be written."""
        if self.invalid_out is not None:
            from dpaa.runs.stream import check_target

            check_target(self.invalid_out, overwrite)

    def write_invalid(self, invalid: pl.DataFrame | None) -> None:
        """Write the rows that were left out to the file of `--invalid`."""
        if self.invalid_out is not None and invalid is None:
            err.print(f"no row is invalid; {self.invalid_out} was not written")
        elif self.invalid_out is not None and invalid is not None:
            from dpaa.runs.stream import write_stream

            n_rows = write_stream(iter([invalid]), invalid.schema, self.invalid_out)
            err.print(f"invalid rows written to {self.invalid_out}: {n_rows:,}")


@dataclass(frozen=True)
class ChoiceOptions:
    """Points that `dpaa debias` tries, and its selection rule."""

    goals: Annotated[list[str] | None, Option("--goal", help="Goal; repeatable; default: niche-recall.")] = None
    keep_accuracy: KeepAccuracy = None
    exposure: Annotated[str, Option(metavar="unknown|as-logged|shifted", help="Exposure after the change.")] = "unknown"
    methods: Annotated[str | None, Option(metavar="A,B,…", help="Methods to train; default: a few.")] = None
    rerank: Annotated[list[str] | None, Option(help="Re-ranker to try; repeatable; default: all.")] = None
    k: K = 20
    max_minutes: Annotated[float | None, Option(help="Time limit; then the best point so far is used.")] = None

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of `dpaa.debias`."""
        how: dict[str, Any] = {"exposure": self.exposure, "rerank": self.rerank, "k": self.k}
        how |= {"goals": self.goals or ("niche-recall",)}
        how |= {"methods": split_names(self.methods) if self.methods else None, "budget": self.max_minutes}
        if self.keep_accuracy is not None:
            given = parse_values(self.keep_accuracy, "keep-accuracy", value=float, confidence=float)
            how |= {"keep_accuracy" if name == "value" else name: share for name, share in given.items()}
        return how


def grouped(**groups: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let a command take groups of options: Typer sees the fields, the function gets the objects.

    Parameters
    ----------
    groups : parameter of the function → dataclass whose fields are annotated as Typer options

    Returns
    -------
    a decorator
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = [p for p in inspect.signature(command).parameters.values() if p.name not in groups]
        declared: list[tuple[Any, Any]] = [(command, p) for p in own]
        declared += [(group, field) for group in groups.values() for field in fields(group)]
        hints = {source: get_type_hints(source, include_extras=True) for source in (command, *groups.values())}

        @wraps(command)
        def run(**given: Any) -> None:
            for name, group in groups.items():
                given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
            command(**given)

        kind = inspect.Parameter.KEYWORD_ONLY
        signature = [
            inspect.Parameter(one.name, kind, default=one.default, annotation=hints[source][one.name])
            for source, one in declared
        ]
        run.__annotations__ = {p.name: p.annotation for p in signature}
        run.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
        return run

    return decorate


def read_hyperparameters(
    assignments: list[str] | None, config: Path | None = None, seed: int | None = None
) -> dict[str, Any]:
    """Read the hyperparameters of a call: of the file, then of `--set`, then `--seed`; the later wins.

    Parameters
    ----------
    assignments : NAME=VALUE
    config : TOML file
    seed : random seed

    Returns
    -------
    name → value, `method` among them where the file names one
    """
    values: dict[str, Any] = {}
    if config is not None:
        try:
            values |= tomllib.loads(read_text(config, SMALL_JSON))
        except (tomllib.TOMLDecodeError, RecursionError, OverflowError) as error:
            raise InputError(f"{config} is not valid TOML ({error}); write lines such as layers = 2") from None
        method = values.get("method", "")
        if not isinstance(method, str) or ":" in method or any(isinstance(value, dict) for value in values.values()):
            raise InputError(f"{config} has a table or a class; write lines such as layers = 2 or method = 'dpaa'")
    for assignment in assignments or ():
        name, equals, value = assignment.partition("=")
        if not equals or not name.strip():
            raise InputError(f"--set takes NAME=VALUE, got {assignment!r}; write for example --set layers=2")
        values[name.strip()] = value.strip()
    return values | ({} if seed is None else {"seed": seed})


def plugin_option(method: str) -> str:
    """`--plugin MODULE:CLASS ` for the next call where only this call knows the method, else nothing."""
    from dpaa.methods import METHODS

    address = METHODS.address(method)
    return "" if address == method else f"--plugin {address} "


def parse_columns(text: str | None, headerless: bool = False) -> tuple[ColumnNames, tuple[str, ...] | None]:
    """Read `--columns`.

    Parameters
    ----------
    text : `user=NAME,item=NAME,…`, or the names of all columns in their order
    headerless : whether the latter is meaningful

    Returns
    -------
    names by role, and names of all columns of a file without a header line
    """
    from dpaa.data.log import ColumnNames

    if text is None:
        return ColumnNames(), None
    if headerless and "=" not in text:
        return ColumnNames(), tuple(name.strip() for name in text.split(","))
    return ColumnNames(**parse_values(text, "columns", **dict.fromkeys(ROLES, str))), None


def parse_values(text: str, option: str, **kinds: Callable[[str], Any]) -> dict[str, Any]:
    """Read `VALUE,PARAMETER=VALUE,…`, or parameters alone.

    Parameters
    ----------
    text : of the option
    option : its name
    kinds : what reads each; `value` is the one without a name, if there is one

    Returns
    -------
    those that are given
    """
    values: dict[str, Any] = {}
    for index, word in enumerate(map(str.strip, text.split(","))):
        name, equals, given = (part.strip() for part in word.partition("="))
        if not index and not equals:
            name, given = "value", name
        if not given or name not in kinds or name in values:
            takes = ", ".join(f"{kind}=…" for kind in kinds if kind != "value")
            raise InputError(f"--{option} cannot have {word!r}; it takes {takes}, each once, separated by commas")
        try:
            values[name] = kinds[name](given)
        except (ValueError, KeyError):
            named: dict[Callable[[str], Any], str] = {int: "a whole number", float: "a number"}
            what = (named | {datetime.fromisoformat: "a date such as 2024-03-01"}).get(kinds[name], "yes or no")
            where = "" if name == "value" else f" for {name}"
            raise InputError(f"--{option} takes {what}{where}, got {given!r}") from None
    return values


def check_outputs(
    files: Sequence[Path] | None, endings: Sequence[str], what: str, overwrite: bool
) -> tuple[list[Path], list[Path]]:
    """Refuse, before any work, files of `--out` that could not be written.

    Parameters
    ----------
    files : of the call
    endings : that are possible besides a page's
    what : is written, for the message
    overwrite : whether they may exist

    Returns
    -------
    the pages, and the others
    """
    pages = [file for file in files or () if file.suffix.lower() in PAGES]
    for file in files or ():
        check_file_target(file, (*PAGES, *endings), what, overwrite=overwrite, make_folders=file in pages)
    if pages:
        from dpaa.report import check_page

        check_page(pages[0])  # needs an extra
    return pages, [file for file in files or () if file not in pages]


def parse_min_pairs(text: str) -> dict[str, int]:
    """Read `--min-pairs`: `5`, or `user=5,item=2`.

    Parameters
    ----------
    text : of the option

    Returns
    -------
    fewest pairs of a user, and of an item, as arguments
    """
    given = parse_values(text, "min-pairs", value=int, user=int, item=int)
    fewest = {role: given.get(role, given.get("value", 1)) for role in ROLES[:2]}
    return {f"min_{role}_interactions": need_whole(number, "--min-pairs") for role, number in fewest.items()}


def split_names(text: str) -> list[str]:
    """Split `a, b` into its names."""
    return [name.strip() for name in text.split(",") if name.strip()]


if TYPE_CHECKING:
    from dpaa.auditing import Check, CheckResult


def parse_checks(texts: Iterable[str] | None) -> list[Check]:
    """Read the checks of a call; one that cannot be read is refused before any work.

    Parameters
    ----------
    texts : as `--fail-if` has them

    Returns
    -------
    the checks
    """
    from dpaa.auditing import Check
    from dpaa.evaluation.metrics import METRICS

    checks = [Check.parse(text, references=True) for text in texts or ()]
    for check in checks:
        if check.name.partition("/")[0].partition("@")[0] not in METRICS:
            raise InputError(f"--fail-if: there is no metric {check.name!r}; choose from {', '.join(METRICS)}")
    return checks


def apply_check(check: Check, metrics: Mapping[str, float], k: int, reference: Mapping[str, float]) -> CheckResult:
    """Apply a check to metrics.

    Parameters
    ----------
    check : names a metric
    metrics : of lists
    k : their length, for a metric without one
    reference : metrics of the run that the check names, if any

    Returns
    -------
    the result
    """
    from dpaa.comparison import full_name

    name = full_name(check.name, k, list(metrics))
    limit = check if check.reference is None else check.resolved(reference[name])
    return replace(limit, name=name).apply(metrics)


def print_failed(sentences: Iterable[str]) -> None:
    """Print the checks that failed, and end with exit code 1 if there are any."""
    failed = list(sentences)
    for sentence in failed:
        err.print(("check failed:", "bold red"), " ", sentence)
    if failed:
        raise typer.Exit(1)


# ---------------------------------------------------------------------- ids and pairs that a call names


def read_ids(given: list[str], known: pl.Series, what: str) -> pl.Series:
    """Parse the ids of a call, in the type of the model's own.

    Parameters
    ----------
    given : words of the call: ids separated by commas, or `@FILE`; `@@at` is the id `@at`
    known : the ids of the model
    what : user or item

    Returns
    -------
    (n,) ids; text that is no integer, where the model's ids are integers, is an error
    """
    import polars as pl

    words: list[str] = []
    for word in given:
        if word.startswith("@") and not word.startswith("@@"):
            words += _read_file(Path(word[1:]), what)
        else:
            words += [part[1:] if part.startswith("@@") else part for part in word.split(",")]
    ids = pl.Series(f"{what}_id", [word.encode("utf-8", "replace").decode() for word in words], dtype=pl.String)
    if known.dtype == pl.String:
        return ids
    numbers = ids.cast(known.dtype, strict=False)
    if numbers.has_nulls():
        wrong = ids.filter(numbers.is_null())[0]
        raise InputError(
            f"the model's {what} ids are integers (such as {known[0]}), but {wrong!r} is not; give integers"
        )
    return numbers


def _read_file(file: Path, what: str) -> list[str]:
    """The ids of a table's column of them; of any other file the lines that are not blank."""
    import polars as pl

    from dpaa.data._values import Wanted, read_frame
    from dpaa.data.inputs import open_table
    from dpaa.data.log import find_column

    if file.suffix.lower() in TABLES:
        table = open_table(file)
        ids = read_frame(table, {"id": Wanted(find_column(table, f"{what}_id", None), "id")})["id"]
        return ids.cast(pl.String).to_list()
    words = [line for line in read_text(file, LARGEST).splitlines() if line.strip()]
    if not words:
        raise InputError(f"{file} has no {what} ids; give one id a line")
    return words


def read_pairs(file: Path, model: Model, names: ColumnNames, known_users: bool = True) -> pl.DataFrame:
    """Read `user_id, item_id` of a file, in the types of the model's ids.

    Parameters
    ----------
    file : any log
    model : whose ids they are
    names : of the columns in the file
    known_users : whether users are the model's too

    Returns
    -------
    the pairs
    """
    import polars as pl

    from dpaa.data.ids import Column, is_text, kind
    from dpaa.data.inputs import open_table
    from dpaa.data.log import Reading, read_log

    log = read_log(open_table(file), names, reading=Reading(may_drop=False))
    table = log.frame.select(Column.USER, Column.ITEM)
    known = {Column.ITEM: model.item_ids} | ({Column.USER: model.user_ids} if known_users else {})
    for column, ids in known.items():
        if is_text(ids) and not log.typed:  # whole numbers of a text file may be text as well
            table = table.with_columns(pl.col(column).cast(pl.String))
        given = table[column]
        if is_text(given) != is_text(ids):
            raise InputError(
                f"{file} has {column}s that are {kind(given)} such as {given[0]!r}, the model {kind(ids)} such as "
                f"{ids[0]!r}; use the ids of the training log"
            )
    return table
