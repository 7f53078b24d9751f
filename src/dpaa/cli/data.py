"""`dpaa data`: a source becomes a prepared dataset, a folder that every other command reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

import dpaa
from dpaa._io import resolve_path
from dpaa.cli import options
from dpaa.cli.console import out, print_json, print_notes, print_table
from dpaa.errors import InputError

if TYPE_CHECKING:
    from dpaa.data.dataset import Written
    from dpaa.data.splits import SplitRule

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode="rich", context_settings={"help_option_names": ["-h", "--help"]}
)

SPLIT = "Split"
"""A panel of the help."""
Seed = Annotated[int, Option(min=0, help="Random seed.", rich_help_panel=SPLIT)]
Out = Annotated[Path, Option("--out", help="Folder of the dataset to write.")]
PUBLISHED = {
    "coat": "Coat Shopping: self-selected ratings (train.ascii), random exposure (test.ascii); positives: rating >= 3.",
    "yahoo-r3": "Yahoo! R3: self-selected ratings for training, random exposure for the test; positives: rating >= 4.",
    "kuairec": "KuaiRec: big_matrix.csv for training, small_matrix.csv (fully observed) for the rest; watch ratio > 2.",
}
"""As in `dpaa.data.sources.published`."""
SPLITS = "random, random-global, temporal, leave-last, user-folds, cold-users, cold-items or time-windows"
PARAMETERS = {"last_k": int, "parts": int, "support": int}
"""Of a rule."""


@dataclass(frozen=True)
class _SplitOptions:
    """How a log is split."""

    split: Annotated[str, Option(metavar="RULE[,NAME=X…]", help=f"{SPLITS}.", rich_help_panel=SPLIT)] = "random"
    valid: Annotated[float, Option(help="Share for validation.", rich_help_panel=SPLIT)] = 0.1
    test: Annotated[float, Option(help="Share for the test.", rich_help_panel=SPLIT)] = 0.2
    min_pairs: options.MinPairs = "1"
    seed: Seed = 0

    @property
    def rule(self) -> SplitRule:
        """The rule with its parameters."""
        from dpaa.data.splits import SplitRule

        given = options.parse_values(self.split, "split", value=str, **PARAMETERS)
        return SplitRule(given.pop("value", "random"), self.valid, self.test, **given)


@app.command()
@options.grouped(how=_SplitOptions, source=options.LogOptions)
def log(
    files: Annotated[list[str], Argument(metavar="FILE|FOLDER|PATTERN|-…", help="The log; - for standard input.")],
    how: _SplitOptions,
    source: options.LogOptions,
    out_folder: Annotated[Path | None, Option("--out", help="Folder of the dataset to write.")] = None,
    append: Annotated[Path | None, Option(metavar="DATASET", help="Append the log to this dataset.")] = None,
    engine: Annotated[str, Option(metavar="duckdb|spark", help="Engine that prepares the log.")] = "duckdb",
    memory: Annotated[float | None, Option(metavar="GB", help="Memory for DuckDB; default: half of the free.")] = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Prepare a dataset from a log of clicks or ratings, and split it.

    A log is CSV or other delimited text, JSON lines, Parquet, RecBole .inter or list form.  Rows are invalid if a
    required id, number or time is missing, or the line is malformed.  --positive takes one condition on a numeric
    column.  --append applies the options that the dataset was created with, and writes to --out if given.

    Pairs are split at random for each user (random) or over all (random-global), by time over all (temporal) or for
    each user (leave-last, last_k=1 each), into folds of users (user-folds, parts=5), users or items with few training
    pairs (cold-users, cold-items, support=5), or windows of time (time-windows, parts=5); several parts are written to
    OUT/part-1 …

    \b
    Example:
      dpaa data log clicks.csv --positive "rating>=4" --out data/clicks
      dpaa data log clicks.csv --items products.csv --out data/clicks
      dpaa data log tuesday.csv --append data/clicks
      dpaa data log clicks.csv --split temporal --valid 0.1 --test 0.1 --out \\
          data/clicks
      dpaa data log clicks.csv --split user-folds,parts=5 --out data/folds
      dpaa data log logs/2024-*.jsonl --invalid invalid.csv --out data/clicks
      dpaa data log ratings.dat --columns user_id,item_id,rating,timestamp \\
          --out data/ml-1m
      dpaa data log clicks/ --memory 2 --out data/clicks
      psql shop -c "COPY (SELECT …) TO STDOUT CSV HEADER" | dpaa data log - \\
          --format csv --out data/shop
    """
    from dpaa.data.dataset import write_log
    from dpaa.data.inputs import name_of, open_log

    source.check(overwrite)
    if append is not None:
        if how != _SplitOptions() or source.positive:
            kept = "--append keeps the options that the dataset was created with"
            raise InputError(f"{kept}; omit --split, --positive and similar options")
        _append(files, append, out_folder, overwrite, source)
        return
    if out_folder is None:
        raise InputError("there is no folder to write to; name one with --out, or a dataset with --append")
    recipe: dict[str, Any] = {"columns": source.names, "seed": how.seed, "items": source.attributes}
    recipe |= source.rows | _engine(engine, memory) | options.parse_min_pairs(how.min_pairs)
    written = write_log(
        open_log(files, **source.reading),
        _folders(out_folder, {f"part-{rule.part}": rule for rule in how.rule.each()}, overwrite),
        name_of(files),
        **recipe,
    )
    for folder, dataset in written.items():
        _show(dataset, folder)
    source.write_invalid(next(iter(written.values())).invalid)


