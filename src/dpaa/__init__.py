"""Find, measure and remove popularity bias in graph recommenders."""

__version__ = "0.1.0"
