"""Accuracy against popularity over several models and re-rankers: measured, chosen on validation, confirmed."""
