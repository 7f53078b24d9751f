"""The parts of `scripts/frontier_study.py`: data, lists of every model and re-ranker, choices, pages."""
