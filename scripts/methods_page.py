"""Every method, its paper and its hyperparameters as one page of the site; mkdocstrings fills in the latter."""

from __future__ import annotations

from dpaa.methods import METHODS, find_method

OPENING = """# Methods

What they do, and when to use which: [the map](../methods.md). Where the code departs from a paper:
[departures](../deviations.md).

"""
OPTIONS = "    options:\n      show_root_heading: false\n      heading_level: 4\n"
IN_PYTHON = """
## Hyperparameters

Each method is a class whose fields are its hyperparameters: `dpaa.DPAA(layers=2).fit(data)` trains it, and your editor
completes the fields. On the command line the same fields are `--set layers=2`; `dpaa methods NAME` lists them.

"""


def page() -> str:
    """A table of all, and a heading per method with its hyperparameters, in the order of the registry."""
    rows, parts = ["| name | what it does | paper |\n|---|---|---|\n"], []
    for name in METHODS.built_in:
        method = find_method(name)
        rows.append(f"| [`{name}`](#{name}) | {method.title} | {method.paper or '-'} |\n")
        place = f"{method.__module__}.{method.__qualname__}"
        parts.append(f"### `{name}`\n\n`dpaa.{method.__name__}`\n\n::: {place}\n{OPTIONS}\n")
    return OPENING + "".join(rows) + IN_PYTHON + "".join(parts)
