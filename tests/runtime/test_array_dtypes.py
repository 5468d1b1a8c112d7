"""The dtype of every function's result, for each of the 13 dtypes, is NumPy's; what differs on purpose is a table."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_tensor_core import DTYPES

pytestmark = pytest.mark.filterwarnings("ignore")

FORMS: dict[str, tuple[Callable[..., Any], ...]] = {
    "pad": (lambda m, x: m.pad(x, 1), lambda m, x: m.pad(x, ((1, 0), (0, 2)), constant_values=True)),
    "reshape": (lambda m, x: m.reshape(x, (4,)),),
    "broadcast_to": (lambda m, x: m.broadcast_to(x, (3, 2, 2)),),
    "broadcast_arrays": (lambda m, x: m.broadcast_arrays(x, m.asarray([1.5, 2.5]))[0],),
    "concat": (lambda m, x: m.concat([x, x]),),
    "stack": (lambda m, x: m.stack([x, x]),),
    "expand_dims": (lambda m, x: m.expand_dims(x, axis=0),),
    "take": (lambda m, x: m.take(x, m.asarray([0]), axis=0),),
    "take_along_axis": (lambda m, x: m.take_along_axis(x, m.argsort(x), -1),),
    "repeat": (lambda m, x: m.repeat(x, 2),),
    "tile": (lambda m, x: m.tile(x, (2, 2)),),
    "roll": (lambda m, x: m.roll(x, 1),),
    "squeeze": (lambda m, x: m.squeeze(x[:1], axis=0),),
    "moveaxis": (lambda m, x: m.moveaxis(x, 0, 1),),
    "permute_dims": (lambda m, x: m.permute_dims(x, (1, 0)),),
    "where": (
        lambda m, x: m.where(x == x, x, x),
        lambda m, x: m.where(x == x, x, 0),
        lambda m, x: m.where(x == x, True, x),
    ),
    "clip": (lambda m, x: m.clip(x, 0, 1),),
    "full_like": (lambda m, x: m.full_like(x, 1),),
    "diff": (lambda m, x: m.diff(x),),
    "searchsorted": (lambda m, x: m.searchsorted(x[0], x[0]),),
    "tensordot": (lambda m, x: m.tensordot(x, x, 1),),
    "meshgrid": (lambda m, x: m.meshgrid(x[0], x[0])[0],),
    "unstack": (lambda m, x: m.unstack(x)[0],),
}
"""Calls of functions whose arguments are no arrays alone."""

USUAL: tuple[Callable[..., Any], ...] = (
    lambda f, x: f(x),
    lambda f, x: f(x, x),
    lambda f, x: f(x, 1),
    lambda f, x: f(1, x),
    lambda f, x: f(x, True),
    lambda f, x: f(x, 1.5),
)

WIDER = {"float16": "float64", "float32": "float64"}
"""NumPy takes functions of small integers in small floats; here all integers become float64."""

ON_PURPOSE = {
    ("conj", "bool"): "booleans are their own conjugates; NumPy gives int8",
    ("conjugate", "bool"): "booleans are their own conjugates; NumPy gives int8",
    ("square", "bool"): "a product of booleans is boolean; NumPy gives int8",
    ("round", "bool"): "whole as they are; NumPy gives float16",
    ("around", "bool"): "whole as they are; NumPy gives float16",
    **{
        (n, d.name): "in floating point; NumPy keeps integers where the quantile is given as an integer"
        for n in ("quantile", "nanquantile")
        for d in DTYPES
        if d.kind in "biu"
    },
    **{
        ("sort_complex", d): "complex128 for all integers; NumPy gives complex64 for small ones"
        for d in ("int8", "int16", "uint8", "uint16")
    },
    **{
        (n, "float32"): "of the number 1, which is float64; NumPy takes the quantile's dtype, or writes to it"
        for n in ("quantile", "nanquantile", "nanpercentile", "spacing")
    },
    **{(n, d): "in the precision of the operand" for n in ("cov", "corrcoef") for d in ("float32", "complex64")},
    **{("reciprocal", d.name): "1 / x as the array API has it, in float64" for d in DTYPES if d.kind in "biu"},
}


def dtype_of(call: Callable[[], Any]) -> str | None:
    """The dtype of the first result, or None where the call is refused or gives no array."""
    try:
        found = call()
    except Exception:  # whether a call means something is no question here
        return None
    found = found[0] if isinstance(found, (tuple, list)) and len(found) else found
    found = found.data if hasattr(found, "spec") else found
    return found.dtype.name if hasattr(found, "dtype") and not isinstance(found, type) else None


def calls(name: str, x: Any) -> Iterator[tuple[str | None, str | None]]:
    for form in FORMS.get(name, ()):
        yield dtype_of(lambda form=form: form(np, x)), dtype_of(lambda form=form: form(tr, tr.asarray(x)))  # type: ignore[misc]
    if name not in FORMS:
        for form in USUAL:
            yield (
                dtype_of(lambda form=form: form(getattr(np, name), x)),  # type: ignore[misc]
                dtype_of(lambda form=form: form(getattr(tr, name), tr.asarray(x))),  # type: ignore[misc]
            )


NAMES = [n for n in dir(tr) if not n.startswith("_") and callable(getattr(tr, n)) and callable(getattr(np, n, None))]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
def test_results_have_the_dtypes_of_numpy(dtype: Any) -> None:
    x = np.array([[1, 0], [1, 1]]).astype(dtype)
    seen, wrong = 0, []
    for name in NAMES:
        for want, got in calls(name, x):
            if want is None or got is None:
                continue
            seen += 1
            allowed = {want, WIDER.get(want, want)} if dtype.kind in "biu" else {want}
            if got not in allowed and (name, dtype.name) not in ON_PURPOSE:
                wrong.append((name, want, got))
    assert not wrong
    assert seen > 150


def test_what_differs_on_purpose_differs() -> None:
    for name, dtype in ON_PURPOSE:
        if name in NAMES:
            found = list(calls(name, np.array([[1, 0], [1, 1]]).astype(dtype)))
            assert any(want != got for want, got in found if want and got), (name, dtype)


def test_pads_of_booleans_are_booleans() -> None:
    for axes in (1, ((1, 0),)):
        padded = tr.pad(tr.asarray([True, False]), axes)
        assert padded.dtype == tr.bool
        np.testing.assert_array_equal(padded.data, np.pad(np.array([True, False]), axes))
    np.testing.assert_array_equal(tr.pad(tr.asarray([False]), 1, constant_values=1).data, [True, False, True])
