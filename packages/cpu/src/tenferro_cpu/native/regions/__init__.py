"""Fused regions of programs: step by step in blocks at first, then one kernel."""
