"""The feedback loop: recommend, click, refit, round after round; and the size of an online test."""

from dpaa.simulation._loop import BOUNDS, ClickModel, Simulation, simulate
from dpaa.simulation._online import PLANNED, Plan, plan

__all__ = ["BOUNDS", "PLANNED", "ClickModel", "Plan", "Simulation", "plan", "simulate"]
