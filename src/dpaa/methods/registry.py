"""The only list of the methods' names; plug-ins add to it (`dpaa.plugins`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpaa.errors import InputError
from dpaa.plugins import Registry

if TYPE_CHECKING:  # they bring torch, which the list of names does without
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
        "most-popular": "dpaa.methods.references.most_popular:MostPopular",
        "item-knn": "dpaa.methods.references.item_knn:ItemKNN",
        "ease": "dpaa.methods.references.ease:EASE",
        "gf-cf": "dpaa.methods.references.gf_cf:GfCf",
        "svd-gcn": "dpaa.methods.references.svd_gcn:SvdGcn",
        "als": "dpaa.methods.references.als:ALS",
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
