"""A result is an object of its own, also where it equals the operand: assigning to it leaves the operand."""

import warnings
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import variable
from tenferro_runtime.trees import flatten

SAME = {"array", "asarray", "from_dlpack"}
"""Return what they are given, as NumPy's do where nothing is to be copied."""

NO_ARRAYS = {"broadcast_shapes", "debug_callback", "debug_print", "show_config", "show_ir"}
ARGUMENTS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((), {}), ((0,), {}), ((None,), {}), (((),), {}), (([],), {}), ((0, 0), {}), ((1, 3), {}), (((1, 3),), {}),
    (((3,),), {}), ((range(2),), {}), ((range(1),), {}), (("float64",), {}), ((), {"axis": ()}), ((), {"axis": None}),
    ((), {"axis": 0}), ((), {"copy": True}),
]  # fmt: skip
NAMES = [n for n in tr.__all__ if n not in SAME | NO_ARRAYS and not n.startswith("tree_")]


def returned_itself(call, x) -> bool:
    """Whether the operand is among the results of any call that is one."""
    for args, options in ARGUMENTS:
        try:
            out = call(*args, **options)
        except Exception:
            continue
        if any(leaf is x for leaf in flatten(out)[0]):
            return True
    return False


@pytest.mark.parametrize("x", [tr.ones(3), tr.ones((1, 3)), variable(tr.ones((1, 3)))], ids=["vector", "matrix", "AD"])
def test_results_are_objects_of_their_own(x):
    found = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name in NAMES:
            f = getattr(tr, name)
            if not callable(f) or isinstance(f, type):
                continue
            calls = [lambda *a, f=f, **k: f(x, *a, **k), lambda *a, f=f, **k: f([x], *a, **k)]
            if any(returned_itself(call, x) for call in calls):
                found.append(name)
        for name in [n for n in dir(x) if not n.startswith("_") or n in ("__pos__", "__copy__", "__round__")]:
            try:
                member = getattr(x, name)
            except Exception:  # the transpose of a vector
                continue
            if member is x or (callable(member) and returned_itself(member, x)):
                found.append(f"x.{name}")
        for key in (Ellipsis, slice(None), (), (Ellipsis,), (slice(None), Ellipsis)):
            if x[key] is x:
                found.append(f"x[{key}]")
    assert not found, "assigning to these results would change the operand"
