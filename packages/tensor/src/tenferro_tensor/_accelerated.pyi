"""The compiled twin of the functions that run and record operations; absent from a pure wheel."""
