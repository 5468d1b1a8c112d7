"""Decompositions truncated at a rank that is given, computed, or determined by a tolerance."""
