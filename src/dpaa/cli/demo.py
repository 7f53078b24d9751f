"""`dpaa demo`: the whole walk on a simulated world whose truth is known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from dpaa.cli import options
from dpaa.cli.console import Styled, err, out, print_notes, print_table
from dpaa.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from dpaa.data.dataset import Dataset
    from dpaa.debiasing import Debiased
    from dpaa.evaluation.evaluator import Evaluation

METHODS: dict[str, dict[str, object]] = {"most-popular": {}, "lightgcn": {}, "dpaa": {}}
"""What the demo compares, the baseline first; DPAA takes the LightGCN before it as its pre-trained model."""
PLAIN = "lightgcn"
CLOSED_FORMS = ("ease", "item-knn")
"""What the frontier has besides: trained in a moment."""
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
"""Share of the best accuracy that is promised to be kept."""
ROWS = 6
"""Of the frontier."""
REAL = (
    "On real data: KuaiRec with bias of severity 5, niche items found +5.4%, accuracy +27% on the test split; on "
    "Coat, whose 290 users can confirm little, `dpaa debias` keeps what was there (docs/results/frontier.md)."
)
"""A real result beside the simulated one, from `docs/results/frontier.csv`; a test compares."""


def demo(
    out_folder: Annotated[Path, Option("--out", help="Folder for the dataset and the runs.")] = Path("dpaa-demo"),
    seed: options.Seed = 0,
    severity: Annotated[float, Option(min=0, help="How strongly the logging policy favours popular items.")] = 1.0,
    overwrite: options.Overwrite = False,
) -> None:
    """A log's bias, what a recommender makes of it, and the best trade: the whole walk on a simulated world.

    The world's log shows popular items more; validation and test come from uniformly random exposure, so the
    numbers say what people like rather than what they were shown.  About a minute on two cores; ends with a page.

    \b
    Example:
      dpaa demo --out dpaa-demo
    """
    from dpaa.auditing import audit
    from dpaa.data.dataset import read_dataset
    from dpaa.data.sources.world import simulate

    if out_folder.exists() and not overwrite:
        raise InputError(f"{out_folder} already exists; pass --overwrite or choose another folder with --out")
    err.print("simulating a world: people with tastes, items with appeal, a log that shows popular items more")
    dataset_folder, runs = out_folder / "data", out_folder / "runs"
    simulate(severity=severity, seed=seed).write(dataset_folder, overwrite=overwrite)
    data = read_dataset(dataset_folder)
    out.print("\n1. The log (simulated, so that the truth is known)")
    out.print(f"{data}: train {len(data.train):,}, valid {len(data.valid):,}, test {len(data.test):,}")
    print_notes(data.notes)
    for sentence in audit(data).in_words()[1:4]:  # the first counts what was printed above
        out.print(f"- {sentence}")
    found = _train(data, runs, seed, overwrite)
    out.print("\n2. What recommenders make of it")
    _print_runs(found)
    _compare(runs / PLAIN, runs / "dpaa", out_folder / COMPARISON)
    out.print("\n3. The best trade between accuracy and popularity")
    trade = _trade(data, runs, out_folder / TRADE)
    tested = _evaluate(data, out_folder / TRADE)
    out.print("\n4. What it comes to")
    _conclude(trade, found[PLAIN], tested)
    _write_page(
        [out_folder / TRADE, dataset_folder, *(runs / name for name in METHODS), out_folder / COMPARISON],
        out_folder / PAGE,
    )


def _train(data: Dataset, runs: Path, seed: int, overwrite: bool) -> dict[str, Evaluation]:
    """Every method of the demo, trained and measured on the test split."""
    from dpaa.runs.fit import fit_into, make_method
    from dpaa.runs.progress import watched_training

    found = {}
    for name, settings in METHODS.items():
        method = make_method(data, name, settings | {"seed": seed})
        pretrained = runs / PLAIN if name == "dpaa" else None
        with watched_training(method) as callbacks:
            fit_into(runs / name, data, method, overwrite=overwrite, callbacks=callbacks, pretrained=pretrained)
        found[name] = _evaluate(data, runs / name)
    return found


def _evaluate(data: Dataset, folder: Path) -> Evaluation:
    """Metrics of the test split, kept in the run."""
    from dpaa.runs.fit import evaluate
    from dpaa.runs.folder import RunFolder
    from dpaa.runs.model import load

    model = load(folder)
    found = evaluate(model, data)
    RunFolder(folder).write_evaluation(found, model)
    return found


def _print_runs(found: dict[str, Evaluation]) -> None:
    rows = [
        [name, *(f"{one.metrics[metric]:.4f}" for metric in SHOWN.values()), f"{one.metrics['arp@20']:.0f}"]
        for name, one in found.items()
    ]
    print_table("Lists of 20, tested on random exposure", ["method", *SHOWN, "arp"], rows)
    out.print(
        "popular, niche: recall of popular items (80% of the log) and of the rest; "
        "arp: mean training count of recommended items"
    )
    plain = found[PLAIN].metrics
    out.print(
        f"- {PLAIN} finds {plain['recall@20/popular']:.0%} of the popular items that people like, and "
        f"{plain['recall@20/niche']:.1%} of the niche ones; {1 - plain['coverage@20']:.0%} of the catalogue is shown "
        "to nobody."
    )
    out.print(f"- {found[PLAIN].protocol.in_words()}")


def _compare(baseline: Path, run: Path, file: Path) -> None:
    """Which of the differences are more than chance; for the page, and in a line."""
    from dpaa.comparison import compare_entries, read_entries, write_table

    found = compare_entries(*read_entries([baseline, run]))
    write_table(found, file)
    shown = [
        f"{delta.metric} {delta.delta:+.4f} ({'may be chance' if delta.verdict == 'not shown' else delta.verdict})"
        for delta in found.deltas
        if delta.p is not None
    ]
    out.print(f"- {run.name} against {baseline.name}: {', '.join(shown)}")


def _trade(data: Dataset, runs: Path, folder: Path) -> Debiased:
    """The frontier over the runs of the demo and closed forms, and the point that is chosen on validation."""
    from dpaa.cli.debias import print_frontier
    from dpaa.debiasing import debias, default_methods

    trained = [runs / name for name in METHODS if name in default_methods()]
    found = debias(
        folder, data, methods=CLOSED_FORMS, runs=trained, base=runs / PLAIN, keep_accuracy=KEEP, say=err.print
    )
    print_frontier(found, ROWS)
    return found


def _conclude(trade: Debiased, before: Evaluation, after: Evaluation) -> None:
    """The choice in one sentence, what the test split says of it, and a real result."""
    from dpaa.debiasing import percent, times

    niche, accuracy = ([one.metrics[name] for one in (before, after)] for name in ("recall@20/niche", "ndcg@20"))
    name, base = trade.point.candidate.name, trade.base.candidate.name
    what = f" ({name} in place of {base})" if not trade.keeps_base else ""
    out.print(Styled(f"In this simulated world: {trade.headline()}{what}.", "bold"))
    if not trade.keeps_base:
        out.print(
            f"The test split, which the choice has not seen, says: niche items found {times(*niche)}, "
            f"accuracy {percent(accuracy[1] / accuracy[0] - 1)}."
        )
    out.print(REAL)
    out.print(
        "\nWith your own log:\n"
        "  dpaa data log clicks.csv --out data/clicks\n"
        "  dpaa debias data/clicks --keep-accuracy 0.98 --out trade"
    )


def _write_page(paths: list[Path], page: Path) -> None:
    """The report of everything; without its extra the walk still ends well, and says what to install."""
    from dpaa.report import write_page

    try:
        print_notes(write_page(paths, page).notes)
    except MissingExtraError as error:
        print_notes([f"there is no page: {error}"])
    else:
        out.print(f"\nEverything on one page, to open in a browser: {page.resolve()}")
