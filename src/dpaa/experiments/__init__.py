"""Walks the whole way: what to run, and how to show it.  Results are kept, one small file per training."""
