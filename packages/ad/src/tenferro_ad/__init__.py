"""Automatic differentiation: eager tensors, transforms and the rules of the core primitives."""
