"""`dpaa evaluate`: test metrics of a run, or of the recommendations of any system."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from dpaa.cli import options
from dpaa.cli.checks import FailIf, applied, fail_if_any, parse_checks
from dpaa.cli.console import cells, number, out, print_json, print_notes, print_table
from dpaa.cli.dial import DialOptions, PopularityDial, Rerank, print_dial
from dpaa.errors import InputError

if TYPE_CHECKING:
    from dpaa.auditing.checks import Check, CheckResult
    from dpaa.data.dataset import Dataset
    from dpaa.evaluation.dial_curve import DialCurve
    from dpaa.evaluation.evaluator import Evaluation
    from dpaa.evaluation.offpolicy import OffPolicy

GROUPS = {"all items": "", "popular": "/popular", "niche": "/niche"}


def evaluate(
    run: Annotated[Path | None, Argument(help="A finished run folder.", show_default=False)] = None,
    recs: Annotated[Path | None, Option(help="A recommendation file instead: user_id, item_id, rank or score.")] = None,
    dataset: options.DatasetOption = None,
    k: Annotated[list[int] | None, Option("--k", min=1, help="Length of the lists; repeatable; default: 20.")] = None,
    overlap: options.Overlap = "drop",
    mask_valid: options.MaskValid = False,
    group_by: options.GroupBy = None,
    off_policy: Annotated[
        bool, Option("--off-policy", help="Add off-policy estimates, for a biased test split.")
    ] = False,
    power: Annotated[float | None, Option(help="Off-policy: propensity (count / max)^power; default: 0.5.")] = None,
    floor: Annotated[
        float | None, Option(help="Off-policy: smallest propensity, others are clipped; default: 0.01.")
    ] = None,
    popularity_dial: PopularityDial = None,
    rerank: Rerank = None,
    dial_objective: Annotated[
        str | None,
        Option(
            metavar="ndcg|recall|niche:X",
            help="Choose the dial's κ on validation, for this, and keep it in the run; niche:5 is the most niche "
            "recall for at most 5 % less NDCG.",
        ),
    ] = None,
    fail_if: FailIf = None,
    dial_figure: Annotated[Path | None, Option(help="Draw the dial's curve: .png, .svg, .pdf, .html or .json.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Evaluate a run, or the recommendations of any system, on the test split of a dataset.

    Accuracy for all, popular and niche items and by the users' taste; popularity bias; exposure by popularity.

    The protocol stands beside the numbers; docs/metrics.md defines each.

    For a run, metrics.json and per_user.parquet are written into its folder, unless its lists were made with another
    popularity dial or re-ranker than it keeps, or the dataset is a later state of its log, and the curve of its dial on
    validation is shown; docs/dial.md explains it.

    \b
    Example:
      dpaa evaluate runs/lightgcn --k 10 --k 20
      dpaa evaluate runs/lightgcn --group-by genre
      dpaa evaluate runs/lightgcn --dial-objective niche:5 --dial-figure dial.png
      dpaa evaluate runs/tonight --fail-if "ndcg@20 < 0.98 * runs/live"
      dpaa evaluate --recs recs.csv --dataset data/shop
    """
    from dpaa.evaluation.offpolicy import FLOOR, POWER, propensities

    if (run is None) == (recs is None):
        raise InputError("name a run folder, or a recommendation file with --recs; one of them")
    dial = DialOptions(popularity_dial, dial_objective, dial_figure)
    cuts = tuple(sorted(set(k or [20])))
    if not off_policy and (power is not None or floor is not None):
        raise InputError("--power and --floor are settings of --off-policy; add it, or leave them out")
    power, floor = POWER if power is None else power, FLOOR if floor is None else floor
    if off_policy:
        import numpy as np

        propensities(np.ones(1), power, floor)  # refuse a wrong setting before the long part
    checks = parse_checks(fail_if, places=True)
    curve, kept = None, True
    if recs is not None:
        dial.refuse_for_a_file()
        if rerank is not None:
            raise InputError("--rerank needs the scores of a run and cannot be used with --recs; leave it out")
        name, found, data = recs.name, *_of_file(recs, dataset, cuts, overlap, mask_valid, group_by)
    else:
        assert run is not None
        name, found, data, curve, kept = _of_run(run, dataset, cuts, overlap, mask_valid, dial, rerank, group_by)
    results = [(str(run or recs), _checked(check, found, data)) for check in checks]
    estimates = found.off_policy(power, floor) if off_policy else None
    print_notes(found.notes)
    if as_json:
        print_notes([] if kept else [_not_kept(run)])
        extra = {} if estimates is None else {"off_policy": estimates.as_json()}
        checked = {"checks": [one.as_json() for _, one in results]} if checks else {}
        print_json(found.as_json() | extra | ({} if recs else {"dial": curve and curve.as_json()}) | checked)
    else:
        print_evaluation(name, found)
        if estimates is not None:
            print_estimates(estimates, found)
        if curve is not None and found.protocol.rerank is None:  # it is that of lists that are not re-ranked
            print_dial(curve, found.protocol.popularity_dial)
        if run is not None:
            from dpaa.runs.folder import RunFolder

            written = RunFolder(run).path / "metrics.json"
            following = f"written to {written}; next: dpaa recommend {run} --out recs.parquet"
            out.print(following if kept else f"{_not_kept(run)}; --json prints the numbers for a file")
    fail_if_any(results)


