"""Policies of `checkpoint`: which values are kept for the backward pass, where all others are computed again.

A policy is a function of an operation, with its ``primitive`` and its metadata ``params``, to a boolean; one of your
own will do, too. It is asked once for each operation of the function, when that is traced. Values inside of loops and
branches belong to these: there, put the checkpoint around the body.
"""

from __future__ import annotations

from typing import Final

from tenferro_ad._saving import Policy, named
from tenferro_tensor import Op, catalog

__all__ = [
    "Policy",
    "save_all_names_but",
    "save_any",
    "save_dots",
    "save_dots_without_batch",
    "save_everything",
    "save_names",
    "save_nothing",
]

CONTRACTIONS: Final = frozenset({"contract", "contractions", "contract_slices"})
"""Names of primitives of families that are sums of products, as `dot_general` is."""


def save_nothing(op: Op) -> bool:
    """Keep the arguments alone, as without a policy."""
    return False


def save_everything(op: Op) -> bool:
    """Keep the results of all operations, so that none is repeated."""
    return True


def save_dots(op: Op) -> bool:
    """Keep the results of matrix products and other contractions."""
    return op.primitive is catalog.dot_general or (
        op.primitive.family is not None and op.primitive.name in CONTRACTIONS
    )


def save_dots_without_batch(op: Op) -> bool:
    """Keep the results of matrix products that have no batch axes."""
    return op.primitive is catalog.dot_general and not any(op.params["batch"])


def save_names(*names: str) -> Policy:
    """Keep the values that `checkpoint_name` has given one of these names."""
    return lambda op: op.primitive is named and op.params["name"] in names


def save_all_names_but(*names: str) -> Policy:
    """Keep the values that have a name, except for these names."""
    return lambda op: op.primitive is named and op.params["name"] not in names


def save_any(*policies: Policy) -> Policy:
    """Keep what one of several policies keeps."""
    return lambda op: any(policy(op) for policy in policies)
