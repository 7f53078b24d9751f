"""`dpaa methods`: the methods, their settings, defaults and papers."""

from __future__ import annotations

from typing import Annotated

from typer import Argument

from dpaa.cli import options
from dpaa.cli.console import Styled, out, print_json, print_table


def methods(
    name: Annotated[str | None, Argument(help="Show the settings of this method.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """List the methods; with a name, its settings, defaults and meaning.

    \b
    Example:
      dpaa methods lightgcn
    """
    from dpaa.methods.catalogue import catalogue
    from dpaa.reranking import RERANKERS

    found = catalogue(name)
    if as_json:
        print_json(found)
    elif name:
        (method,) = found.values()
        out.print(Styled(method["name"], "bold"), f": {method['title']}\n{method['paper']}\n")
        for key, setting in method["settings"].items():
            out.print("  ", Styled(key, "bold"), f" = {setting['default']!r}")
            out.print(f"      {setting['meaning']}")
        out.print(f"\nSet them with: dpaa train DATASET --method {method['name']} --set NAME=VALUE")
    else:
        rows = [[method["name"], method["title"], method["paper"]] for method in found.values()]
        print_table("Methods", ["name", "what it does", "paper"], rows, text=True)
        out.print("Settings and defaults of one: dpaa methods NAME")
        out.print(f"Re-rankers, for --rerank: {', '.join(RERANKERS)}")
