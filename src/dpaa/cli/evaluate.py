"""`dpaa evaluate`: test metrics of a run, or of the recommendations of any system."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

import dpaa
from dpaa.cli import options
from dpaa.cli.console import cells, number, out, print_json, print_notes, print_records, print_table
from dpaa.cli.options import apply_check, parse_checks, print_failed
from dpaa.errors import InputError

if TYPE_CHECKING:
    from dpaa.evaluation.dial_curve import DialCurve
    from dpaa.evaluation.evaluator import Evaluation, Evaluator
    from dpaa.runs.model import Model

DECILES = ["rarest decile", *(f"{number}." for number in range(2, 10)), "most popular decile", "not in training"]
DIAL = {"κ": "shown", "ndcg": "ndcg:.4f", "recall": "recall:.4f", "niche recall": "niche_recall:.4f"}
DIAL |= {"arp": "arp:,.1f", "coverage": "coverage:.1%"}


def evaluate(
    source: Annotated[Path, Argument(metavar="RUN|RECS", help="A finished run, or recommendations of any system.")],
    dataset: options.DatasetOption = None,
    k: Annotated[list[int] | None, Option("--k", min=1, help="Length of the lists; repeatable; default: 20.")] = None,
    split: Annotated[str, Option(help="test, or valid for selection without using the test split.")] = "test",
    overlap: options.Overlap = "drop",
    mask_valid: Annotated[bool, Option("--mask-valid", help="Mask validation pairs like training pairs.")] = False,
    group_by: options.GroupBy = None,
    off_policy: Annotated[bool, Option("--off-policy", help="Add estimates for a biased test split.")] = False,
    popularity_dial: Annotated[
        str | None, Option(metavar="X|run|GOAL", help="κ, or a goal to select it on validation: ndcg, recall, niche:X.")
    ] = None,
    rerank: options.Rerank = None,
    fail_if: options.FailIf = None,
    as_json: options.AsJson = False,
) -> None:
    """Evaluate a run, or the recommendations of any system, on the test split of a dataset (or on validation).

    Prints accuracy for all, popular and niche items and by user taste, popularity bias, exposure by popularity, and the
    protocol; docs/metrics.md defines each metric.

    For a run, it writes metrics.json and per_user.parquet into the run folder, unless you set another popularity dial
    or re-ranker than the run's, the dataset has been appended to since, or the split is validation.  It also shows the
    run's dial curve on validation (docs/dial.md).  --popularity-dial niche:5 selects κ on validation, for the highest
    niche recall with at most 5% less NDCG, and stores it in the run.

    \b
    Example:
      dpaa evaluate runs/lightgcn --k 10 --k 20
      dpaa evaluate runs/lightgcn --group-by genre
      dpaa evaluate runs/lightgcn --popularity-dial niche:5
      dpaa evaluate runs/tonight --fail-if "ndcg@20 < 0.98 * runs/live"
      dpaa evaluate recs.csv --dataset data/shop
    """
    from dpaa.evaluation.evaluator import Evaluator
    from dpaa.runs.measure import measured

    # A folder of lists has parts: shards, or what Spark has written.
    lists = source.is_file() or source.suffix.lower() in options.TABLES or any(source.glob("part-*"))
    if lists and dataset is None:
        raise InputError(f"{source} has no test split of its own; name the dataset with --dataset")
    if lists and (popularity_dial or rerank):
        raise InputError(f"--popularity-dial and --rerank need the scores of a run, {source} has none; leave them out")
    if split not in ("valid", "test"):
        raise InputError(f"--split is valid or test, got {split!r}")
    checks = parse_checks(fail_if)
    model = None if lists else dpaa.load(source)
    data = model.trained_on.read(source) if model and dataset is None else dpaa.read_dataset(str(dataset))
    evaluator = Evaluator(data, tuple(k or [20]), split, overlap, mask_valid, group_by)  # type: ignore[arg-type]

    def metrics_of(path: str) -> dict[str, float]:
        is_run = Path(path).is_dir()
        return (measured(dpaa.load(path), evaluator) if is_run else evaluator.evaluate_recommendations(path)).metrics

    references = {check.reference: metrics_of(check.reference) if check.reference else {} for check in checks}
    curve, more = None, dict[str, Any]()
    if model:
        result, curve = _of_run(model, evaluator, popularity_dial, rerank or "run")
        more["dial"] = curve and curve.as_json()
    else:
        result = evaluator.evaluate_recommendations(source)
    longest = evaluator.protocol.k[-1]
    applied = [apply_check(check, result.metrics, longest, references[check.reference]) for check in checks]
    more |= {"checks": [check.as_json() for check in applied]} if checks else {}
    estimates = result.off_policy() if off_policy else None
    print_notes([*result.notes, *(estimates.warnings if estimates else ())])
    if as_json:
        print_json(result.as_json() | more | ({"off_policy": asdict(estimates)} if estimates else {}))
    else:
        _print_evaluation(source.name, result)
        if estimates:
            rows = [[key, number(value)] for key, value in estimates.metrics.items()]
            print_table("Off-policy estimates", ["", "estimate"], rows)
        if curve and result.protocol.rerank is None:  # it is that of lists that are not re-ranked
            marks = {curve.suggested: " suggested"} | {curve.kappa: " active"}
            points = [asdict(p) | {"shown": f"{p.kappa:g}{marks.get(p.kappa, '')}"} for p in curve.points]
            print_records(f"Popularity dial on validation, lists of {curve.k}", DIAL, points)
            out.print(curve.in_words())
    print_failed(f"{source}: {check.sentence}" for check in applied if check.failed)


def _of_run(model: Model, evaluator: Evaluator, dial: str | None, rerank: str) -> tuple[Evaluation, DialCurve | None]:
    """Write the metrics of a run and its dial curve into its folder, and print the next step."""
    from dpaa._text import finite
    from dpaa.comparison import TrainingBudget, unfinished
    from dpaa.runs.folder import RunFolder
    from dpaa.runs.measure import choose_dial, measured

    folder, data = RunFolder(str(model.path)), evaluator.dataset
    chosen = choose_dial(model, data, dial) if dial and dial != "run" and dial[0].isalpha() else None
    if chosen:
        model.manifest["dial"] = finite(chosen.as_json())
    result, curve = measured(model, evaluator, None if chosen else dial, rerank), chosen or model.dial_curve
    if chosen:
        folder.write_dial(chosen, model)
    warning = unfinished(model.method.name, [TrainingBudget.of_model(model)])
    whole = evaluator.protocol.split == "test" and model.trained_on.fingerprint == data.fingerprint
    if whole and model.makes_lists_of(result.protocol):
        folder.write_evaluation(result, model)
        call = f"dpaa {options.plugin_option(model.method.name)}recommend {model.path} --out recs.parquet"
        note = f"the metrics are written into {model.path}; next: {call}"
    else:
        note = f"the metrics were not written into {model.path}: its own dial, re-ranker, dataset or split is another"
    return replace(result, notes=(*result.notes, *([warning] if warning else []), note)), curve


def _print_exposure(metrics: dict[str, float], k: int, column: str) -> None:
    """Print each group's exposure against its merit and its share of the catalogue, the worst-off first."""
    keys = {name: f"{name}@{k}/{column}" for name in ("exposure", "exposure_of_catalogue", "exposure_loss")}
    start = f"{keys['exposure']}="
    groups = sorted((metrics[key], key.removeprefix(start)) for key in metrics if key.startswith(start))
    rows = [
        [group, number(ratio), number(metrics[f"{keys['exposure_of_catalogue']}={group}"])] for ratio, group in groups
    ]
    rows.append(["worst-off group", *(number(metrics[keys[name]]) for name in ("exposure", "exposure_of_catalogue"))])
    print_table(f"Exposure by {column}, against", [column, "what users like", "the catalogue"], rows)
    loss = number(metrics[keys["exposure_loss"]])
    out.print(f"a place at rank r is worth 1/log2(r + 1); 1 = in proportion; {keys['exposure_loss']} = {loss}")


