"""`dpaa methods`: the methods, their settings, defaults and papers."""

from __future__ import annotations

from typing import Annotated

from typer import Argument

from dpaa.cli import options
from dpaa.cli.console import Styled, out, print_json, print_table


def methods(
    name: Annotated[str | None, Argument(help="Show the settings of this method or re-ranker.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """List the methods and re-rankers; with a name, its settings, defaults and meaning.

    \b
    Example:
      dpaa methods lightgcn
    """
    from dpaa.methods.registry import catalogue
    from dpaa.ranking import RERANKERS

    by_name = (name or "").strip().lower().replace("_", "-")
    if by_name in RERANKERS:
        from dpaa.ranking.reranker import described

        found, use = {by_name: described(by_name)}, f"dpaa recommend RUN --rerank {by_name},NAME=VALUE"
    else:
        found, use = catalogue(name), f"dpaa train DATASET --method {by_name} --set NAME=VALUE"
    if as_json:
        print_json(found)
    elif name:
        (method,) = found.values()
        out.print(Styled(method["name"], "bold"), f": {method['title']}\n{method['paper']}\n")
        for key, setting in method["settings"].items():
            out.print("  ", Styled(key, "bold"), f" = {setting['default']!r}")
            out.print(f"      {setting['meaning']}")
        out.print(f"\nSet them with: {use}")
    else:
        rows = [[method["name"], method["title"], method["paper"]] for method in found.values()]
        print_table("Methods", ["name", "what it does", "paper"], rows, text=True)
        out.print("Settings and defaults of one: dpaa methods NAME")
        out.print(f"Re-rankers, for --rerank: {', '.join(RERANKERS)}")
