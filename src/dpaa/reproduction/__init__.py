"""The paper's tables and figures from stored trainings: what to run, and how to show it."""
