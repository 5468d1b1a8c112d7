"""Pytrees: flattening and unflattening of arguments and results that are trees of arrays."""

from tenferro_runtime.trees._tree import LEAF, TreeDef, flatten, flatten_like, map_tree, parts_like, unflatten

__all__ = ["LEAF", "TreeDef", "flatten", "flatten_like", "map_tree", "parts_like", "unflatten"]


def __dir__() -> list[str]:
    return __all__.copy()
