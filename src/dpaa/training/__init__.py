"""Method in, trained method out."""
