"""Log files become a dataset: positives, contiguous indices, splits."""
