"""`dpaa methods`: the methods, their hyperparameters, defaults and papers."""

from typing import Annotated

from typer import Argument

from dpaa.cli import options
from dpaa.cli.console import out, print_json, print_table


def methods(
    name: Annotated[str | None, Argument(help="Method or re-ranker to show.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """List methods and re-rankers, or show the hyperparameters and defaults of one.

    \b
    Example:
      dpaa methods lightgcn
    """
    from dpaa.methods.registry import catalogue
    from dpaa.ranking import RERANKERS

    by_name = (name or "").strip().lower().replace("_", "-")
    reranks = by_name in RERANKERS
    entries = {by_name: RERANKERS.describe(by_name)} if reranks else catalogue(name)
    if as_json:
        print_json(entries)
    elif name:
        (entry,) = entries.values()
        out.print((entry["name"], "bold"), f": {entry['title']}\n{entry['paper']}\n")
        for key, field in entry["settings"].items():
            out.print("  ", (key, "bold"), f" = {field['default']!r}")
            out.print(f"      {field['meaning']}")
        use = "recommend RUN --rerank {},NAME=VALUE" if reranks else "train DATASET --method {} --set NAME=VALUE"
        out.print(f"\nSet them with: dpaa {use.format(by_name)}")
    else:
        rows = [[entry["name"], entry["title"], entry["paper"]] for entry in entries.values()]
        print_table("Methods", ["name", "what it does", "paper"], rows, text=True)
        out.print("Hyperparameters and defaults of one: dpaa methods NAME")
        out.print(f"Re-rankers, for --rerank: {', '.join(RERANKERS)}")