def _print_evaluation(name: str, result: Evaluation) -> None:
    """Print tables per list length, and the protocol in words."""
    from dpaa.evaluation.bias import TASTES
    from dpaa.evaluation.metrics import OF_COLUMNS, of_kind

    metrics, protocol = result.metrics, result.protocol
    by_taste = {taste: f"/{taste}-tastes" for taste in TASTES}
    by_history = {"warm": "/warm-users", "cold": "/cold-users"} if protocol.cold_users else {}
    tables = {"items": {"all items": "", "popular": "/popular", "niche": "/niche"}, "tastes": by_taste | by_history}
    for k in protocol.k:
        for title, groups in tables.items():
            rows = [
                [metric.name, *(number(metrics[f"{metric.name}@{k}{suffix}"]) for suffix in groups.values())]
                for metric in of_kind("accuracy")
            ]
            print_table(f"{name}, lists of {k}: accuracy by {title}", [f"@{k}", *groups], rows)
        spread = of_kind("popularity", "spread")
        rows = [[metric.name, number(metrics[f"{metric.name}@{k}"]), metric.in_words()] for metric in spread]
        print_table("Popularity bias", [f"@{k}", "", "what it says"], rows, text=True)
        shares = zip(DECILES, result.exposure["history"], result.exposure[str(k)], strict=True)
        rows = [[decile, *cells(".1%", *pair)] for decile, *pair in shares]
        header = ["items by popularity", "history", f"lists of {k}"]
        print_table("Share of the history and of the lists", header, rows)
        rows = [
            [name.partition("=")[2], f"{group['items']:,.0f}", *cells(".1%", group["history"], group[str(k)])]
            + [number(metrics[f"{metric}@{k}/{name}"]) for metric in OF_COLUMNS]
            for name, group in result.groups.items()
        ]
        if rows:
            header = [str(protocol.group_by), "items", "of the history", f"of the lists of {k}", *OF_COLUMNS]
            print_table(f"Items by {protocol.group_by}: share and accuracy", header, rows)
            _print_exposure(metrics, k, str(protocol.group_by))
    out.print(protocol.in_words())
