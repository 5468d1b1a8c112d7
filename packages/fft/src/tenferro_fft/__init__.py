"""Differentiable Fourier transforms, n-dimensional and real forms included."""
