"""Options that several commands share, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpaa._io import check_file_target, write_file
from dpaa._text import counted
from dpaa.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from dpaa.data.tables import TextForm

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
    typer.Option(metavar="CHAR", help="Between fields: one character, `tab` or `::`; default: auto-detected."),
]
Columns = Annotated[
    str | None,
    typer.Option(metavar="NAME,NAME…", help="Names of the columns, of a text file without a header line."),
]
Encoding = Annotated[str | None, typer.Option(metavar="NAME", help="Of text files, such as latin-1; default: UTF-8.")]
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


def text_form(separator: str | None, columns: str | None, encoding: str | None) -> TextForm:
    """How text files are read, as far as somebody said."""
    from dpaa.data.separators import given_separator
    from dpaa.data.tables import TextForm

    names = None if columns is None else tuple(name.strip() for name in columns.split(","))
    return TextForm(None if separator is None else given_separator(separator), names, encoding)


def check_invalid_out(file: Path | None, drop_invalid: bool, overwrite: bool) -> None:
    """Refuse, before any work, a file of invalid rows that could not be written."""
    if file is None:
        return
    if not drop_invalid:
        raise InputError("--invalid-out takes the rows that --drop-invalid leaves out; add it")
    check_file_target(file, (".csv", ".jsonl", ".parquet"), "a table", overwrite=overwrite)


def write_invalid(found: pl.DataFrame | None, file: Path | None) -> str | None:
    """Write the rows that were left out; nothing where there are none.  Returns what is to be said."""
    if file is None:
        return None
    if found is None:
        return f"no row is invalid; {file} was not written"
    writers: dict[str, Any] = {".csv": found.write_csv, ".jsonl": found.write_ndjson, ".parquet": found.write_parquet}
    write_file(file, writers[file.suffix.lower()], "make room or choose another file with --invalid-out")
    return f"{counted(found.height, 'invalid row', 'invalid rows')} written to {file}"