def _checked(check: Check, found: Evaluation, data: Dataset) -> CheckResult:
    """A check of the evaluation; a run or file that it names is measured by the same protocol."""
    from dpaa.evaluation.evaluator import Evaluator
    from dpaa.evaluation.recommendations import read_recommendations
    from dpaa.runs.measure import measured
    from dpaa.runs.model import load

    protocol, reference = found.protocol, found
    if check.reference is not None:
        place = Path(check.reference)
        evaluator = Evaluator(data, protocol.k, "test", protocol.overlap, protocol.mask_valid, protocol.group_by)
        if place.is_dir():
            reference = measured(load(place), evaluator)
        else:
            lists = read_recommendations(place, data.user_ids, data.item_ids, protocol.k[-1])
            reference = evaluator.evaluate_recommendations(lists)
    return applied(check, found.metrics, protocol.k[-1], reference.metrics)


def _of_run(
    run: Path,
    dataset: Path | None,
    cuts: tuple[int, ...],
    overlap: str,
    mask_valid: bool,
    dial: DialOptions,
    rerank: str | None,
    group_by: str | None,
) -> tuple[str, Evaluation, Dataset, DialCurve | None, bool]:
    """The method's name, the numbers and their data, the dial's curve, and whether the run keeps the numbers."""
    from dpaa.comparison import chances
    from dpaa.comparison.chances import Chances
    from dpaa.data.dataset import read_dataset
    from dpaa.runs.fit import evaluate as measure
    from dpaa.runs.folder import RunFolder
    from dpaa.runs.model import load

    folder = RunFolder(run)
    model = load(run)
    data = read_dataset(dataset) if dataset else model.trained_on.read(run)
    curve = dial.curve(model, data)
    found = measure(model, data, cuts, overlap, mask_valid, dial.kappa, rerank or "run", group_by)  # type: ignore[arg-type]
    dial.commit(folder, curve, model, data)
    kept = model.makes_lists_of(found.protocol) and model.trained_on.fingerprint == data.fingerprint
    if kept:
        folder.write_evaluation(found, model)
    unfinished = chances.unfinished(model.method.name, [Chances.of_model(model)])
    found = replace(found, notes=(*found.notes, *([unfinished] if unfinished else ())))
    return model.method.name, found, data, curve, kept


def _not_kept(run: Path | None) -> str:
    return f"the metrics were not written into {run}: its own popularity dial, re-ranker or dataset is another"


def _of_file(
    recs: Path, dataset: Path | None, cuts: tuple[int, ...], overlap: str, mask_valid: bool, group_by: str | None
) -> tuple[Evaluation, Dataset]:
    from dpaa.data.dataset import read_dataset
    from dpaa.evaluation.evaluator import Evaluator
    from dpaa.evaluation.recommendations import read_recommendations

    if dataset is None:
        raise InputError(f"{recs} does not say what it should have recommended; name the dataset with --dataset")
    data = read_dataset(dataset)
    evaluator = Evaluator(data, cuts, "test", overlap, mask_valid, group_by)  # type: ignore[arg-type]
    lists = read_recommendations(recs, data.user_ids, data.item_ids, cuts[-1])
    return evaluator.evaluate_recommendations(lists), data


