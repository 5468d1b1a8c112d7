"""Types of a module as specs, and constants as arrays."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from tenferro_runtime.extension import Spec, UnsupportedError
from tenferro_tensor_core import bool_, complex64, complex128, dtype
from tenferro_xla.importing._values import Splat

_ELEMENTS: Final = {
    "i1": bool_, "f16": dtype("float16"), "bf16": dtype("bfloat16"), "f32": dtype("float32"), "f64": dtype("float64"),
    "complex<f32>": complex64, "complex<f64>": complex128,
    **{f"i{n}": dtype(f"int{n}") for n in (8, 16, 32, 64)},
    **{f"ui{n}": dtype(f"uint{n}") for n in (8, 16, 32, 64)},
}  # fmt: skip


def spec_of(type_: Any) -> Spec:
    """Return the spec of a type.

    Raises:
        UnsupportedError: it is not a tensor type, its dtype is not supported, or a size is dynamic.
    """
    element = getattr(type_, "element_type", None)
    found = _ELEMENTS.get(str(element))
    if found is None:
        raise UnsupportedError(
            f"the module has values of type {type_}, which tenferro does not support; convert them to one of "
            f"{', '.join(_ELEMENTS)} before exporting",
            type=str(type_),
        )
    if not type_.has_static_shape:
        raise UnsupportedError(
            f"the module has values of type {type_} with dynamic sizes; export the function for fixed sizes",
            type=str(type_),
        )
    return Spec(tuple(type_.shape), found)


def constant_of(op: Any) -> Any:
    """Return the elements of a ``constant`` as an array or a `Splat`."""
    spec = spec_of(op.results[0].type)
    found = _elements(op, spec)
    if found.size == 1 or (spec.size != 0 and found.shape == ()):
        return Splat(found.reshape(()), spec)
    return found.reshape(spec.shape)


def _elements(op: Any, spec: Spec) -> np.ndarray[Any, Any]:
    """Return all elements, or one if all are equal."""
    try:
        attribute = op.attributes["value"]
        if spec.size == 0:
            return np.empty(spec.shape, spec.dtype)
        if not attribute.is_splat:
            return np.array(attribute, spec.dtype)
        return np.asarray(attribute.get_splat_value().value, spec.dtype)
    except (TypeError, AttributeError):  # complex numbers and narrow floats have no buffer
        return _from_text(str(op), spec)


_DENSE: Final = re.compile(r"dense<(.*)> : tensor<[^:]*$", re.DOTALL)
_COMPLEX: Final = re.compile(r"\(\s*([^\s,()]+)\s*,\s*([^\s,()]+)\s*\)")


def _from_text(text: str, spec: Spec) -> np.ndarray[Any, Any]:
    """Parse the text of the operation: hexadecimal bytes, or nested lists of numbers."""
    found = _DENSE.search(text.strip())
    if found is None or "dense_resource" in text:
        raise UnsupportedError(
            f"the elements of {text:.80} are not in the module; print it with its constants", operation=text[:80]
        )
    body = found.group(1)
    if body.startswith('"0x'):
        return np.frombuffer(bytes.fromhex(body[3:-1]), spec.dtype.newbyteorder("<")).astype(spec.dtype)
    if spec.size == 0:
        return np.empty(spec.shape, spec.dtype)
    elements = list(_numbers(body, spec))
    return np.array(elements if len(elements) > 1 else elements[0], spec.dtype)


def _numbers(body: str, spec: Spec) -> Iterator[Any]:
    if spec.cplx:
        part = np.dtype(f"f{spec.dtype.itemsize // 2}")
        for re_, im in _COMPLEX.findall(body):
            yield complex(_real(re_, part), _real(im, part))
        return
    for word in re.findall(r"[^\s,\[\]]+", body):
        yield {"true": True, "false": False}[word] if spec.dtype == bool_ else _real(word, spec.dtype)


def _real(word: str, kind: np.dtype[Any]) -> Any:
    """Parse a number; NaN and infinities are written as their bits."""
    if not word.startswith("0x"):
        return float(word) if kind not in _INTEGERS else int(word)
    bits = int(word, 16).to_bytes(kind.itemsize, "little")
    return np.frombuffer(bits, kind.newbyteorder("<")).astype(kind)[0]


_INTEGERS: Final = frozenset(dtype(f"{sign}int{n}") for sign in ("", "u") for n in (8, 16, 32, 64))
