"""Two methods and a re-ranker for dpaa."""
