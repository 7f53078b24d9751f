"""How biased a log is, and what anybody's recommendations make of it."""
