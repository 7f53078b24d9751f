"""Notebooks of docs/notebooks: run their cells and write what they show, without Jupyter; and as pages of the site.

python -m scripts.notebooks                      # runs them all in temporary folders, and writes their outputs
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import re
import tempfile
import textwrap
import zlib
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"


def shown(value: Any) -> dict[str, str]:
    """What Jupyter would show of a value, by type of content: a chart as a picture, a table as HTML."""
    if type(value).__module__.startswith("altair"):
        value.save(picture := io.BytesIO(), format="png", ppi=110)
        png = picture.getvalue()
        place = png.index(b"IDAT")
        end = place + 4 + int.from_bytes(png[place - 4 : place])
        data = b"IDAT" + zlib.compress(zlib.decompress(png[place + 4 : end]), 9)  # a third of the size
        packed = (len(data) - 4).to_bytes(4) + data + zlib.crc32(data).to_bytes(4)
        return {
            "image/png": base64.b64encode(png[: place - 4] + packed + png[end + 4 :]).decode(),
            "text/plain": "chart",
        }
    table = {"text/html": value._repr_html_()} if hasattr(value, "_repr_html_") else {}
    return table | {"text/plain": repr(value)}


def run(cells: list[dict[str, Any]]) -> None:
    """Execute code cells in order, in the current folder, and put their outputs into them."""
    names: dict[str, Any] = {"__name__": "notebook"}
    for number, cell in enumerate((cell for cell in cells if cell["cell_type"] == "code"), 1):
        tree, said, last, cell["outputs"] = ast.parse("".join(cell["source"])), io.StringIO(), None, []
        if isinstance(tree.body[-1], ast.Expr):
            last = compile(ast.Expression(tree.body.pop().value), f"cell {number}", "eval")
        with contextlib.redirect_stdout(said):
            exec(compile(tree, f"cell {number}", "exec"), names)
            value = eval(last, names) if last else None
        if said.getvalue():
            cell["outputs"].append({"output_type": "stream", "name": "stdout", "text": said.getvalue()})
        if value is not None:
            about = {"execution_count": number, "metadata": {}, "data": shown(value)}
            cell["outputs"].append({"output_type": "execute_result"} | about)
        cell["execution_count"] = number


def page(notebook: Path) -> str:
    """The notebook as Markdown: texts, code, and what it showed."""
    parts = []
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            data = output.get("data") or {"text/plain": output["text"]}
            if "image/png" in data:
                parts.append(
                    f'<img alt="The chart that the cell draws" src="data:image/png;base64,{data["image/png"]}">'
                )
            elif "text/html" in data:
                parts.append(
                    re.sub(
                        r"<style>.*?</style>|\n\s*| border=\"1\" class=\"dataframe\"",
                        "",
                        data["text/html"],
                        flags=re.DOTALL,
                    )
                )
            else:
                lines = [textwrap.fill(line, 88, subsequent_indent="  ") for line in data["text/plain"].splitlines()]
                parts.append("```text\n" + "\n".join(lines) + "\n```")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    for file in sorted(FOLDER.glob("*.ipynb")):
        notebook = json.loads(file.read_text(encoding="utf-8"))
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            run(notebook["cells"])
        file.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
