"""Attacks on the command line: damaged files, kills, full disks.  `scripts/break_everything.py` runs them."""
