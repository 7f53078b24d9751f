"""Find, measure and reduce popularity bias in recommenders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpaa.methods.registry import METHODS
from dpaa.plugins import on_first_use

__version__ = "0.1.0"

if TYPE_CHECKING:
    from dpaa.auditing import Audit as Audit
    from dpaa.auditing import audit as audit
    from dpaa.comparison import Comparison as Comparison
    from dpaa.comparison import compare as compare
    from dpaa.data.dataset import Dataset as Dataset
    from dpaa.data.dataset import read_dataset as read_dataset
    from dpaa.data.tables import to_pandas as to_pandas
    from dpaa.debiasing import backtest as backtest
    from dpaa.debiasing import debias as debias
    from dpaa.errors import InputError as InputError
    from dpaa.evaluation.evaluator import Evaluation as Evaluation
    from dpaa.exporting import export as export
    from dpaa.methods.als import ALS as ALS
    from dpaa.methods.apda import APDA as APDA
    from dpaa.methods.bc_loss import BCLoss as BCLoss
    from dpaa.methods.bsl import BSL as BSL
    from dpaa.methods.bspm import BSPM as BSPM
    from dpaa.methods.cause import CausE as CausE
    from dpaa.methods.cvib import CVIB as CVIB
    from dpaa.methods.dap import DAP as DAP
    from dpaa.methods.ddc import DDC as DDC
    from dpaa.methods.dice import DICE as DICE
    from dpaa.methods.directau import DirectAU as DirectAU
    from dpaa.methods.dpaa import DPAA as DPAA
    from dpaa.methods.dpaa import DPAAAsPrinted as DPAAAsPrinted
    from dpaa.methods.dpaa import DPAANormalised as DPAANormalised
    from dpaa.methods.ease import EASE as EASE
    from dpaa.methods.gf_cf import GFCF as GFCF
    from dpaa.methods.invcf import InvCF as InvCF
    from dpaa.methods.ipl import IPL as IPL
    from dpaa.methods.ips import IPS as IPS
    from dpaa.methods.ips_lae import IPSLAE as IPSLAE
    from dpaa.methods.item_knn import ItemKNN as ItemKNN
    from dpaa.methods.lightgcn import LightGCN as LightGCN
    from dpaa.methods.lightgcn_pp import LightGCNpp as LightGCNpp
    from dpaa.methods.macr import MACR as MACR
    from dpaa.methods.most_popular import MostPopular as MostPopular
    from dpaa.methods.navip import NAVIP as NAVIP
    from dpaa.methods.ncl import NCL as NCL
    from dpaa.methods.ngcf import NGCF as NGCF
    from dpaa.methods.paac import PAAC as PAAC
    from dpaa.methods.pd import PD as PD
    from dpaa.methods.pd import PDA as PDA
    from dpaa.methods.ppac import PPAC as PPAC
    from dpaa.methods.psl import PSL as PSL
    from dpaa.methods.reg import Reg as Reg
    from dpaa.methods.relmf import RelMF as RelMF
    from dpaa.methods.resn import ReSN as ReSN
    from dpaa.methods.sam_reg import SAMReg as SAMReg
    from dpaa.methods.sgl import SGL as SGL
    from dpaa.methods.simgcl import SimGCL as SimGCL
    from dpaa.methods.sl_at_k import SLAtK as SLAtK
    from dpaa.methods.ssm import SSM as SSM
    from dpaa.methods.svd_gcn import SVDGCN as SVDGCN
    from dpaa.methods.turbo_cf import TurboCF as TurboCF
    from dpaa.methods.ubpr import UBPR as UBPR
    from dpaa.methods.ultragcn import UltraGCN as UltraGCN
    from dpaa.methods.xsimgcl import XSimGCL as XSimGCL
    from dpaa.runs._foreign import given as given
    from dpaa.runs._foreign import rerank as rerank
    from dpaa.runs.fit import evaluate as evaluate
    from dpaa.runs.fit import fit as fit
    from dpaa.runs.model import Model as Model
    from dpaa.runs.model import load as load
    from dpaa.simulation import ClickModel as ClickModel
    from dpaa.simulation import Simulation as Simulation
    from dpaa.simulation import simulate as simulate

_MODULES = {
    "auditing": ("Audit", "audit"),
    "comparison": ("Comparison", "compare"),
    "data.dataset": ("Dataset", "read_dataset"),
    "data.tables": ("to_pandas",),
    "debiasing": ("backtest", "debias"),
    "errors": ("InputError",),
    "evaluation.evaluator": ("Evaluation",),
    "exporting": ("export",),
    "runs._foreign": ("given", "rerank"),
    "runs.fit": ("evaluate", "fit"),
    "runs.model": ("Model", "load"),
    "simulation": ("ClickModel", "Simulation", "simulate"),
}
_HOME = {name: f"dpaa.{module}" for module, names in _MODULES.items() for name in names}
"""Public name → module.  They are imported when first used, so that `dpaa --help` need not wait for torch."""
_CLASSES = {name: module for module, _, name in (address.partition(":") for address in METHODS.built_in.values())}
"""The same of methods, as in `dpaa.DPAA(layers=2).fit(data)`."""

__all__ = ["__version__", "METHODS", *_HOME, *_CLASSES]
__getattr__ = on_first_use("dpaa", _HOME | _CLASSES)


def __dir__() -> list[str]:
    return sorted(__all__)