def print_evaluation(name: str, found: Evaluation) -> None:
    """Tables per list length, and the protocol in words."""
    from dpaa.evaluation.metrics import of_kind

    metrics, protocol = found.metrics, found.protocol
    for k in protocol.k:
        rows = [
            [one.name, *(number(metrics[f"{one.name}@{k}{group}"]) for group in GROUPS.values())]
            for one in of_kind("accuracy")
        ]
        print_table(f"{name}, lists of {k}: accuracy", [f"@{k}", *GROUPS], rows)
        spread = of_kind("popularity", "spread")
        bias = [[one.name, number(metrics[f"{one.name}@{k}"]), one.in_words()] for one in spread]
        print_table("Popularity bias", [f"@{k}", "", "what it says"], bias, text=True)
        _print_exposure(found, k)
        _print_tastes(found, k)
        _print_groups(found, k)
    out.print(protocol.in_words())


def _print_exposure(found: Evaluation, k: int) -> None:
    """Recommendations by popularity of their item, beside what the users had in training."""
    tenths = ["rarest tenth", *(f"{place}." for place in range(2, 10)), "most popular tenth", "not in training"]
    shares = zip(found.exposure["history"], found.exposure[str(k)], strict=True)
    rows = [[tenth, *cells(".1%", *pair)] for tenth, pair in zip(tenths, shares, strict=True)]
    print_table("Share of the history and of the lists", ["items by popularity", "history", f"lists of {k}"], rows)


def _print_tastes(found: Evaluation, k: int) -> None:
    from dpaa.evaluation.concentration import TASTES
    from dpaa.evaluation.metrics import METRICS, of_kind

    users = {taste: int((found.per_user["taste"] == taste).sum() or 0) for taste in TASTES}
    header = [f"@{k}", *(f"{taste} ({number:,})" for taste, number in users.items())]
    rows = [
        [one.name, *(number(found.metrics[f"{one.name}@{k}/{taste}-tastes"]) for taste in TASTES)]
        for one in METRICS.values()
        if one.per_user and one.by_taste
    ]
    print_table("Users by taste: the share of popular items in their history", header, rows)
    if cold := found.protocol.cold_users:
        groups = {"warm-users": found.protocol.users - cold, "cold-users": cold}
        rows = [
            [one.name, *(number(found.metrics[f"{one.name}@{k}/{group}"]) for group in groups)]
            for one in of_kind("accuracy")
        ]
        header = [f"@{k}", *(f"{group.replace('-', ' ')} ({users:,})" for group, users in groups.items())]
        print_table("Users with (warm) and without (cold) training pairs", header, rows)


def _print_groups(found: Evaluation, k: int) -> None:
    """Items by the values of a column, where somebody asked."""
    from dpaa.evaluation.metrics import OF_COLUMNS

    column = found.protocol.group_by
    rows = []
    for name, group in found.groups.items():
        shares = cells(".1%", group["history"], group[str(k)])
        accuracy = (number(found.metrics[f"{metric}@{k}/{name}"]) for metric in OF_COLUMNS)
        rows.append([name.removeprefix(f"{column}="), f"{group['items']:,.0f}", *shares, *accuracy])
    if rows:
        header = [str(column), "items", "of the history", f"of the lists of {k}", *(f"{one}@{k}" for one in OF_COLUMNS)]
        print_table(f"Items by {column}: share and accuracy", header, rows)


def print_estimates(estimates: OffPolicy, found: Evaluation) -> None:
    """Off-policy estimates beside the plain numbers, and how far to trust them."""
    rows = [
        [
            f"{plain}@{k}",
            number(found.metrics[f"{plain}@{k}"]),
            *(number(estimates.metrics.get(f"{kind}_{plain}@{k}", float("nan"))) for kind in ("snips", "stratified")),
        ]
        for k in found.protocol.k
        for plain in ("recall", "ndcg")
    ]
    print_table("If the test split is as biased as the log", ["", "plain", "self-normalised", "stratified"], rows)
    out.print(
        f"each relevant pair weighs 1/max({estimates.floor:g}, (count/largest count)^{estimates.power:g}); effective "
        f"sample size {estimates.effective_sample_size:,.0f} of {estimates.pairs:,} pairs, "
        f"{estimates.clipped_share:.1%} at the floor"
    )
    print_notes(f"do not trust the estimates: {warning}" for warning in estimates.warnings)
