"""The study of all methods and re-rankers on the same data: trainings, pages, curves (`scripts/related_study.py`)."""
