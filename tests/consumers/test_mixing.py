"""Tensors beside arrays of other libraries: what converts, what the other library takes, and what is refused."""

import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_tensor_core import ArgumentError, DTypeError, ForeignFunctionError, HostAdapterError

V = [1.0, 2.0, 3.0]
OTHERS: dict[str, Callable[[], Any]] = {
    "number": lambda: 2.0,
    "NumPy": lambda: np.asarray(V),
    "masked": lambda: np.ma.masked_array(np.asarray(V), [False, True, False]),
    "list": lambda: V,
    "JAX": lambda: import_module("jax.numpy").asarray(V),
    "PyTorch": lambda: import_module("torch").asarray(V),
    "pandas": lambda: import_module("pandas").Series(V),
    "xarray": lambda: import_module("xarray").DataArray(V),
    "dask": lambda: import_module("dask.array").asarray(V),
    "sparse": lambda: import_module("scipy.sparse").csr_array([V]),
}
FORMS: dict[str, Callable[[Any, Any], Any]] = {
    "x + y": lambda x, y: x + y,
    "y + x": lambda x, y: y + x,
    "np.add": lambda x, y: np.add(x, y),
    "tr.add": lambda x, y: tr.add(x, y),
    "tr.asarray": lambda x, y: tr.asarray(y),
    "x[:] = y": lambda x, y: x.__setitem__(slice(None), y) or x,
}
NOT_IMPLICIT = (ForeignFunctionError, "nothing is converted between libraries implicitly.*write tr.asarray")
A_LIST = (ForeignFunctionError, r"make it a tensor first, as in x \+ tr.asarray")
MASKED = (HostAdapterError, r"cannot carry the mask of a masked array; fill it with a.filled\(value\)")
SPARSE = (ForeignFunctionError, r"write tr.linalg.sparse_array\(...\).* or tr.asarray\(s.toarray\(\)\)")
REFUSED = (TypeError, "unsupported operand|returned NotImplemented")  # by both, da.from_array(x, asarray=False) is not
NO_NUMBERS = (DTypeError, "element type 'object' is not supported")


def _neither(name: str) -> Any:
    return ArgumentError, f"operand 1 is a {name}, neither a tensor.* nor a number; make it one with asarray"


T = "tenferro_tensor"
TABLE: dict[str, tuple[Any, ...]] = {
    #           x + y         y + x         np.add        tr.add                          tr.asarray  x[:] = y
    "number":  (T,            T,            T,            T,                              T,          T),
    "NumPy":   (T,            T,            T,            T,                              T,          T),
    "masked":  (MASKED,       "numpy",      MASKED,       MASKED,                         MASKED,     T),
    "list":    (A_LIST,       A_LIST,       T,            _neither("list"),               T,          T),
    "JAX":     (NOT_IMPLICIT, NOT_IMPLICIT, NOT_IMPLICIT, _neither("jaxlib.ArrayImpl"),   T,          T),
    "PyTorch": (NOT_IMPLICIT, NOT_IMPLICIT, NOT_IMPLICIT, _neither("torch.Tensor"),       T,          T),
    "pandas":  ("pandas",     "pandas",     "pandas",     _neither("pandas.Series"),      T,          T),
    "xarray":  ("xarray",     "xarray",     "xarray",     _neither("xarray.DataArray"),   T,          T),
    "dask":    (REFUSED,      REFUSED,      REFUSED,      _neither("dask.Array"),         T,          T),
    "sparse":  (SPARSE,       SPARSE,       SPARSE,       _neither("scipy.csr_array"),    NO_NUMBERS, NO_NUMBERS),
}  # fmt: skip
"""For each library and form the package of the result's class, or the error and what it says."""


def _cases() -> Iterator[Any]:
    for name, cells in TABLE.items():
        for form, cell in zip(FORMS, cells, strict=True):
            yield pytest.param(name, form, cell, id=f"{name}, {form}")


@pytest.mark.parametrize(("name", "form", "cell"), list(_cases()))
def test_mixtures(name: str, form: str, cell: Any) -> None:
    try:
        other = OTHERS[name]()
    except ModuleNotFoundError:
        pytest.skip(f"{name} is not installed")
    x = tr.asarray([10.0, 20.0, 30.0])
    if isinstance(cell, str):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # NumPy's, about the mask that an assignment leaves out
            found = FORMS[form](x, other)
        assert type(found).__module__.partition(".")[0] == cell
        if name == "NumPy":
            wanted = FORMS[form](np.asarray([10.0, 20.0, 30.0]), other) if "tr." not in form else None
            assert wanted is None or np.array_equal(np.asarray(found), wanted)
        return
    error, text = cell
    with pytest.raises(error, match=text):
        FORMS[form](x, other)


def test_sparse_products_are_those_of_scipy() -> None:
    s = OTHERS["sparse"]()
    np.testing.assert_array_equal(s @ tr.asarray(V), [14.0])
    np.testing.assert_array_equal(np.asarray(tr.linalg.sparse_array(s) @ tr.asarray(V)), [14.0])
