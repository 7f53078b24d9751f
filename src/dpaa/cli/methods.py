"""`dpaa methods`: the methods, their settings, defaults and papers."""

from __future__ import annotations

from typing import Annotated

import typer

from dpaa.cli.console import Styled, out, print_json, print_table


def methods(
    name: Annotated[str | None, typer.Argument(help="Show the settings of this method.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the methods; with a name, its settings, defaults and meaning.

    \b
    Example:
      dpaa methods lightgcn
    """
    from dpaa.methods import METHODS, find_method
    from dpaa.methods.base import Method

    def described(method: type[Method]) -> dict[str, object]:
        fields = method.settings_type.model_fields
        settings = {key: {"default": field.default, "meaning": field.description} for key, field in fields.items()}
        return {"name": method.name, "title": method.title, "paper": method.paper, "settings": settings}

    chosen = [find_method(name)] if name else list(METHODS.values())
    if as_json:
        print_json({method.name: described(method) for method in chosen})
    elif name:
        method = chosen[0]
        out.print(Styled(method.name, "bold"), f": {method.title}\n{method.paper}\n")
        for key, field in method.settings_type.model_fields.items():
            out.print("  ", Styled(key, "bold"), f" = {field.default!r}")
            out.print(f"      {' '.join((field.description or '').split())}")
        out.print(f"\nSet them with: dpaa train DATASET --method {method.name} --set NAME=VALUE")
    else:
        rows = [[method.name, method.title, method.paper] for method in chosen]
        print_table("Methods", ["name", "what it does", "paper"], rows, text=True)
        out.print("Settings and defaults of one: dpaa methods NAME")
