"""Popularity bias of a log, and of any system's recommendations relative to it."""

from dpaa.auditing._audit import Audit, Check, CheckResult, audit
from dpaa.auditing._measures import Amplification, Drift, Skew, readable_times

__all__ = ["Amplification", "Audit", "Check", "CheckResult", "Drift", "Skew", "audit", "readable_times"]
