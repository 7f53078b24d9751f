"""The only list of the methods' names; plug-ins add to it (`dpaa.plugins`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpaa.errors import InputError
from dpaa.plugins import Registry

if TYPE_CHECKING:
    from dpaa.methods.base import Method


METHODS: Registry[Method] = Registry(
    "method",
    "dpaa.methods",
    "dpaa.methods.base:Method",
    {
        "lightgcn": "dpaa.methods.lightgcn:LightGCN",
        "dpaa": "dpaa.methods.dpaa:DPAA",
        "dpaa-as-printed": "dpaa.methods.dpaa:DPAAAsPrinted",
        "dpaa-normalised": "dpaa.methods.dpaa:DPAANormalised",
        "apda": "dpaa.methods.apda:APDA",
        "navip": "dpaa.methods.navip:NAVIP",
        "dap": "dpaa.methods.dap:DAP",
        "ppac": "dpaa.methods.ppac:PPAC",
        "macr": "dpaa.methods.macr:MACR",
        "cvib": "dpaa.methods.cvib:CVIB",
        "ips": "dpaa.methods.ips:IPS",
        "sam-reg": "dpaa.methods.sam_reg:SAMReg",
        "ssm": "dpaa.methods.ssm:SSM",
        "psl": "dpaa.methods.psl:PSL",
        "bsl": "dpaa.methods.bsl:BSL",
        "sl-at-k": "dpaa.methods.sl_at_k:SLAtK",
        "bc-loss": "dpaa.methods.bc_loss:BCLoss",
        "directau": "dpaa.methods.directau:DirectAU",
        "simgcl": "dpaa.methods.simgcl:SimGCL",
        "xsimgcl": "dpaa.methods.xsimgcl:XSimGCL",
        "sgl": "dpaa.methods.sgl:SGL",
        "ncl": "dpaa.methods.ncl:NCL",
        "reg": "dpaa.methods.reg:Reg",
        "ubpr": "dpaa.methods.ubpr:UBPR",
        "relmf": "dpaa.methods.relmf:RelMF",
        "pd": "dpaa.methods.pd:PD",
        "pda": "dpaa.methods.pd:PDA",
        "dice": "dpaa.methods.dice:DICE",
        "cause": "dpaa.methods.cause:CausE",
        "invcf": "dpaa.methods.invcf:InvCF",
        "ipl": "dpaa.methods.ipl:IPL",
        "resn": "dpaa.methods.resn:ReSN",
        "paac": "dpaa.methods.paac:PAAC",
        "ultragcn": "dpaa.methods.ultragcn:UltraGCN",
        "ngcf": "dpaa.methods.ngcf:NGCF",
        "lightgcn-pp": "dpaa.methods.lightgcn_pp:LightGCNpp",
        "ddc": "dpaa.methods.ddc:DDC",
        "most-popular": "dpaa.methods.most_popular:MostPopular",
        "item-knn": "dpaa.methods.item_knn:ItemKNN",
        "ease": "dpaa.methods.ease:EASE",
        "ips-lae": "dpaa.methods.ips_lae:IPSLAE",
        "gf-cf": "dpaa.methods.gf_cf:GFCF",
        "bspm": "dpaa.methods.bspm:BSPM",
        "turbo-cf": "dpaa.methods.turbo_cf:TurboCF",
        "svd-gcn": "dpaa.methods.svd_gcn:SVDGCN",
        "als": "dpaa.methods.als:ALS",
    },
    {"given-lists": "dpaa.methods.given:GivenLists", "given-vectors": "dpaa.methods.given:GivenVectors"},
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
    entries: dict[str, dict[str, Any]] = {}
    for method in METHODS if name is None else [find_method(name).name]:
        try:
            entries[method] = METHODS.describe(method)
        except InputError as error:
            entries[method] = {"name": method, "title": str(error), "paper": "", "settings": {}}
    return entries
