"""Policies of `checkpoint`: select the values to save for the backward pass, which recomputes all others.

A policy is any function of an operation, with its ``primitive`` and its metadata ``params``, that returns a boolean.
It is called once for each operation of the function, while that is traced. It does not see operations inside loops and
branches; to apply a policy there, put the checkpoint around the body.
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


def __dir__() -> list[str]:
    return __all__.copy()


CONTRACTIONS: Final = frozenset({"contract", "contractions", "contract_slices"})
"""Names of the families' primitives that are contractions, like `dot_general`."""


def save_nothing(op: Op) -> bool:
    """Save only the arguments, as without a policy.

    Args:
        op: the operation.

    Returns:
        Always ``False``.

    >>> from tenferro_ad import checkpoint, checkpoint_policies, grad
    >>> grad(checkpoint(lambda x: x * x, policy=checkpoint_policies.save_nothing))(3.0)
    Tensor(6.)
    """
    return False


def save_everything(op: Op) -> bool:
    """Save the results of all operations, so that none is recomputed.

    Args:
        op: the operation.

    Returns:
        Always ``True``.

    >>> from tenferro_ad import checkpoint, checkpoint_policies, grad
    >>> grad(checkpoint(lambda x: x * x, policy=checkpoint_policies.save_everything))(3.0)
    Tensor(6.)
    """
    return True


def save_dots(op: Op) -> bool:
    """Save the results of matrix products and other contractions.

    Args:
        op: the operation.

    Returns:
        Whether the operation is a contraction.

    >>> from tenferro_ad import checkpoint, checkpoint_policies, grad
    >>> grad(checkpoint(lambda x: tr.sum(x @ x), policy=checkpoint_policies.save_dots))(tr.eye(2))
    Tensor([[2., 2.],
            [2., 2.]])
    """
    return op.primitive is catalog.dot_general or (
        op.primitive.family is not None and op.primitive.name in CONTRACTIONS
    )


def save_dots_without_batch(op: Op) -> bool:
    """Save the results of matrix products without batch axes.

    Args:
        op: the operation.

    Returns:
        Whether the operation is a matrix product without batch axes.

    >>> from tenferro_ad import checkpoint, checkpoint_policies, grad
    >>> grad(checkpoint(lambda x: tr.sum(x @ x), policy=checkpoint_policies.save_dots_without_batch))(tr.eye(2))
    Tensor([[2., 2.],
            [2., 2.]])
    """
    return op.primitive is catalog.dot_general and not any(op.params["batch"])


def save_names(*names: str) -> Policy:
    """Save the values that `checkpoint_name` has given one of these names.

    Args:
        names: the names.

    Returns:
        A policy.

    >>> from tenferro_ad import checkpoint, checkpoint_name, checkpoint_policies, grad
    >>> f = lambda x: checkpoint_name(tr.exp(x), "e") ** 2
    >>> grad(checkpoint(f, policy=checkpoint_policies.save_names("e")))(0.0)
    Tensor(2.)
    """
    return lambda op: op.primitive is named and op.params["name"] in names


def save_all_names_but(*names: str) -> Policy:
    """Save all values named by `checkpoint_name`, except those with one of these names.

    Args:
        names: the names.

    Returns:
        A policy.

    >>> from tenferro_ad import checkpoint, checkpoint_name, checkpoint_policies, grad
    >>> f = lambda x: checkpoint_name(tr.exp(x), "e") ** 2
    >>> grad(checkpoint(f, policy=checkpoint_policies.save_all_names_but("other")))(0.0)
    Tensor(2.)
    """
    return lambda op: op.primitive is named and op.params["name"] not in names


def save_any(*policies: Policy) -> Policy:
    """Save the values that any of several policies saves.

    Args:
        policies: the policies.

    Returns:
        A policy.

    >>> from tenferro_ad import checkpoint, checkpoint_policies, grad
    >>> policy = checkpoint_policies.save_any(checkpoint_policies.save_dots, checkpoint_policies.save_names("e"))
    >>> grad(checkpoint(lambda x: x * x, policy=policy))(3.0)
    Tensor(6.)
    """
    return lambda op: any(policy(op) for policy in policies)