def _engine(engine: str, memory: float | None) -> dict[str, Any]:
    """Check `--engine` and `--memory`."""
    if engine not in ("duckdb", "spark"):
        raise InputError(f"--engine is duckdb or spark, got {engine!r}")
    if memory is not None and (engine == "spark" or not memory >= 0.1):
        raise InputError(f"--memory is that of DuckDB, 0.1 GB or more, got {memory:g} with --engine {engine}")
    return {"engine": engine, "memory": None if memory is None else int(memory * 1e9)}


def _append(files: list[str], dataset: Path, out_folder: Path | None, overwrite: bool, how: options.LogOptions) -> None:
    """Append files to a dataset, in place or to another folder, while holding its lock."""
    from dpaa._io import lock_of, locked
    from dpaa.data.dataset import ABOUT_FILE, check_target
    from dpaa.data.inputs import open_log

    if out_folder is not None:
        check_target(out_folder, overwrite)
    if not (dataset / ABOUT_FILE).is_file():
        dpaa.read_dataset(dataset)  # says what is wrong with it
    with locked(lock_of(resolve_path(dataset)), wait=True):
        items, drop = how.attributes, how.invalid is not None
        table = open_log(files, **how.reading)
        data = dpaa.read_dataset(dataset).append(table, names=how.names, items=items, drop_invalid=drop)
        _write(data, out_folder or dataset, overwrite or out_folder is None)
    how.write_invalid(data.invalid)


def _folders(out_folder: Path, parts: dict[str, Any], overwrite: bool) -> dict[Path, Any]:
    """Where several datasets go: one to the folder itself, several to folders in it; none may be in the way."""
    from dpaa.data.dataset import check_target

    several = len(parts) > 1
    if several and (out_folder.is_file() or (out_folder / "dataset.json").exists()):
        raise InputError(f"{out_folder} is a file or a dataset, several parts need a folder; choose another --out")
    folders = {out_folder / name if several else out_folder: part for name, part in parts.items()}
    for folder in folders:
        check_target(folder, overwrite)
    return folders


