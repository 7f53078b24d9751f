"""Trained method in, numbers out."""
