"""A method and a re-ranker for dpaa."""
