"""Concrete tensors, the catalog of primitives, and the contract between them and a backend."""
