"""Arguments and results as trees of arrays."""
