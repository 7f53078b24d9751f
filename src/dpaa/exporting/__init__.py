"""Vectors for other systems: one index for every user and every κ of the popularity dial."""
