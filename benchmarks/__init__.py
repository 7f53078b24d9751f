"""Ratios within one run: equality is shown before anything is timed."""
