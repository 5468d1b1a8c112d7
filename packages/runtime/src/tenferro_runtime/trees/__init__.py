"""Pytrees: arguments and results as trees of arrays, taken apart and put together again."""

from tenferro_runtime.trees._tree import LEAF, TreeDef, flatten, flatten_like, map_tree, parts_like, unflatten

__all__ = ["LEAF", "TreeDef", "flatten", "flatten_like", "map_tree", "parts_like", "unflatten"]
