"""The only list of the methods' names; plug-ins add to it (`dpaa.plugins`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpaa.errors import InputError
from dpaa.plugins import Registry, origin_of

if TYPE_CHECKING:
    from dpaa.methods.base import Method


METHODS: Registry[Method] = Registry(
    "method",
    "dpaa.methods",
    "dpaa.methods.base:Method",
    {
        "lightgcn": "dpaa.methods.lightgcn:LightGCN",
        "dpaa": "dpaa.methods.dpaa:DPAA",
        "dpaa-as-printed": "dpaa.methods.dpaa:DpaaAsPrinted",
        "apda": "dpaa.methods.apda:APDA",
        "navip": "dpaa.methods.navip:NAVIP",
        "dap": "dpaa.methods.dap:DAP",
        "ppac": "dpaa.methods.ppac:PPAC",
        "macr": "dpaa.methods.macr:MACR",
        "cvib": "dpaa.methods.cvib:CVIB",
        "ips": "dpaa.methods.ips:IPS",
        "sam-reg": "dpaa.methods.sam_reg:SamReg",
        "ssm": "dpaa.methods.ssm:SSM",
        "bc-loss": "dpaa.methods.bc_loss:BCLoss",
        "directau": "dpaa.methods.directau:DirectAU",
        "simgcl": "dpaa.methods.simgcl:SimGCL",
        "xsimgcl": "dpaa.methods.xsimgcl:XSimGCL",
        "sgl": "dpaa.methods.sgl:SGL",
        "ncl": "dpaa.methods.ncl:NCL",
        "gcf-logdet": "dpaa.methods.gcf_logdet:GcfLogdet",
        "reg": "dpaa.methods.reg:Reg",
        "ubpr": "dpaa.methods.ubpr:UBPR",
        "relmf": "dpaa.methods.relmf:RelMF",
        "pd": "dpaa.methods.pd:PD",
        "pda": "dpaa.methods.pd:PDA",
        "dice": "dpaa.methods.dice:DICE",
        "cause": "dpaa.methods.cause:CausE",
        "invcf": "dpaa.methods.invcf:InvCF",
        "als-reg": "dpaa.methods.als_reg:AlsReg",
        "ipl": "dpaa.methods.ipl:IPL",
        "resn": "dpaa.methods.resn:ReSN",
        "paac": "dpaa.methods.paac:PAAC",
        "popdcl": "dpaa.methods.popdcl:PopDCL",
        "dna": "dpaa.methods.dna:DNA",
        "ppd": "dpaa.methods.ppd:PPD",
        "ultragcn": "dpaa.methods.ultragcn:UltraGCN",
        "ngcf": "dpaa.methods.ngcf:NGCF",
        "most-popular": "dpaa.methods.most_popular:MostPopular",
        "item-knn": "dpaa.methods.item_knn:ItemKNN",
        "ease": "dpaa.methods.ease:EASE",
        "gf-cf": "dpaa.methods.gf_cf:GfCf",
        "svd-gcn": "dpaa.methods.svd_gcn:SvdGcn",
        "als": "dpaa.methods.als:ALS",
    },
)


def find_method(method: str | type[Method] | Method) -> type[Method]:
    """Find the class of a method.

    Parameters
    ----------
    method : a name, `package.module:Class`, a class, or a configured method

    Returns
    -------
    the class
    """
    if isinstance(method, str):
        return METHODS.find(method)
    kind: Any = method if isinstance(method, type) else type(method)
    if METHODS.accepts(kind):
        return METHODS.find(kind)
    raise InputError(f"{method!r} is neither the name nor the class of a method; known methods: {', '.join(METHODS)}")


def catalogue(name: str | None = None) -> dict[str, dict[str, Any]]:
    """Describe every method, or one, as plain data.

    Parameters
    ----------
    name : of one method; all by default

    Returns
    -------
    name → its title, paper and hyperparameters; a plug-in that cannot be imported has the reason as its title
    """
    if name is not None:
        kind = find_method(name)
        return {kind.name: described(kind)}
    entries: dict[str, dict[str, Any]] = {}
    for one in METHODS:
        try:
            entries[one] = described(METHODS[one])
        except InputError as error:
            entries[one] = {"name": one, "title": str(error), "paper": "", "settings": {}}
    return entries


def described(method: type[Method]) -> dict[str, Any]:
    """One method as plain data."""
    settings = {
        name: {"default": field.default, "meaning": " ".join((field.description or "").split())}
        for name, field in method.hyperparameters.model_fields.items()
    }
    origin = origin_of(method)
    package = (
        {} if origin["package"] == "dpaa" else {"package": f"{origin['package']} {origin['version'] or ''}".strip()}
    )
    return {"name": method.name, "title": method.title, "paper": method.paper, "settings": settings} | package
