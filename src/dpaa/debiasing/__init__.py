"""Accuracy against popularity over several models and re-rankers: measured, chosen on validation, confirmed."""

from dpaa.debiasing._backtest import Backtest, backtest
from dpaa.debiasing._debias import PAGE, Debiased, OutOfReachError, debias
from dpaa.debiasing._models import default_methods

__all__ = ["PAGE", "Backtest", "Debiased", "OutOfReachError", "backtest", "debias", "default_methods"]
