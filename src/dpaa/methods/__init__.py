"""Graph in, scores out: one small file per method, and the only list of their names."""

from __future__ import annotations

import difflib
from inspect import isabstract

from dpaa.errors import InputError
from dpaa.methods.apda import APDA
from dpaa.methods.base import Method
from dpaa.methods.cvib import CVIB
from dpaa.methods.dap import DAP
from dpaa.methods.dpaa import DPAA, DpaaAsPrinted
from dpaa.methods.dpaa_auto import DpaaAuto
from dpaa.methods.ips import IPS
from dpaa.methods.lightgcn import LightGCN
from dpaa.methods.macr import MACR
from dpaa.methods.navip import NAVIP
from dpaa.methods.ppac import PPAC
from dpaa.methods.references.als import ALS
from dpaa.methods.references.ease import EASE
from dpaa.methods.references.item_knn import ItemKNN
from dpaa.methods.references.most_popular import MostPopular
from dpaa.methods.sam_reg import SamReg

_BACKBONE: tuple[type[Method], ...] = (
    LightGCN,
    DPAA,
    DpaaAsPrinted,
    DpaaAuto,
    APDA,
    NAVIP,
    DAP,
    PPAC,
    MACR,
    CVIB,
    IPS,
    SamReg,
)
_REFERENCES: tuple[type[Method], ...] = (MostPopular, ItemKNN, EASE, ALS)

METHODS: dict[str, type[Method]] = {method.name: method for method in (*_BACKBONE, *_REFERENCES)}


def find_method(name: str | type[Method]) -> type[Method]:
    """The method of this name, where underscores are as good as hyphens; a class of one is the method itself."""
    if isinstance(name, type) and issubclass(name, Method) and not isabstract(name) and hasattr(name, "name"):
        return name
    if not isinstance(name, str):
        raise InputError(f"{name!r} is neither the name nor the class of a method; known methods: {', '.join(METHODS)}")
    wanted = name.strip().lower().replace("_", "-")
    if wanted not in METHODS:
        close = difflib.get_close_matches(wanted, METHODS, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise InputError(f"there is no method {name!r}; {hint}known methods: {', '.join(METHODS)}")
    return METHODS[wanted]


__all__ = ["DPAA", "METHODS", "DpaaAsPrinted", "LightGCN", "Method", "MostPopular", "find_method"]
