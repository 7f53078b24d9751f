"""Trace of popularity in a run: message weights, contributions and DPAA's premise, by layer and popularity."""

from dpaa.trace._trace import RULE, Trace, trace_run

__all__ = ["RULE", "Trace", "trace_run"]
