"""Sorting, searching and positions of extremes."""
