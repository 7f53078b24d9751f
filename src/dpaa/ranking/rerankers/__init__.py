"""Re-rankers, one module each."""
