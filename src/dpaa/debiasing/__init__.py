"""Accuracy against popularity over several models and re-rankers: measured, chosen on validation, confirmed."""

from dpaa.debiasing._debias import PAGE, OutOfReachError, debias
from dpaa.debiasing._frontier import KIND, Debiased, times
from dpaa.debiasing._models import default_methods
from dpaa.debiasing.choice import percent

__all__ = ["KIND", "PAGE", "Debiased", "OutOfReachError", "debias", "default_methods", "percent", "times"]
