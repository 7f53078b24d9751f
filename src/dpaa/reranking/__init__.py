"""Scores of candidates become a list: what is changed between scoring and the cut at k."""
