"""`dpaa data`: a source becomes a prepared dataset, a folder that every other command reads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from dpaa._io import settled
from dpaa.cli import options
from dpaa.cli.console import out, print_json, print_notes, print_table
from dpaa.errors import InputError

if TYPE_CHECKING:
    from dpaa.data.dataset import Dataset
    from dpaa.data.large import LargeDataset
    from dpaa.data.log import ColumnNames
    from dpaa.data.splits import SplitRule
    from dpaa.data.tables import Table

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode="rich", context_settings={"help_option_names": ["-h", "--help"]}
)

Out = Annotated[Path, Option("--out", help="Folder of the dataset to write.")]
PUBLISHED = {
    "coat": "Coat Shopping: self-selected ratings (train.ascii), random exposure (test.ascii); positives: rating >= 3.",
    "yahoo-r3": "Yahoo! R3: self-selected ratings for training, random exposure for the test; positives: rating >= 4.",
    "kuairec": "KuaiRec: big_matrix.csv for training, small_matrix.csv (fully observed) for the rest; watch ratio > 2.",
}
"""Datasets that `dpaa.data.sources` has a module of the same name for."""


@app.command()
def log(
    ctx: typer.Context,
    files: Annotated[
        list[str],
        Argument(
            metavar="FILE|FOLDER|PATTERN|URL|-…",
            help="CSV and its kin, JSON lines, Parquet, RecBole .inter or list form; folders and patterns of them, "
            "URLs (s3://…), - for standard input.",
        ),
    ],
    out_folder: Annotated[
        Path | None, Option("--out", help="Folder of the dataset to write; with --append, that dataset without it.")
    ] = None,
    append: Annotated[
        Path | None,
        Option(
            metavar="DATASET",
            help="Append the log to a dataset made of one, by the rules that it was made with; it is replaced as a "
            "whole, or written to --out.",
        ),
    ] = None,
    file_format: options.FileFormat = None,
    separator: options.Separator = None,
    columns: options.Columns = None,
    encoding: options.Encoding = None,
    user_column: options.UserColumn = None,
    item_column: options.ItemColumn = None,
    rating_column: options.RatingColumn = None,
    timestamp_column: options.TimestampColumn = None,
    positive: options.Positive = None,
    split: Annotated[
        str,
        Option(
            metavar="random|random-global|temporal|leave-last|user-folds|cold-users|cold-items|time-windows",
            help="Random per user, random over all pairs, latest pairs of all, latest pairs of each user; folds of "
            "users, users or items with few training pairs, windows that slide over time.",
        ),
    ] = "random",
    valid: Annotated[float, Option(help="Share for validation.")] = 0.1,
    test: Annotated[float, Option(help="Share for the test.")] = 0.2,
    last_k: Annotated[int, Option(help="leave-last: pairs per user for the test, and for validation.")] = 1,
    parts: Annotated[int, Option(help="user-folds, time-windows: how many.")] = 5,
    part: Annotated[
        int | None, Option(help="user-folds, time-windows: only this one; without it, all are written to OUT/part-1 …")
    ] = None,
    support: Annotated[int, Option(help="cold-users, cold-items: pairs of each that stay in training.")] = 5,
    min_user_interactions: Annotated[int, Option("--min-user", min=1, help="Drop users with fewer pairs.")] = 1,
    min_item_interactions: Annotated[int, Option("--min-item", min=1, help="Drop items with fewer pairs.")] = 1,
    keep_duplicates: options.KeepDuplicates = False,
    drop_invalid: options.DropInvalid = False,
    invalid_out: options.InvalidOut = None,
    items: options.Items = None,
    memory: Annotated[
        float | None,
        Option(
            metavar="GB",
            help="Memory that may be taken; a log that would take more is prepared in pieces on disk, to the same "
            "dataset.  Default: what is at hand.",
        ),
    ] = None,
    seed: options.Seed = 0,
    overwrite: options.Overwrite = False,
) -> None:
    """A dataset from one log of clicks or ratings, which is split by a rule.

    \b
    Example:
      dpaa data log clicks.csv --positive "rating>=4" --out data/clicks
      dpaa data log clicks.csv --items products.csv --out data/clicks
      dpaa data log tuesday.csv --append data/clicks
      dpaa data log clicks.csv --split user-folds --parts 5 --out data/folds
      dpaa data log logs/2024-*.jsonl logs/old --drop-invalid --invalid-out invalid.csv --out data/clicks
      dpaa data log ratings.dat --columns user_id,item_id,rating,timestamp --out data/ml-1m
      dpaa data log clicks/ --memory 2 --out data/clicks
      zcat clicks.csv.gz | dpaa data log - --out data/clicks
    """
    from dpaa._machine import memory_at_hand
    from dpaa.data.dataset import check_target
    from dpaa.data.inputs import name_of, open_log
    from dpaa.data.large import write_log
    from dpaa.data.log import ColumnNames
    from dpaa.data.sources.files import from_file
    from dpaa.data.splits import IN_PARTS, SplitRule
    from dpaa.data.tables import open_table

    names = ColumnNames(user_column, item_column, rating_column, timestamp_column)
    form = options.text_form(separator, columns, encoding)
    options.check_invalid_out(invalid_out, drop_invalid, overwrite)
    if append is not None:
        _check_no_rules(ctx)
        found = _append(
            lambda: open_log(files, file_format, form), append, out_folder, overwrite, names, items, drop_invalid
        )
        if told := options.write_invalid(found.invalid, invalid_out):
            out.print(told)
        return
    if out_folder is None:
        raise InputError("there is no folder to write to; name one with --out, or a dataset with --append")

    how: dict[str, Any] = {
        "names": names,
        "positive": positive,
        "min_user_interactions": min_user_interactions,
        "min_item_interactions": min_item_interactions,
        "keep_duplicates": keep_duplicates,
        "drop_invalid": drop_invalid,
        "seed": seed,
    }

    def read(rule: SplitRule) -> Callable[[], Dataset]:
        return lambda: from_file(files, fmt=file_format, form=form, split=rule, **how)

    rule = SplitRule(split, valid, test, last_k, parts, part or 1, support)
    folders = _part_folders(out_folder, rule) if split in IN_PARTS and part is None else {out_folder: rule}
    if len(folders) == 1:
        check_target(out_folder, overwrite)
    limit = memory_at_hand() if memory is None else _bytes(memory)
    if (table := open_log(files, file_format, form)).memory_needed() > limit:
        how |= {"items": None if items is None else open_table(items), "item_column": item_column}
        how |= {"memory": limit if memory else limit // 2, "overwrite": overwrite}
        _write_large(
            {
                folder: partial(write_log, table, folder, name_of(files), split=one, **how)
                for folder, one in folders.items()
            },
            limit,
            invalid_out,
        )
    elif len(folders) > 1:
        _make_parts({folder: read(one) for folder, one in folders.items()}, overwrite, items, item_column, invalid_out)
    else:
        _make(read(rule), out_folder, overwrite, items, item_column, invalid_out)


def _bytes(gigabytes: float) -> int:
    if not gigabytes > 0:
        raise InputError(f"--memory must be more than 0 gigabytes, got {gigabytes:g}")
    return int(gigabytes * 1e9)


def _write_large(made: dict[Path, Callable[[], LargeDataset]], limit: int, invalid_out: Path | None) -> None:
    """Datasets of a log that memory does not hold, one after the other."""
    print_notes([f"the log would take more than {limit / 1e9:.2g} GB of memory; it is prepared in pieces on disk"])
    for folder, write in made.items():
        found = write()
        _show(found, folder)
    if told := options.write_invalid(found.invalid, invalid_out):
        out.print(told)


RULE_OPTIONS = {
    "positive": "--positive",
    "split": "--split",
    "valid": "--valid",
    "test": "--test",
    "last_k": "--last-k",
    "parts": "--parts",
    "part": "--part",
    "support": "--support",
    "min_user_interactions": "--min-user",
    "min_item_interactions": "--min-item",
    "keep_duplicates": "--keep-duplicates",
    "seed": "--seed",
}
"""Options of `data log` that a dataset remembers."""


def _check_no_rules(ctx: typer.Context) -> None:
    for name, option in RULE_OPTIONS.items():
        source = ctx.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise InputError(f"{option} is among the rules that the dataset was made with; leave it out with --append")


def _append(
    table: Callable[[], Table],
    dataset: Path,
    out_folder: Path | None,
    overwrite: bool,
    names: ColumnNames,
    items: Path | None,
    drop_invalid: bool,
) -> Dataset:
    """Append a table to a dataset, in its place or elsewhere; nobody else writes it meanwhile."""
    from dpaa._io import lock_of, locked
    from dpaa.data.dataset import ABOUT_FILE, check_target, read_dataset
    from dpaa.data.tables import open_table

    target = dataset if out_folder is None else out_folder
    if out_folder is not None:
        check_target(out_folder, overwrite)
    if not (dataset / ABOUT_FILE).is_file():
        read_dataset(dataset)  # says what is wrong with it
    with locked(lock_of(settled(dataset)), wait=True):
        known = None if items is None else open_table(items)
        found = read_dataset(dataset).append(table(), names=names, items=known, drop_invalid=drop_invalid)
        _write(found, target, overwrite or out_folder is None)
    return found


def _part_folders(out_folder: Path, rule: SplitRule) -> dict[Path, SplitRule]:
    """Where the dataset of each part goes."""
    if out_folder.exists() and (not out_folder.is_dir() or (out_folder / "dataset.json").exists()):
        what = "a dataset" if out_folder.is_dir() else "a file"
        raise InputError(f"{out_folder} is {what}, several parts need a folder for theirs; choose another --out")
    return {out_folder / f"part-{one.part}": one for one in rule.each()}


def _make_parts(
    made: dict[Path, Callable[[], Dataset]],
    overwrite: bool,
    items: Path | None,
    item_column: str | None,
    invalid_out: Path | None,
) -> None:
    """All are made before any is written."""
    from dpaa.data.tables import open_table

    table = None if items is None else open_table(items)
    found = {folder: read() for folder, read in made.items()}
    if table is not None:
        found = {folder: dataset.with_items(table, item_column) for folder, dataset in found.items()}
    _write_several(found, overwrite)
    if told := options.write_invalid(next(iter(found.values())).invalid, invalid_out):
        out.print(told)


@app.command()
def sql(
    url: Annotated[
        str,
        Argument(metavar="URL", help="postgresql://user@host/database, duckdb:///file.duckdb or sqlite:///file.db."),
    ],
    query: Annotated[
        str, Option(metavar="SELECT…", help="Gives a column of users, one of items, and what else is known.")
    ],
    out_folder: Out,
    user_column: options.UserColumn = None,
    item_column: options.ItemColumn = None,
    rating_column: options.RatingColumn = None,
    timestamp_column: options.TimestampColumn = None,
    positive: options.Positive = None,
    split: Annotated[
        str, Option(metavar="random|random-global|temporal|leave-last", help="As in `dpaa data log`.")
    ] = "random",
    valid: Annotated[float, Option(help="Share for validation.")] = 0.1,
    test: Annotated[float, Option(help="Share for the test.")] = 0.2,
    last_k: Annotated[int, Option(help="leave-last: pairs per user for the test, and for validation.")] = 1,
    min_user_interactions: Annotated[int, Option("--min-user", min=1, help="Drop users with fewer pairs.")] = 1,
    min_item_interactions: Annotated[int, Option("--min-item", min=1, help="Drop items with fewer pairs.")] = 1,
    keep_duplicates: options.KeepDuplicates = False,
    drop_invalid: options.DropInvalid = False,
    invalid_out: options.InvalidOut = None,
    items: options.Items = None,
    items_query: Annotated[
        str | None, Option(metavar="SELECT…", help="What is known of the items: item_id, title and any other columns.")
    ] = None,
    name: Annotated[str | None, Option(help="Name of the dataset; default: that of the folder.")] = None,
    seed: options.Seed = 0,
    overwrite: options.Overwrite = False,
) -> None:
    """A dataset from the rows of a database query, which are split by a rule.

    PostgreSQL and DuckDB need the extra `sql`.  The connection only reads.  A password in the URL is neither shown nor
    kept; better is what PostgreSQL's own tools use, PGPASSWORD or ~/.pgpass.

    \b
    Example:
      dpaa data sql postgresql://me@db/shop --query "SELECT user_id, item_id, stars FROM ratings" --out data/shop
    """
    from dpaa.data.database import query_table
    from dpaa.data.dataset import Dataset, check_target
    from dpaa.data.log import ColumnNames
    from dpaa.data.prepare import one_table
    from dpaa.data.splits import SplitRule

    if items is not None and items_query is not None:
        raise InputError("--items and --items-query both say what is known of the items; give one of them")
    rule = SplitRule(split, valid, test, last_k)
    options.check_invalid_out(invalid_out, drop_invalid, overwrite)
    check_target(out_folder, overwrite)

    def read() -> Dataset:
        found = one_table(
            query_table(url, query),
            ColumnNames(user_column, item_column, rating_column, timestamp_column),
            positive,
            rule,
            min_user_interactions,
            min_item_interactions,
            keep_duplicates,
            seed,
            drop_invalid,
        )
        made = Dataset.of_prepared(found, name or settled(out_folder).name)
        return made if items_query is None else made.with_items(query_table(url, items_query), item_column)

    _make(read, out_folder, overwrite, items, item_column, invalid_out)


@app.command()
def splits(
    train: Annotated[str, Option(help="Training pairs: a file, folder, pattern or URL, as in `dpaa data log`.")],
    out_folder: Out,
    valid: Annotated[str | None, Option(help="Validation pairs.")] = None,
    test: Annotated[str | None, Option(help="Test pairs.")] = None,
    candidates: Annotated[Path | None, Option(help="Items that may be recommended: item_id, or .txt of ids.")] = None,
    name: Annotated[str | None, Option(help="Name of the dataset; default: that of the folder.")] = None,
    file_format: options.FileFormat = None,
    separator: options.Separator = None,
    columns: options.Columns = None,
    encoding: options.Encoding = None,
    user_column: options.UserColumn = None,
    item_column: options.ItemColumn = None,
    rating_column: options.RatingColumn = None,
    timestamp_column: options.TimestampColumn = None,
    positive: options.Positive = None,
    keep_duplicates: options.KeepDuplicates = False,
    drop_invalid: options.DropInvalid = False,
    invalid_out: options.InvalidOut = None,
    items: options.Items = None,
    overwrite: options.Overwrite = False,
) -> None:
    """A dataset from ready-made train, validation and test files.

    \b
    Example:
      dpaa data splits --train a.csv --valid b.csv --test c.csv --out data/mine
    """
    from dpaa.data.log import ColumnNames
    from dpaa.data.sources.files import from_files

    names = ColumnNames(user_column, item_column, rating_column, timestamp_column)
    how: dict[str, Any] = {"fmt": file_format, "names": names, "positive": positive, "keep_duplicates": keep_duplicates}
    how |= {"form": options.text_form(separator, columns, encoding), "drop_invalid": drop_invalid}
    options.check_invalid_out(invalid_out, drop_invalid, overwrite)
    called = name or settled(out_folder).name

    def read() -> Dataset:
        return from_files(train, valid, test, candidates, name=called, **how)

    _make(read, out_folder, overwrite, items, item_column, invalid_out)


def _published(name: str) -> Callable[..., None]:
    """The command of a published dataset."""

    def command(
        folder: Annotated[Path, Argument(help="Folder of the official files.")],
        out_folder: Out,
        items: options.Items = None,
        seed: options.Seed = 0,
        check: Annotated[
            bool, Option("--check/--no-check", help="Whether the counts must be the published ones.")
        ] = True,
        overwrite: options.Overwrite = False,
    ) -> None:
        source = name.replace("-", "_")
        read = getattr(import_module(f"dpaa.data.sources.{source}"), source)
        _make(lambda: read(folder, seed=seed, check=check), out_folder, overwrite, items)

    return command


for _name, _about in PUBLISHED.items():
    _example = f"dpaa data {_name} downloads/{_name} --out data/{_name}"
    app.command(_name, help=f"{_about}\n\n\b\nExample:\n  {_example}")(_published(_name))


@app.command()
def demo(
    out_folder: Out,
    users: Annotated[int, Option(help="Number of users.")] = 2000,
    items: Annotated[int, Option(help="Number of items.")] = 1500,
    severity: Annotated[float, Option(help="How much the log favours promoted items; 0 = all alike.")] = 1.0,
    seed: options.Seed = 0,
    overwrite: options.Overwrite = False,
) -> None:
    """A simulated world: a biased log for training, random exposure for validation and test.

    \b
    Example:
      dpaa data demo --severity 2 --out data/demo
    """
    from dpaa.data.sources.world import simulate

    _make(lambda: simulate(users, items, severity, seed), out_folder, overwrite)


@app.command()
def example(
    out_folder: Annotated[Path, Option("--out", help="Folder for the two files.")],
    overwrite: options.Overwrite = False,
) -> None:
    """A small log to try things with, as files: 11,000 clicks of a simulated bookshop, and the titles of its books.

    \b
    Example:
      dpaa data example --out shop
    """
    from dpaa.data.sources.example import write_example

    clicks, titles = write_example(out_folder, overwrite)
    out.print(f"{clicks} and {titles} written; next: dpaa audit {clicks}")


@app.command()
def severity(
    sources: Annotated[list[Path], Argument(metavar="FILE…|DATASET", help="Files, or one prepared dataset.")],
    out_folder: Out,
    severities: Annotated[
        list[float],
        Option(
            "--severity", metavar="S", help="From 0 (no bias) up; repeatable: several are written to OUT/s0, OUT/s3 …"
        ),
    ],
    splits: Annotated[
        str | None,
        Option("--from", metavar="train,valid,test", help="Which splits of a prepared dataset; default: all."),
    ] = None,
    file_format: options.FileFormat = None,
    user_column: options.UserColumn = None,
    item_column: options.ItemColumn = None,
    rating_column: options.RatingColumn = None,
    timestamp_column: options.TimestampColumn = None,
    positive: options.Positive = None,
    figure: Annotated[
        Path | None, Option(metavar="FILE", help="Draw the popularity curves: .png, .svg, .pdf …")
    ] = None,
    seed: options.Seed = 0,
    overwrite: options.Overwrite = False,
) -> None:
    """Datasets of known bias from a log in which exposure was (nearly) complete.

    Validation and test stay unbiased and are the same for every severity; training pairs are
    sampled from each user's pairs: the higher the severity, the more of them are of popular items.

    \b
    Example:
      dpaa data severity valid.txt test.txt --severity 0 --severity 3 --out data/severity
    """
    from dpaa.data.dataset import check_target
    from dpaa.data.log import ColumnNames
    from dpaa.data.sources.severity import read_pairs, with_severity

    if figure is not None:
        from dpaa.report import check_figure

        check_figure(figure)
    folders = _severity_folders(out_folder, severities)
    if len(folders) == 1:
        check_target(out_folder, overwrite)
    pairs, notes = read_pairs(
        sources,
        None if splits is None else [part.strip() for part in splits.split(",")],
        names=ColumnNames(user_column, item_column, rating_column, timestamp_column),
        positive=positive,
        file_format=file_format,
    )
    stem = settled(out_folder).name
    # All are made before any is written: a wrong severity leaves nothing behind.
    made = {
        value: with_severity(pairs, value, seed, stem if len(folders) == 1 else f"{stem}-s{value:g}", notes)
        for value in severities
    }
    several = {folder: made[value] for value, folder in folders.items()}
    _write_several(several, overwrite, drawn=None if figure is None else lambda: _draw_popularity(made, figure))


def _severity_folders(out_folder: Path, severities: list[float]) -> dict[float, Path]:
    """Where each severity goes: one to the folder itself, several to folders in it."""
    if len(severities) == 1:
        return {severities[0]: out_folder}
    names = [f"s{value:g}" for value in severities]
    twice = [name[1:] for name in names if names.count(name) > 1]
    if twice:
        raise InputError(f"--severity {twice[0]} is given twice; give each once")
    if out_folder.exists() and (not out_folder.is_dir() or (out_folder / "dataset.json").exists()):
        what = "a dataset" if out_folder.is_dir() else "a file"
        raise InputError(f"{out_folder} is {what}, several severities need a folder for theirs; choose another --out")
    return {value: out_folder / name for value, name in zip(severities, names, strict=True)}


def _draw_popularity(made: dict[float, Dataset], figure: Path) -> None:
    import numpy as np

    from dpaa.report import popularity_curves, save

    curves = {f"{value:g}": np.bincount(data.train.item, minlength=data.n_items) for value, data in made.items()}
    title = "Training popularity" if len(curves) > 1 else f"Training popularity, severity {next(iter(curves))}"
    out.print(f"figure written to {save(popularity_curves(curves, title, by='severity'), figure)}")


@app.command()
def randomised(
    dataset: options.DatasetArgument,
    out_folder: Out,
    share: Annotated[float, Option(help="Share of the validation pairs that becomes the sample.")] = 0.5,
    seed: options.Seed = 0,
    overwrite: options.Overwrite = False,
) -> None:
    """A dataset that carries a sample of randomised exposure for training, taken from its unbiased validation.

    Methods that ask for such a sample (`cause`) learn from it; what is left is validation as before.

    \b
    Example:
      dpaa data randomised data/coat --share 0.5 --out data/coat-randomised
    """
    from dpaa.data.dataset import read_dataset
    from dpaa.data.randomised import with_randomised

    _make(lambda: with_randomised(read_dataset(dataset), share, seed), out_folder, overwrite)


@app.command()
def describe(dataset: options.DatasetArgument, as_json: options.AsJson = False) -> None:
    """Counts, density, splits, their overlap, and the share of popular items.

    \b
    Example:
      dpaa data describe data/coat
    """
    from dpaa.data.dataset import read_dataset

    data = read_dataset(dataset)
    found = data.describe()
    if as_json:
        print_json(found)
        return
    _show_counts(data)
    popular: Any = found["popular"]
    overlap: Any = found["overlap"]
    out.print(f"density: {found['density']:.4%} of users × items")
    out.print(f"candidates: {found['candidates']:,} items may be recommended")
    shares = ", ".join(f"{name} {share:.1%}" for name, share in popular["share_of_pairs"].items() if share is not None)
    out.print(f"popular: {popular['items']:,} items cover 80 % of the training pairs; share of pairs: {shares}")
    out.print("overlap: " + ", ".join(f"{splits} {pairs:,}" for splits, pairs in overlap.items()))
    if data.attributes is not None:
        out.print(f"known of the items: {', '.join(data.attributes.columns)}")
    for key in ("source", "severity", "positive", "split", "seed", "randomised", "fingerprint"):
        if key in found:
            out.print(f"{key}: {found[key]}")
    print_notes(data.notes)


def _make(
    read: Callable[[], Dataset],
    folder: Path,
    overwrite: bool,
    items: Path | None = None,
    item_column: str | None = None,
    invalid_out: Path | None = None,
) -> None:
    """Read a source, and what is known of its items, and write its dataset, where it may be written."""
    from dpaa.data.dataset import check_target
    from dpaa.data.tables import open_table

    check_target(folder, overwrite)
    table = None if items is None else open_table(items)  # a file that is not there need not wait for the log
    dataset = read()
    _write(dataset if table is None else dataset.with_items(table, item_column), folder, overwrite)
    if told := options.write_invalid(dataset.invalid, invalid_out):
        out.print(told)


def _write_several(made: dict[Path, Dataset], overwrite: bool, drawn: Callable[[], None] | None = None) -> None:
    """Each to its folder; those that a call which was cut short has written stay."""
    from dpaa.data.dataset import check_target, holds

    there = [] if overwrite else [folder for folder, dataset in made.items() if holds(folder, dataset)]
    missing = {folder: dataset for folder, dataset in made.items() if folder not in there}
    for folder in missing:
        check_target(folder, overwrite)
    if drawn is not None:
        drawn()
    if there:
        print_notes([f"already there: {', '.join(map(str, there))}"])
    for folder, dataset in missing.items():
        _write(dataset, folder, overwrite)


def _write(dataset: Dataset, folder: Path, overwrite: bool) -> None:
    dataset.write(folder, overwrite)
    _show(dataset, folder)


def _show(dataset: Dataset | LargeDataset, folder: Path) -> None:
    _show_counts(dataset)
    print_notes([*dataset.notes, *_ratings_note(folder)])
    out.print(f"dataset written to {folder}; next: dpaa train {folder} --out RUN")


def _ratings_note(folder: Path) -> list[str]:
    """Where low ratings count as liked, since nobody said otherwise."""
    import polars as pl

    from dpaa._io import LARGE_JSON, read_json
    from dpaa.data.columns import Column
    from dpaa.data.dataset import ABOUT_FILE

    about = read_json(folder / ABOUT_FILE, LARGE_JSON, "make it again")
    table = pl.scan_parquet(folder / "train.parquet", glob=False)
    kind = table.collect_schema().get(Column.RATING)
    if about.get("positive") != "every row" or kind is None or not kind.is_numeric():
        return []
    rating = pl.col(Column.RATING)
    low, high = table.select(rating.min().alias("low"), rating.max().alias("high")).collect().row(0)
    if low is None or not low < high:
        return []
    told = f"ratings go from {low:g} to {high:g} and every row counts as liked"
    return [f"{told}; --positive 'rating>={low + 0.75 * (high - low):.3g}' keeps the high ones"]


def _show_counts(dataset: Dataset | LargeDataset) -> None:
    out.print(str(dataset))
    parts: Any = dataset.counts["splits"]
    rows = [[name, *(f"{part[what]:,}" for what in ("pairs", "users", "items"))] for name, part in parts.items()]
    print_table("", ["split", "pairs", "users", "items"], rows)
