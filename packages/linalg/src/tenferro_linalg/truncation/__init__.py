"""Decompositions cut at a rank that is given, computed, or found by a tolerance."""
