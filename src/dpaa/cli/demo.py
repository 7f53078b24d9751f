"""`dpaa demo`: the whole pipeline on a simulated world whose truth is known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Option

import dpaa
from dpaa.cli import options
from dpaa.cli.console import err, out, print_notes, print_table
from dpaa.errors import InputError, MissingExtraError

METHODS = ("most-popular", "lightgcn", "dpaa")
"""What the demo compares, the baseline first; DPAA takes the LightGCN before it as its pre-trained model."""
PLAIN = "lightgcn"
CLOSED_FORMS = ("ease", "item-knn")
"""What the frontier has besides: trained in a moment."""
SHOWN = ("recall@20", "ndcg@20", "hit@20", "recall@20/popular", "recall@20/niche", "coverage@20", "arp@20")
NEXT = """
With your own log:
  dpaa data log clicks.csv --out data/clicks
  dpaa debias data/clicks --keep-accuracy 0.98 --out debiased"""


def demo(
    out_folder: Annotated[Path, Option("--out", help="Folder for the dataset and the runs.")] = Path("dpaa-demo"),
    overwrite: options.Overwrite = False,
) -> None:
    """Show a log's bias, how recommenders amplify it, and the best trade-off, on simulated data.

    Popular items are shown more often in the simulated log; validation and test come from uniformly random exposure,
    so metrics reflect what users like, not what they were shown.  Takes about a minute on two cores and ends with a
    report.

    \b
    Example:
      dpaa demo --out dpaa-demo
    """
    from dpaa.cli.debias import print_frontier
    from dpaa.comparison import compare_entries, read_entries, write_table
    from dpaa.data.sources.world import simulate
    from dpaa.report import write_page
    from dpaa.runs.fit import fit_into, make_method
    from dpaa.runs.progress import watched_training

    if out_folder.exists() and not overwrite:
        raise InputError(f"{out_folder} already exists; pass --overwrite or choose another folder with --out")
    runs, debiased, comparison = out_folder / "runs", out_folder / "debiased", out_folder / "comparison.json"
    err.print("simulating users with preferences, items, and a log that over-exposes popular items")
    simulate().write(out_folder / "data", overwrite=overwrite)
    data = dpaa.read_dataset(out_folder / "data")
    out.print("\n1. The log (simulated, so that the truth is known)")
    for sentence in dpaa.audit(data).in_words()[:4]:
        out.print(f"- {sentence}")

    out.print("\n2. How recommenders amplify the bias")
    measured = {}
    for name in METHODS:
        method, pretrained = make_method(data, name, {}), runs / PLAIN if name == "dpaa" else None
        fit_into(runs / name, data, method, overwrite=overwrite, callbacks=watched_training(), pretrained=pretrained)
        measured[name] = _evaluate(data, runs / name)
    rows = [[name, *(f"{one.metrics[metric]:.4g}" for metric in SHOWN)] for name, one in measured.items()]
    print_table("Lists of 20, tested on random exposure", ["method", *SHOWN], rows)
    out.print("popular, niche: items with 80% of the log, and the rest; arp: mean training count of recommended items")

    out.print("\n3. The best trade-off between accuracy and popularity")
    trained = [runs / PLAIN, runs / "dpaa"]
    how: Any = {"methods": CLOSED_FORMS, "runs": trained, "base": trained[0], "keep_accuracy": 0.95}
    chosen = dpaa.debias(debiased, data, say=err.print, **how)
    print_frontier(chosen, 6)

    out.print("\n4. Result")
    out.print((f"In this simulated world: {chosen.headline()}.", "bold"))
    _evaluate(data, debiased)
    compared = compare_entries(*read_entries([runs / PLAIN, runs / "dpaa", debiased]))
    write_table(compared, comparison)
    for entry in ("dpaa", debiased.name):
        deltas = [delta for delta in compared.deltas if delta.entry == entry and delta.p is not None]
        shown = [f"{delta.metric} {delta.baseline:.4g} → {delta.value:.4g} ({delta.verdict})" for delta in deltas]
        out.print(f"- {entry} against {PLAIN} on the test split: {', '.join(shown)}")
    out.print(NEXT)
    page = out_folder / "report.html"
    try:
        write_page([debiased, out_folder / "data", *(runs / name for name in METHODS), comparison], page)
        out.print(f"\nReport, to open in a browser: {page.resolve()}")
    except MissingExtraError as error:
        print_notes([f"there is no page: {error}"])


def _evaluate(data: dpaa.Dataset, folder: Path) -> dpaa.Evaluation:
    """Metrics of the test split, kept in the run."""
    from dpaa.runs.folder import RunFolder

    model = dpaa.load(folder)
    evaluation = dpaa.evaluate(model, data)
    RunFolder(folder).write_evaluation(evaluation, model)
    return evaluation
