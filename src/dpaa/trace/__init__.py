"""Where popularity enters a run, layer by layer."""