@app.command()
@options.grouped(how=options.LogOptions)
def splits(
    train: Annotated[str, Option(help="Training pairs: file, folder or pattern, as in `dpaa data log`.")],
    out_folder: Out,
    how: options.LogOptions,
    valid: Annotated[str | None, Option(help="Validation pairs.")] = None,
    test: Annotated[str | None, Option(help="Test pairs.")] = None,
    candidates: Annotated[Path | None, Option(help="Items that may be recommended: item_id, or .txt of ids.")] = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Prepare a dataset from existing train, validation and test files.

    \b
    Example:
      dpaa data splits --train a.csv --valid b.csv --test c.csv --out data/mine
    """
    from dpaa.data.dataset import check_target, from_files

    how.check(overwrite)
    check_target(out_folder, overwrite)
    items, recipe = how.attributes, {"columns": how.names, **how.reading, **how.rows}
    data = from_files(train, valid, test, candidates, name=resolve_path(out_folder).name, **recipe)
    _write(data if items is None else data.with_items(items, how.names.item), out_folder, overwrite)
    how.write_invalid(data.invalid)


def _published(name: str) -> Callable[..., None]:
    """The command of a published dataset."""

    def command(
        folder: Annotated[Path, Argument(help="Folder of the official files.")],
        out_folder: Out,
        overwrite: options.Overwrite = False,
    ) -> None:
        from dpaa.data.sources.published import published

        _make(lambda: published(name, folder), out_folder, overwrite)

    return command


for _name, _about in PUBLISHED.items():
    _example = f"dpaa data {_name} downloads/{_name} --out data/{_name}"
    app.command(_name, help=f"{_about}\n\n\b\nExample:\n  {_example}")(_published(_name))


@app.command()
def demo(
    out_folder: Out,
    size: Annotated[str, Option(metavar="USERSxITEMS", help="Number of users and of items.")] = "2000x1500",
    severity: options.Severity = 1.0,
    seed: Seed = 0,
    overwrite: options.Overwrite = False,
) -> None:
    """Simulate a world: a biased log for training, random exposure for validation and test.

    \b
    Example:
      dpaa data demo --severity 2 --out data/demo
    """
    from dpaa.data.sources.world import simulate

    users, times, items = size.partition("x")
    if not times or not users.isdecimal() or not items.isdecimal():
        raise InputError(f"--size is USERSxITEMS, such as 400x250, got {size!r}")
    _make(lambda: simulate(int(users), int(items), severity, seed), out_folder, overwrite)


@app.command()
def example(
    out_folder: Annotated[Path, Option("--out", help="Folder for the two files.")],
    overwrite: options.Overwrite = False,
) -> None:
    """Write a small example log: 11,000 clicks of a simulated bookshop, and the titles of its books.

    \b
    Example:
      dpaa data example --out shop
    """
    from dpaa.data.sources.world import write_example

    clicks, titles = write_example(out_folder, overwrite)
    out.print(f"{clicks} and {titles} written; next: dpaa audit {clicks}")


@app.command()
@options.grouped(how=options.ColumnOptions)
def severity(
    sources: Annotated[list[Path], Argument(metavar="FILE…|DATASET", help="Files, or one prepared dataset.")],
    out_folder: Out,
    severities: Annotated[list[float], Option("--severity", min=0, help="Bias of the log, 0 for none; repeatable.")],
    how: options.ColumnOptions,
    seed: Seed = 0,
    overwrite: options.Overwrite = False,
) -> None:
    """Derive datasets with a known bias from a log with (nearly) complete exposure.

    Validation and test stay unbiased and are the same for every severity.  Training pairs are
    sampled from each user's pairs: the higher the severity, the more popular their items.
    Several severities are written to OUT/s0, OUT/s3 …

    \b
    Example:
      dpaa data severity valid.txt test.txt --severity 0 --severity 3 --out \\
          data/severity
    """
    from dpaa.data.sources.severity import read_pairs, with_severity

    folders = _folders(out_folder, {f"s{value:g}": value for value in severities}, overwrite)
    pairs, notes = read_pairs(sources, columns=how.names, positive=how.positive)
    stem = resolve_path(out_folder).name
    names = {folder: f"{stem}-{folder.name}" if len(folders) > 1 else stem for folder in folders}
    # All are made before any is written: a wrong severity leaves nothing behind.
    datasets = {folder: with_severity(pairs, value, seed, names[folder], notes) for folder, value in folders.items()}
    for folder, dataset in datasets.items():
        _write(dataset, folder, overwrite)


@app.command()
def randomised(
    dataset: options.DatasetArgument,
    out_folder: Out,
    share: Annotated[float, Option(help="Share of the validation pairs that becomes the sample.")] = 0.5,
    seed: Seed = 0,
    overwrite: options.Overwrite = False,
) -> None:
    """Move a part of a dataset's unbiased validation pairs to training, as a sample of randomised exposure.

    Methods that need such a sample (`cause`) learn from it; the remaining pairs are still used for validation.

    \b
    Example:
      dpaa data randomised data/coat --share 0.5 --out data/coat-randomised
    """
    from dpaa.data.sources.severity import with_randomised

    _make(lambda: with_randomised(dpaa.read_dataset(dataset), share, seed), out_folder, overwrite)


@app.command()
def describe(dataset: options.DatasetArgument, as_json: options.AsJson = False) -> None:
    """Show counts, density, splits, their overlap, and the share of popular items.

    \b
    Example:
      dpaa data describe data/coat
    """
    data = dpaa.read_dataset(dataset)
    about = data.describe()
    if as_json:
        print_json(about)
        return
    _show_counts(data)
    popular = about["popular"]
    shares = ", ".join(f"{name} {share:.1%}" for name, share in popular["share_of_pairs"].items() if share is not None)
    about["density"] = f"{about['density']:.4%} of users × items"
    about["popular"] = f"{popular['items']:,} items cover 80% of the training pairs; share of pairs: {shares}"
    about["overlap"] = ", ".join(f"{splits} {pairs:,}" for splits, pairs in about["overlap"].items())
    shown = ("density", "candidates", "popular", "overlap", "attributes", "source", "severity", "positive", "split")
    for key in (*shown, "seed", "randomised", "fingerprint"):
        if key in about:
            out.print(f"{key}: {', '.join(about[key]) if isinstance(about[key], list) else about[key]}")
    print_notes(data.notes)


def _make(read: Callable[[], dpaa.Dataset], folder: Path, overwrite: bool) -> None:
    """Read a source and write its dataset, where it may be written."""
    from dpaa.data.dataset import check_target

    check_target(folder, overwrite)
    _write(read(), folder, overwrite)


def _write(dataset: dpaa.Dataset, folder: Path, overwrite: bool) -> None:
    dataset.write(folder, overwrite)
    _show(dataset, folder)


def _show(dataset: dpaa.Dataset | Written, folder: Path) -> None:
    _show_counts(dataset)
    print_notes(dataset.notes)
    out.print(f"dataset written to {folder}; next: dpaa train {folder} --out RUN")


def _show_counts(dataset: dpaa.Dataset | Written) -> None:
    from dpaa.data.dataset import size_in_words

    out.print(f"Dataset({dataset.name}: {size_in_words(dataset.counts)})")
    parts = dataset.counts["splits"]
    rows = [[name, *(f"{part[what]:,}" for what in ("pairs", "users", "items"))] for name, part in parts.items()]
    print_table("", ["split", "pairs", "users", "items"], rows)
