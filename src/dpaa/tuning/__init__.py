"""Hyperparameters chosen on validation: `tune.tune` for one method, `benchmark.benchmark` for many."""
