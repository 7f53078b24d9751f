"""Vectors for other systems: one index for every user and every κ of the popularity dial."""

from dpaa.exporting._export import check_export, export

__all__ = ["check_export", "export"]
