"""Find, measure and remove popularity bias in graph recommenders."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from dpaa._frames import to_pandas
    from dpaa.auditing.audit import Audit, audit
    from dpaa.comparison.models import compare
    from dpaa.comparison.result import Comparison
    from dpaa.data.dataset import Dataset, read_dataset
    from dpaa.errors import InputError
    from dpaa.evaluation.evaluator import Evaluation
    from dpaa.exporting.folder import export
    from dpaa.frontier.debias import debias
    from dpaa.methods import METHODS
    from dpaa.methods.als_reg import AlsRegSettings as ALSReg
    from dpaa.methods.apda import ApdaSettings as APDA
    from dpaa.methods.bc_loss import BcLossSettings as BCLoss
    from dpaa.methods.cause import CauseSettings as CausE
    from dpaa.methods.cvib import CvibSettings as CVIB
    from dpaa.methods.dap import DapSettings as DAP
    from dpaa.methods.dice import DiceSettings as DICE
    from dpaa.methods.directau import DirectAUSettings as DirectAU
    from dpaa.methods.dna import DnaSettings as DNA
    from dpaa.methods.dpaa import DpaaAsPrintedSettings as DPAAAsPrinted
    from dpaa.methods.dpaa import DpaaSettings as DPAA
    from dpaa.methods.dpaa_auto import DpaaAutoSettings as DPAAAuto
    from dpaa.methods.dpaa_reading import DpaaReadingSettings as DPAAReading
    from dpaa.methods.gcf_logdet import GcfLogdetSettings as GCFLogdet
    from dpaa.methods.invcf import InvcfSettings as InvCF
    from dpaa.methods.ipl import IplSettings as IPL
    from dpaa.methods.ips import IpsSettings as IPS
    from dpaa.methods.lightgcn import LightGCNSettings as LightGCN
    from dpaa.methods.macr import MacrSettings as MACR
    from dpaa.methods.navip import NavipSettings as NAVIP
    from dpaa.methods.ncl import NclSettings as NCL
    from dpaa.methods.ngcf import NgcfSettings as NGCF
    from dpaa.methods.paac import PaacSettings as PAAC
    from dpaa.methods.pd import PdaSettings as PDA
    from dpaa.methods.pd import PdSettings as PD
    from dpaa.methods.popdcl import PopdclSettings as PopDCL
    from dpaa.methods.ppac import PpacSettings as PPAC
    from dpaa.methods.ppd import PpdSettings as PPD
    from dpaa.methods.ppd import remove_popularity
    from dpaa.methods.references.als import AlsSettings as ALS
    from dpaa.methods.references.ease import EaseSettings as EASE
    from dpaa.methods.references.gf_cf import GfCfSettings as GFCF
    from dpaa.methods.references.item_knn import ItemKnnSettings as ItemKNN
    from dpaa.methods.references.most_popular import MostPopularSettings as MostPopular
    from dpaa.methods.references.svd_gcn import SvdGcnSettings as SVDGCN
    from dpaa.methods.reg import RegSettings as Reg
    from dpaa.methods.relmf import RelmfSettings as RelMF
    from dpaa.methods.resn import ResnSettings as ReSN
    from dpaa.methods.sam_reg import SamRegSettings as SAMReg
    from dpaa.methods.sgl import SGLSettings as SGL
    from dpaa.methods.simgcl import SimGCLSettings as SimGCL
    from dpaa.methods.ssm import SsmSettings as SSM
    from dpaa.methods.ubpr import UbprSettings as UBPR
    from dpaa.methods.ultragcn import UltraGCNSettings as UltraGCN
    from dpaa.methods.xsimgcl import XSimGCLSettings as XSimGCL
    from dpaa.runs.fit import evaluate, fit
    from dpaa.runs.model import Model, load

_HOME = {
    "Audit": "dpaa.auditing.audit",
    "Comparison": "dpaa.comparison.result",
    "Dataset": "dpaa.data.dataset",
    "Evaluation": "dpaa.evaluation.evaluator",
    "InputError": "dpaa.errors",
    "METHODS": "dpaa.methods",
    "Model": "dpaa.runs.model",
    "audit": "dpaa.auditing.audit",
    "compare": "dpaa.comparison.models",
    "debias": "dpaa.frontier.debias",
    "evaluate": "dpaa.runs.fit",
    "export": "dpaa.exporting.folder",
    "fit": "dpaa.runs.fit",
    "load": "dpaa.runs.model",
    "read_dataset": "dpaa.data.dataset",
    "remove_popularity": "dpaa.methods.ppd",
    "to_pandas": "dpaa._frames",
}
"""Public name → module.  They are imported when first used, so that `dpaa --help` need not wait for torch."""
_METHODS = {
    "ALS": "als",
    "ALSReg": "als-reg",
    "APDA": "apda",
    "BCLoss": "bc-loss",
    "CVIB": "cvib",
    "CausE": "cause",
    "DAP": "dap",
    "DICE": "dice",
    "DNA": "dna",
    "DPAA": "dpaa",
    "DPAAAsPrinted": "dpaa-as-printed",
    "DPAAReading": "dpaa-reading",
    "DPAAAuto": "dpaa-auto",
    "DirectAU": "directau",
    "EASE": "ease",
    "GCFLogdet": "gcf-logdet",
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
    "PPD": "ppd",
    "PopDCL": "popdcl",
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
"""Public name → method: a class of settings, `dpaa.DPAA(layers=2)`, which `fit` takes and which has `.fit(data)`."""

__all__ = [
    "ALS",
    "APDA",
    "CVIB",
    "DAP",
    "DICE",
    "DNA",
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
    "PPD",
    "SGL",
    "SSM",
    "SVDGCN",
    "UBPR",
    "ALSReg",
    "Audit",
    "BCLoss",
    "CausE",
    "Comparison",
    "DPAAAsPrinted",
    "DPAAAuto",
    "DPAAReading",
    "Dataset",
    "DirectAU",
    "Evaluation",
    "GCFLogdet",
    "InputError",
    "InvCF",
    "ItemKNN",
    "LightGCN",
    "Model",
    "MostPopular",
    "PopDCL",
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
    "remove_popularity",
    "to_pandas",
]


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    if name in _METHODS:
        from dpaa.methods.registry import METHODS

        return METHODS[_METHODS[name]].settings_type
    if name not in _HOME:
        raise AttributeError(f"module 'dpaa' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
