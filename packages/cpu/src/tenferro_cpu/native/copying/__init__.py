"""Copies and permutations of any rank."""
