"""A chart as SVG inside the page: one name space of ids, no background, values of marks kept as hints for the pointer.

The SVG is parsed and written anew, so whatever text it holds leaves it as text.
"""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from markupsafe import Markup

SVG = "http://www.w3.org/2000/svg"
KEPT = frozenset({"svg", "g", "path", "line", "rect", "text", "tspan", "defs", "clipPath", "linearGradient", "stop"})
_LONG = re.compile(r"(\d+\.\d\d)\d+")


def inline_svg(chart: Any, name: str, description: str, **attributes: str) -> Markup:
    """The chart drawn; `name` must differ from figure to figure, `description` is read out in its place."""
    import vl_convert

    root = ElementTree.fromstring(vl_convert.vegalite_to_svg(chart.to_dict()))
    _clean(root, name)
    root.attrib = {
        "viewBox": root.attrib["viewBox"],
        "width": root.attrib["width"],
        "height": root.attrib["height"],
        "role": "img",
        "aria-label": description,
    } | attributes
    ElementTree.register_namespace("", SVG)
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _clean(element: Element, name: str) -> None:
    """Keep what draws; ids get the figure's name in front, spoken values of marks become `data-tip`."""
    for child in list(element):
        kind = child.tag.removeprefix(f"{{{SVG}}}")
        if kind not in KEPT or child.get("display") == "none" or child.get("d") == "" or _is_ground(child):
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


def _is_ground(element: Element) -> bool:
    """The invisible frame of a group, or the sheet behind everything."""
    if element.get("class") == "background":
        return element.get("fill") is None and element.get("stroke") is None
    return element.tag == f"{{{SVG}}}rect" and element.get("fill") in ("white", "transparent")
