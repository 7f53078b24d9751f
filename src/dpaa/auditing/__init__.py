"""How biased a log is, and what any system's recommendations make of it."""

from dpaa.auditing._audit import SCHEMA_VERSION, Audit, audit, audit_schema
from dpaa.auditing._measures import Amplification, Drift, ItemShift, Skew, TasteShift, readable_times
from dpaa.auditing.checks import Check, CheckResult

__all__ = [
    "SCHEMA_VERSION",
    "Amplification",
    "Audit",
    "Check",
    "CheckResult",
    "Drift",
    "ItemShift",
    "Skew",
    "TasteShift",
    "audit",
    "audit_schema",
    "readable_times",
]
