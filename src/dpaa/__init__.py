"""Find, measure and remove popularity bias in graph recommenders."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from dpaa._frames import to_pandas
    from dpaa.auditing import Audit, audit
    from dpaa.comparison import Comparison, compare
    from dpaa.data.dataset import Dataset, read_dataset
    from dpaa.debiasing import debias
    from dpaa.errors import InputError
    from dpaa.evaluation.evaluator import Evaluation
    from dpaa.exporting import export
    from dpaa.methods import METHODS
    from dpaa.methods.als import ALS as ALS
    from dpaa.methods.apda import APDA as APDA
    from dpaa.methods.bc_loss import BCLoss as BCLoss
    from dpaa.methods.cause import CausE as CausE
    from dpaa.methods.cvib import CVIB as CVIB
    from dpaa.methods.dap import DAP as DAP
    from dpaa.methods.dice import DICE as DICE
    from dpaa.methods.directau import DirectAU as DirectAU
    from dpaa.methods.dpaa import DPAA as DPAA
    from dpaa.methods.dpaa import DpaaAsPrinted as DPAAAsPrinted
    from dpaa.methods.ease import EASE as EASE
    from dpaa.methods.gf_cf import GfCf as GFCF
    from dpaa.methods.invcf import InvCF as InvCF
    from dpaa.methods.ipl import IPL as IPL
    from dpaa.methods.ips import IPS as IPS
    from dpaa.methods.item_knn import ItemKNN as ItemKNN
    from dpaa.methods.lightgcn import LightGCN as LightGCN
    from dpaa.methods.macr import MACR as MACR
    from dpaa.methods.most_popular import MostPopular as MostPopular
    from dpaa.methods.navip import NAVIP as NAVIP
    from dpaa.methods.ncl import NCL as NCL
    from dpaa.methods.ngcf import NGCF as NGCF
    from dpaa.methods.paac import PAAC as PAAC
    from dpaa.methods.pd import PD as PD
    from dpaa.methods.pd import PDA as PDA
    from dpaa.methods.ppac import PPAC as PPAC
    from dpaa.methods.reg import Reg as Reg
    from dpaa.methods.relmf import RelMF as RelMF
    from dpaa.methods.resn import ReSN as ReSN
    from dpaa.methods.sam_reg import SamReg as SAMReg
    from dpaa.methods.sgl import SGL as SGL
    from dpaa.methods.simgcl import SimGCL as SimGCL
    from dpaa.methods.ssm import SSM as SSM
    from dpaa.methods.svd_gcn import SvdGcn as SVDGCN
    from dpaa.methods.ubpr import UBPR as UBPR
    from dpaa.methods.ultragcn import UltraGCN as UltraGCN
    from dpaa.methods.xsimgcl import XSimGCL as XSimGCL
    from dpaa.runs.fit import evaluate, fit
    from dpaa.runs.model import Model, load

_HOME = {
    "Audit": "dpaa.auditing",
    "Comparison": "dpaa.comparison",
    "Dataset": "dpaa.data.dataset",
    "Evaluation": "dpaa.evaluation.evaluator",
    "InputError": "dpaa.errors",
    "METHODS": "dpaa.methods",
    "Model": "dpaa.runs.model",
    "audit": "dpaa.auditing",
    "compare": "dpaa.comparison",
    "debias": "dpaa.debiasing",
    "evaluate": "dpaa.runs.fit",
    "export": "dpaa.exporting",
    "fit": "dpaa.runs.fit",
    "load": "dpaa.runs.model",
    "read_dataset": "dpaa.data.dataset",
    "to_pandas": "dpaa._frames",
}
"""Public name → module.  They are imported when first used, so that `dpaa --help` need not wait for torch."""
_METHODS = {
    "ALS": "als",
    "APDA": "apda",
    "BCLoss": "bc-loss",
    "CVIB": "cvib",
    "CausE": "cause",
    "DAP": "dap",
    "DICE": "dice",
    "DPAA": "dpaa",
    "DPAAAsPrinted": "dpaa-as-printed",
    "DirectAU": "directau",
    "EASE": "ease",
    "GFCF": "gf-cf",
    "IPL": "ipl",
    "IPS": "ips",
    "InvCF": "invcf",
    "ItemKNN": "item-knn",
    "LightGCN": "lightgcn",
    "MACR": "macr",
    "MostPopular": "most-popular",
    "NAVIP": "navip",
    "NCL": "ncl",
    "NGCF": "ngcf",
    "PAAC": "paac",
    "PD": "pd",
    "PDA": "pda",
    "PPAC": "ppac",
    "ReSN": "resn",
    "Reg": "reg",
    "RelMF": "relmf",
    "SAMReg": "sam-reg",
    "SGL": "sgl",
    "SSM": "ssm",
    "SVDGCN": "svd-gcn",
    "SimGCL": "simgcl",
    "UBPR": "ubpr",
    "UltraGCN": "ultragcn",
    "XSimGCL": "xsimgcl",
}
"""Public name → method, as in `dpaa.DPAA(layers=2).fit(data)`."""

__all__ = [
    "ALS",
    "APDA",
    "CVIB",
    "DAP",
    "DICE",
    "DPAA",
    "EASE",
    "GFCF",
    "IPL",
    "IPS",
    "MACR",
    "METHODS",
    "NAVIP",
    "NCL",
    "NGCF",
    "PAAC",
    "PD",
    "PDA",
    "PPAC",
    "SGL",
    "SSM",
    "SVDGCN",
    "UBPR",
    "Audit",
    "BCLoss",
    "CausE",
    "Comparison",
    "DPAAAsPrinted",
    "Dataset",
    "DirectAU",
    "Evaluation",
    "InputError",
    "InvCF",
    "ItemKNN",
    "LightGCN",
    "Model",
    "MostPopular",
    "ReSN",
    "Reg",
    "RelMF",
    "SAMReg",
    "SimGCL",
    "UltraGCN",
    "XSimGCL",
    "__version__",
    "audit",
    "compare",
    "debias",
    "evaluate",
    "export",
    "fit",
    "load",
    "read_dataset",
    "to_pandas",
]


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    if name in _METHODS:
        from dpaa.methods.registry import METHODS

        return METHODS[_METHODS[name]]
    if name not in _HOME:
        raise AttributeError(f"module 'dpaa' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
