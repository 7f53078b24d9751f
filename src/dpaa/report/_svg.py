"""A chart as SVG inside the page: ids of its own, no background, values of marks kept as hints for the pointer.

The SVG is parsed and written again, so that whatever text it holds stays text.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from markupsafe import Markup

from dpaa.report._drawing import Chart

SVG = "http://www.w3.org/2000/svg"
KEPT = frozenset({"svg", "g", "path", "line", "rect", "text", "tspan", "defs", "clipPath", "linearGradient", "stop"})
_LONG = re.compile(r"(\d+\.\d\d)\d+")


def inline_svg(chart: Chart, name: str, description: str) -> Markup:
    """Draw a chart for the page.

    Parameters
    ----------
    chart : chart of Altair
    name : prefix of the ids inside; unique on the page
    description : read out in place of the picture

    Returns
    -------
    the `svg` element
    """
    import vl_convert

    root = ElementTree.fromstring(vl_convert.vegalite_to_svg(chart.to_dict()))
    _clean(root, name)
    size = {key: root.attrib[key] for key in ("viewBox", "width", "height")}
    root.attrib = size | {"role": "img", "aria-label": description}
    ElementTree.register_namespace("", SVG)
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _clean(element: Element, name: str) -> None:
    """Keep what draws; prefix ids with the figure's name; turn spoken values of marks into `data-tip`."""
    for child in list(element):
        unseen = child.get("display") == "none" or child.get("d") == "" or _is_background(child)
        if unseen or child.tag.removeprefix(f"{{{SVG}}}") not in KEPT:
            element.remove(child)
        else:
            _clean(child, name)
    label, role = element.get("aria-label"), element.get("aria-roledescription") or ""
    for key in [key for key in element.attrib if key.startswith("aria-") or key in ("role", "class", "style")]:
        del element.attrib[key]
    if label and not {"axis", "legend", "title", "container"} & set(role.split()):
        element.set("data-tip", label)
    for key, value in element.attrib.items():
        if key == "id":
            element.set(key, f"{name}-{value}")
        elif "url(#" in value:
            element.set(key, value.replace("url(#", f"url(#{name}-"))
        elif key in ("d", "transform"):
            element.set(key, _LONG.sub(r"\1", value))


def _is_background(element: Element) -> bool:
    if element.get("class") == "background":
        return element.get("fill") is None and element.get("stroke") is None
    return element.tag == f"{{{SVG}}}rect" and element.get("fill") in ("white", "transparent")
