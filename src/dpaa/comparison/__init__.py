"""Whether a difference between recommenders is more than chance."""
