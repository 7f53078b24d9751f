"""How biased a log is, and what any system's recommendations make of it."""

from dpaa.auditing._audit import Audit, Check, CheckResult, audit
from dpaa.auditing._measures import Amplification, Drift, Skew, readable_times

__all__ = ["Amplification", "Audit", "Check", "CheckResult", "Drift", "Skew", "audit", "readable_times"]
