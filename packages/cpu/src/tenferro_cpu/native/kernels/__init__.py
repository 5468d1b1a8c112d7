"""Fused element-wise kernels and reductions: rendering, planning for layouts, running."""
