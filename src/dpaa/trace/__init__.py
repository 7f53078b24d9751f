"""Where popularity enters a run: message weights, DPAA's premise and its lemmas, by layer and popularity."""

from __future__ import annotations

from dpaa.trace._arithmetic import RULE, Premise
from dpaa.trace._run import Trace, trace_run

__all__ = ["RULE", "Premise", "Trace", "trace_run"]
