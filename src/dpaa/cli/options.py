"""Options that several commands share, each declared once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from dpaa._io import check_file_target, write_file
from dpaa._text import counted
from dpaa.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from dpaa.data.inputs import TextForm
    from dpaa.data.log import ColumnNames

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
DatasetArgument = Annotated[Path, typer.Argument(help="A prepared dataset (folder made by `dpaa data`).")]
DatasetOption = Annotated[
    Path | None, typer.Option(help="The dataset; needed with files alone, and where it has moved since training.")
]
RunArgument = Annotated[Path, typer.Argument(help="A finished run folder.")]
Method = Annotated[str, typer.Option(help="Method; `dpaa methods` lists them.")]
Assignments = Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting; repeatable.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what exists there.")]
Seed = Annotated[int, typer.Option(min=0, help="Random seed.")]
K = Annotated[int, typer.Option("--k", min=1, help="Length of the lists.")]
Overlap = Annotated[
    str, typer.Option(help="Test pairs that are also training pairs: drop (not ranked, not relevant), mask or keep.")
]
MaskValid = Annotated[bool, typer.Option("--mask-valid", help="Mask validation pairs too, like training pairs.")]
FigureFolder = Annotated[
    Path | None, typer.Option("--figures", metavar="DIR", help="Folder to write every figure to, as a file of its own.")
]
FigureFormat = Annotated[str, typer.Option(metavar="png|svg|pdf|html|json", help="Format of those figures.")]

FileFormat = Annotated[
    str | None,
    typer.Option("--format", metavar="csv|tsv|inter|jsonl|parquet|list", help="File format; default: auto-detected."),
]
Separator = Annotated[
    str | None,
    typer.Option(metavar=", | tab | ; | '|' | ::", help="Between fields; default: auto-detected."),
]
Columns = Annotated[
    str | None,
    typer.Option(metavar="NAME,NAME…", help="Names of the columns, of a text file without a header line."),
]
Encoding = Annotated[str, typer.Option(metavar="utf-8|utf-16|latin-1", help="Of text files.")]
DropInvalid = Annotated[
    bool,
    typer.Option(
        "--drop-invalid", help="Leave out rows with faults (no id, no number, no time, torn lines), and count them."
    ),
]
InvalidOut = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Write the rows of --drop-invalid, with their faults, to .csv, .jsonl or .parquet."
    ),
]
Items = Annotated[
    Path | None,
    typer.Option("--items", metavar="FILE", help="What is known of the items: item_id, title and any other columns."),
]
GroupBy = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Also count accuracy by the values of a column of the items (genre, brand …), as recall@20/genre=Drama.",
    ),
]
UserColumn = Annotated[str | None, typer.Option(help="Column of the user ids; default: auto-detected.")]
ItemColumn = Annotated[str | None, typer.Option(help="Column of the item ids; default: auto-detected.")]
RatingColumn = Annotated[str | None, typer.Option(help="Column of the ratings; default: auto-detected.")]
TimestampColumn = Annotated[
    str | None, typer.Option(help="Column of the timestamps (numbers or ISO dates); default: auto-detected.")
]
Positive = Annotated[
    str | None,
    typer.Option(metavar='"COLUMN OP NUMBER"', help="Which rows are positives, such as rating>=3; default: all."),
]
KeepDuplicates = Annotated[
    bool, typer.Option("--keep-duplicates", help="Count how often a training pair occurs; default: once.")
]


@dataclass(frozen=True)
class ColumnOptions:
    """Which column of a table is what."""

    user_column: UserColumn = None
    item_column: ItemColumn = None
    rating_column: RatingColumn = None
    timestamp_column: TimestampColumn = None
    positive: Positive = None

    @property
    def names(self) -> ColumnNames:
        """What the columns are called."""
        from dpaa.data.log import ColumnNames

        return ColumnNames(self.user_column, self.item_column, self.rating_column, self.timestamp_column)


@dataclass(frozen=True)
class LogOptions(ColumnOptions):
    """How the files of a log are read, and what becomes of their rows."""

    keep_duplicates: KeepDuplicates = False
    drop_invalid: DropInvalid = False
    invalid_out: InvalidOut = None
    items: Items = None
    file_format: FileFormat = None
    separator: Separator = None
    columns: Columns = None
    encoding: Encoding = "utf-8"

    @property
    def form(self) -> TextForm:
        """How text files are read."""
        from dpaa.data.inputs import TextForm

        names = None if self.columns is None else tuple(name.strip() for name in self.columns.split(","))
        return TextForm(self.separator, names, self.encoding)

    def check(self, overwrite: bool) -> None:
        """Refuse, before any work, a file of invalid rows that could not be written."""
        if self.invalid_out is None:
            return
        if not self.drop_invalid:
            raise InputError("--invalid-out takes the rows that --drop-invalid leaves out; add it")
        check_file_target(self.invalid_out, (".csv", ".jsonl", ".parquet"), "a table", overwrite=overwrite)

    def write_invalid(self, found: pl.DataFrame | None, tell: Callable[[str], object]) -> None:
        """Write the rows that were left out to `--invalid-out`."""
        if self.invalid_out is None:
            return
        if found is None:
            tell(f"no row is invalid; {self.invalid_out} was not written")
            return
        writers = {".csv": found.write_csv, ".jsonl": found.write_ndjson, ".parquet": found.write_parquet}
        write: Any = writers[self.invalid_out.suffix.lower()]
        write_file(self.invalid_out, write, "choose another file with --invalid-out")
        tell(f"{counted(found.height, 'invalid row', 'invalid rows')} written to {self.invalid_out}")


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
        hints = get_type_hints(command, include_extras=True)
        parameters: list[inspect.Parameter] = []
        for one in inspect.signature(command).parameters.values():
            if one.name not in groups:
                parameters.append(one.replace(annotation=hints[one.name]))
                continue
            types = get_type_hints(groups[one.name], include_extras=True)
            parameters += [
                inspect.Parameter(each.name, one.KEYWORD_ONLY, default=each.default, annotation=types[each.name])
                for each in fields(groups[one.name])
            ]

        def run(**given: Any) -> None:
            packed = {
                name: group(**{each.name: given.pop(each.name) for each in fields(group)})
                for name, group in groups.items()
            }
            command(**given, **packed)

        run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        ordered = sorted(parameters, key=lambda one: one.default is not one.empty)
        run.__signature__ = inspect.Signature([one.replace(kind=one.KEYWORD_ONLY) for one in ordered])  # type: ignore[attr-defined]
        return run

    return decorate
