"""`dpaa demo`: the whole walk on a simulated world whose truth is known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from dpaa.cli import options
from dpaa.cli.console import err, out, print_notes, print_table
from dpaa.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from dpaa.data.dataset import Dataset

METHODS: dict[str, dict[str, object]] = {"most-popular": {}, "lightgcn": {}, "dpaa": {}}
"""What the demo compares, the baseline first; DPAA takes the LightGCN before it as its pre-trained model."""
SHOWN = {
    "recall": "recall@20",
    "ndcg": "ndcg@20",
    "hit": "hit@20",
    "popular": "recall@20/popular",
    "niche": "recall@20/niche",
    "coverage": "coverage@20",
}

PAGE, COMPARISON, TRADE = "report.html", "comparison.json", "trade"
KEEP = 0.95
"""Share of the best accuracy that `--full` promises to keep."""


def demo(
    out_folder: Annotated[Path, Option("--out", help="Folder for the dataset and the runs.")] = Path("dpaa-demo"),
    seed: options.Seed = 0,
    severity: Annotated[float, Option(min=0, help="How strongly the logging policy favours popular items.")] = 1.0,
    full: Annotated[bool, Option("--full", help="Add `dpaa debias`: the best trade of several models.")] = False,
    overwrite: options.Overwrite = False,
) -> None:
    """Simulate a small world, train on its biased log, test on random exposure, write an HTML report.

    The world's log shows popular items more; validation and test come from uniformly random exposure, so the
    numbers say what people like rather than what they were shown.

    \b
    Example:
      dpaa demo --out dpaa-demo
      dpaa demo --full --out dpaa-demo
    """
    from dpaa.auditing.audit import audit
    from dpaa.cli.progress import EpochDisplay
    from dpaa.data.dataset import read_dataset
    from dpaa.data.sources.world import simulate
    from dpaa.runs.fit import Callbacks, evaluate, fit_into, make_method
    from dpaa.runs.folder import RunFolder

    if out_folder.exists() and not overwrite:
        raise InputError(f"{out_folder} already exists; pass --overwrite or choose another folder with --out")
    err.print("simulating a world: people with tastes, items with appeal, a log that shows popular items more")
    dataset_folder, runs = out_folder / "data", out_folder / "runs"
    simulate(severity=severity, seed=seed).write(dataset_folder, overwrite=overwrite)
    data = read_dataset(dataset_folder)
    out.print(f"{data}: train {len(data.train):,}, valid {len(data.valid):,}, test {len(data.test):,}")
    print_notes(data.notes)
    for sentence in audit(data).in_words()[1:4]:  # the first counts what was printed above
        out.print(f"- {sentence}")
    rows = []
    for name, settings in METHODS.items():
        method = make_method(data, name, settings | {"seed": seed})
        display = EpochDisplay(method)
        folder = runs / name
        callbacks = Callbacks(
            on_start=display.start,
            on_part=display.part,
            on_preview=display.preview,
            on_epoch=display.epoch,
            say=err.print,
        )
        pretrained = runs / "lightgcn" if name == "dpaa" else None
        with display:
            model = fit_into(folder, data, method, overwrite=overwrite, callbacks=callbacks, pretrained=pretrained)
        found = evaluate(model, data)
        RunFolder(folder).write_evaluation(found)
        values = [f"{found.metrics[metric]:.4f}" for metric in SHOWN.values()]
        rows.append([name, *values, f"{found.metrics['arp@20']:.0f}"])
    print_table("Lists of 20, tested on random exposure", ["method", *SHOWN, "arp"], rows)
    out.print(
        "popular, niche: recall of popular items (80 % of the log) and of the rest; "
        "arp: mean training count of recommended items"
    )
    out.print(found.protocol.in_words())
    user = data.user_ids[0]
    out.print(f"\n{name} recommends to {user}: {', '.join(map(str, model.recommend([user], k=5)['item_id']))}")
    _compare(runs / "lightgcn", folder, out_folder / COMPARISON)
    out.print(
        f"\nWritten to {out_folder}.  Look further:\n"
        f"  dpaa data describe {dataset_folder}\n"
        f"  dpaa evaluate {folder} --k 5 --k 20\n"
        f"  dpaa compare {runs / 'lightgcn'} {folder}\n"
        f"  dpaa trace {folder}\n"
        f"  dpaa recommend {folder} --k 10 --out recs.parquet"
    )
    trade = [_trade(data, runs, out_folder / TRADE)] if full else []
    _write_page(
        [*trade, dataset_folder, *(runs / name for name in METHODS), out_folder / COMPARISON], out_folder / PAGE
    )


def _compare(baseline: Path, run: Path, file: Path) -> None:
    """Which of the differences are more than chance; for the page, and in a line."""
    from dpaa.comparison.compare import compare
    from dpaa.comparison.entries import read_entries, write_comparison

    found = compare(*read_entries([baseline, run]))
    write_comparison(found, file)
    shown = [
        f"{delta.metric} {delta.delta:+.4f} ({'may be chance' if delta.verdict == 'not shown' else delta.verdict})"
        for delta in found.deltas
        if delta.p is not None
    ]
    out.print(f"\n{run.name} against {baseline.name}: {', '.join(shown)}")


def _trade(data: Dataset, runs: Path, folder: Path) -> Path:
    """The frontier over the runs of the demo and the fast closed forms, and what the choice changes."""
    from dpaa.cli.debias import print_frontier
    from dpaa.frontier.debias import debias
    from dpaa.frontier.models import default_methods
    from dpaa.methods import find_method
    from dpaa.methods.settings import TrainedSettings

    fast = [name for name in default_methods() if not issubclass(find_method(name).settings_type, TrainedSettings)]
    trained = [runs / name for name in METHODS if name in default_methods()]
    out.print("\nThe best trade between accuracy and popularity:")
    print_frontier(debias(folder, data, methods=fast, runs=trained, keep_accuracy=KEEP, say=err.print))
    return folder


def _write_page(paths: list[Path], page: Path) -> None:
    """The report of everything; without its extra the walk still ends well, and says what to install."""
    from dpaa.report.page import write_page

    try:
        print_notes(write_page(paths, page).notes)
    except MissingExtraError as error:
        print_notes([f"there is no page: {error}"])
    else:
        out.print(f"\nEverything on one page, to open in a browser: {page.resolve()}")
