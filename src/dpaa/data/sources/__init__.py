"""Where datasets come from: one source, one file."""
