"""`dpaa simulate`: the feedback loop of a recommender that is refitted on its own clicks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

import dpaa
from dpaa._io import as_json as json_text
from dpaa._io import write_file
from dpaa.cli import options
from dpaa.cli.console import cells, err, out, print_result, print_table

SHOWN = {"satisfaction": ".3f", "satisfaction_worst": ".3f", "click_rate": ".3f", "never_shown": ".1%"}
SHOWN |= {"log_gini": ".3f", "log_items_for_80": ".1%"}
"""Rows of the table → format."""
BESIDE = 3
"""Policies beside each other: more do not fit 80 columns."""


def simulate(
    source: Annotated[str, Argument(metavar="DATASET|world[:USERSxITEMS]", help="Source of preferences.")],
    policies: Annotated[list[str], Option("--policy", help="METHOD, RUN, debias, oracle or random; repeatable.")],
    rounds: Annotated[int, Option(min=1, help="Rounds of clicks.")] = 10,
    k: options.K = 20,
    severity: options.Severity = 1.0,
    seeds: Annotated[int, Option(min=1, help="Number of seeds, for the intervals.")] = 1,
    clicks: Annotated[str | None, Option(metavar="NAME=X,…", help="Click model (see above).")] = None,
    group_by: options.GroupBy = None,
    files: Annotated[
        list[Path] | None, Option("--out", help="HTML page, or rounds as .csv, .json; repeatable.")
    ] = None,
    overwrite: options.Overwrite = False,
    as_json: options.AsJson = False,
) -> None:
    """Simulate the feedback loop: recommendations become clicks, clicks become training data.

    Users like exactly the pairs of DATASET, which needs (nearly) complete exposure; the first log is a biased draw from
    them.  `world` is the built-in simulation.  In each round a policy recommends, users click, and the policy is
    refitted from its last model (refit=warm), from scratch (cold) or not (never).  debias selects once, at first.

    Parameters of the click model, with defaults: position=η, rank r is examined with probability r^-η (0); slots, ranks
    examined (all); noise, probability of clicking a disliked item (0); organic, share of items that users find
    themselves (0); repeat=yes, items shown without a click are shown again (no).

    \b
    Example:
      dpaa simulate world --policy ease --policy ease+dial,kappa=-0.4 --policy \\
          random
      dpaa simulate world --policy ease --clicks position=1,slots=10
      dpaa simulate data/kuairec --policy lightgcn,refit=never --policy debias \\
          --seeds 3
      dpaa simulate world --policy ease+xquad,by=publisher --group-by publisher \\
          --out loop.html
    """
    pages, tables = options.check_outputs(files, (".csv", ".json"), "a simulation", overwrite)
    taste = source if source.partition(":")[0] == "world" else dpaa.read_dataset(source)
    model = _click_model(clicks)
    how = {"rounds": rounds, "k": k, "severity": severity, "seeds": seeds}
    result = dpaa.simulate(taste, policies, clicks=model, group_by=group_by, say=err.print, **how)  # type: ignore[arg-type]
    for file in tables:
        content = result.frame.write_csv() if file.suffix.lower() == ".csv" else json_text(result.as_json())
        write_file(file, content, "free some space or choose another file with --out")
    for file in pages:
        from dpaa.report import simulation_page

        simulation_page(result, file)
    print_result(result, as_json, _print_simulation)


def _click_model(text: str | None) -> dpaa.ClickModel:
    """Read `--clicks`."""
    kinds: dict[str, Any] = dict.fromkeys(("position", "noise", "organic"), float)
    kinds |= {"slots": int, "repeat": {"yes": True, "no": False}.__getitem__}
    return dpaa.ClickModel(**({} if text is None else options.parse_values(text, "clicks", **kinds)))


def _print_simulation(result: dpaa.Simulation) -> None:
    """Print the metrics of every policy after the last round, a sentence for each, and the click model."""
    rounds, k = result.about["rounds"], result.about["k"]
    columns = {f"ndcg@{k}": ".4f", f"coverage@{k}": ".1%"} | SHOWN
    columns |= {name: ".3f" for name in result.frame.columns if name == f"exposure@{k}/{result.about['group_by']}"}
    numbered = list(enumerate(result.policies, 1))
    for first in range(0, len(numbered), BESIDE):
        some = [(f"[{index}]", policy) for index, policy in numbered[first : first + BESIDE]]
        rows = []
        for name, form in columns.items():
            pairs = [result.over_seeds(name, policy)[-1] for _, policy in some]
            ranges = ("" if wide != wide else f" ± {wide:{form}}" for _, wide in pairs)
            rows.append([name, *(cells(form, mean)[0] + more for (mean, _), more in zip(pairs, ranges, strict=True))])
        print_table(f"After {rounds} rounds", ["", *(number for number, _ in some)], rows)
    for (index, _), sentence in zip(numbered, result.sentences(), strict=True):
        out.print(f"[{index}] {sentence}")
    out.print(f"{result.about['source']}; severity of the first log {result.about['severity']:g}")
    out.print(result.about["in_words"])
