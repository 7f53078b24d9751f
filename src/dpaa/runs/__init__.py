"""A run: a method fitted to a dataset, its folder, and the recommendations it gives."""
