"""Options that several commands share, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
    typer.Option("--format", metavar="csv|tsv|inter|parquet|list", help="File format; default: auto-detected."),
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
