"""Settings chosen on validation: what may be tried, where trials are kept, and who trains them."""
