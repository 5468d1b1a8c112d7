"""Differentiable linear algebra with leading batch axes."""
