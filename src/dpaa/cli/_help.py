"""Help pages: options in panels, values by short words, one notation for defaults."""

import re
from inspect import cleandoc
from typing import Any

from typer.core import TyperCommand, TyperGroup

PANELS = {
    "Input": "recs dataset base runs train valid test candidates columns positive invalid format engine memory"
    " data results recipe against",
    "Simulation": "policy size severity rounds clicks",
    "Test": "detect users-per-day",
    "What to choose": "goal target keep-accuracy exposure max-minutes every",
    "Models and training": "method methods set config seed seeds pretrained warm-start resume final jobs budget",
    "Split": "min-pairs share",
    "Search": "space trials max-loss storage",
    "Lists": "k users history items exclude exclude-pairs only at-most at-least popularity-dial shard include-seen"
    " without-reranker rerank",
    "Measuring": "metric split overlap mask-valid group-by off-policy",
    "Output": "out to append figures overwrite json fail-if",
}
"""Panel → options, in the order of a page; an option may name another panel where it is declared."""
WORDS = {"bool": "", "int": "N", "float": "X", "Path": "PATH", "str": "TEXT"}
"""What is shown as the value of an option that names nothing better."""
_PANEL_OF = {name: panel for panel, names in PANELS.items() for name in names.split()}
_DEFAULT = re.compile(r"[;:,]? ?default: (.*?)\.?$", re.IGNORECASE)


class _Described:
    """Parameters by panel."""

    def get_params(self, ctx: Any) -> list[Any]:
        """List arguments, then options by panel."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            _describe(param)
        order = list(PANELS)
        return sorted(params, key=lambda one: order.index(one.rich_help_panel) if one.rich_help_panel in order else -1)


class Group(_Described, TyperGroup):
    """Commands."""


class Command(_Described, TyperCommand):
    """A command whose page is complete at 80 columns."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the page without ranges such as `[x>=1]`: the message about a wrong value names its range."""
        from typer import rich_utils

        rich_utils.RANGE_STRING = ""
        super().format_help(ctx, formatter)


def unwrapped(text: str) -> str:
    """Join the lines of each paragraph, which Typer would keep; examples (after `\\b`) stay as they are.

    Parameters
    ----------
    text : a docstring

    Returns
    -------
    the help
    """
    summary, *parts = cleandoc(text).split("\n\n")
    examples = slice(2 * (len(parts) > 1), None)  # without `\b`, unless Typer would dedent what follows the summary
    parts = [part[examples] if part[0] == "\b" else " ".join(part.split()) for part in parts]
    return "\n\n".join([" ".join(summary.split()), *parts])


def _describe(param: Any) -> None:
    """Set a parameter's panel, its value and its default."""
    if param.param_type_name == "argument":
        name = param.metavar = param.metavar or param.name.upper()
        param.display_type_rich = lambda **_: ""  # its name says it
        param.get_usage_pieces = lambda *_: [(name if param.required else f"[{name}]").replace("…", "...")]
        return
    long = max(param.opts, key=len).removeprefix("--")
    param.rich_help_panel = param.rich_help_panel or _PANEL_OF.get(long)
    if param.name == "help":
        param.hidden = True  # who reads the page knows
    elif param.metavar is None:
        param.metavar = WORDS.get(param.bare_type().removeprefix("list[").removesuffix("]"))
    if param.help and param.default is None and (found := _DEFAULT.search(param.help)):
        param.help, param.show_default = param.help[: found.start()].rstrip(".") + ".", found[1]
        param._get_default_string = lambda **_: found[1]  # which would be in parentheses
