"""The base of `EagerTensor` and `Dual`: an inner value, a level, and no silent loss of derivatives.

Export to NumPy arrays, DLPack capsules and pickles raises, except to plotting packages while no function is being
differentiated. Conversion to a Python float or integer (also inside ``math.sin``) raises while the function that it
would cut is running; afterwards, and for variables, it is allowed. Truth values, text and ``complex(x)`` are always
allowed, so ``complex(x)`` inspects a number while the function runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final, NoReturn

import numpy as np

from tenferro_ad import _modes
from tenferro_runtime.ir import here
from tenferro_runtime.tracing import copied_into_stage, require_own_stage
from tenferro_tensor import SCALARS, Array, Spec
from tenferro_tensor.calls import state
from tenferro_tensor_core import DimLike, GradientError

PLOTTING_PACKAGES: Final = frozenset({"matplotlib", "mpl_toolkits"})
"""Packages that only display elements, as printing does, and return no arrays."""

_running: Final[set[int]] = set()
"""Levels of the functions that are being differentiated, in any thread."""


def split(operands: tuple[Any, ...], kind: Any, level: int) -> tuple[int, tuple[Any, ...], list[Any], list[Any]]:
    """Split operands into the parts of an entry's key, inner values and differentiated operands.

    Args:
        operands: the operands of an op.
        kind: the class of the differentiated ones.
        level: their level.

    Returns:
        A bit mask of the differentiated operands; the spec of each operand, or the class of a Python scalar; the
        operands with differentiated ones replaced by their inner values; and the differentiated operands.
    """
    mask, bit = 0, 1
    parts: list[Any] = []
    lower: list[Any] = []
    own: list[Any] = []
    for a in operands:
        if a.__class__ is kind and a.level == level:
            mask |= bit
            own.append(a)
            parts.append(a.spec)
            lower.append(a.value)
        else:
            parts.append(a.__class__ if a.__class__ in SCALARS else a.spec)
            lower.append(a)
        bit += bit
    return mask, tuple(parts), lower, own


def running(level: int, f: Callable[..., Any], *args: Any) -> Any:
    """Call ``f(*args)``; meanwhile, values of this level refuse conversion to Python numbers."""
    _running.add(level)
    try:
        return f(*args)
    finally:
        _running.discard(level)


class Differentiated(Array):
    """A value that carries a derivative.

    Attributes:
        value: the inner value, of a lower level.
        spec: its spec.
        level: level of the differentiation that it belongs to.
    """

    __slots__ = ()
    value: Any
    spec: Spec
    level: int

    def _copied(self) -> Any:
        return copied_into_stage(self, self._apart)

    def _apart(self) -> Any:
        """The same value and derivative, with an inner value in its own memory."""
        return self._alias()

    def _go_over(self, updated: Any) -> None:
        require_own_stage(self, updated)
        super()._go_over(updated)

    def _as_extent(self, most: DimLike | None) -> DimLike:
        return self.value._as_extent(most)  # type: ignore[no-any-return]

    def _concrete(self) -> np.ndarray[Any, Any]:
        return self.value._concrete()  # type: ignore[no-any-return]

    @property
    def requires_grad(self) -> bool:
        """Always true: a constant is never wrapped."""
        return True

    def detach(self) -> Any:
        """The inner value: the same data, as a constant of the differentiation.

        Returns:
            An array with the shape and dtype of this one.
        """
        return self.value._alias()

    def _export(self, what: str) -> NoReturn:
        name = type(self).__name__
        raise GradientError(
            f"{what} of {'an' if name[0] in 'AEIOU' else 'a'} {name} {self.spec!r}{here()} would silently cut off its "
            "derivative; compute with tenferro's functions (tr.sin for math.sin), or use "
            ".detach() first if a constant is meant (tr.stop_gradient(x) where derivatives are nested)",
            spec=repr(self.spec),
        )

    def _look(self, what: str) -> None:
        """Refuse a conversion while the value's function is being differentiated."""
        if self.level in _running and not (state.recording_scopes and _modes.silent(self.level)):
            self._export(what)

    def __float__(self) -> float:
        found = float(self.value)
        self._look("float()")
        return found

    def __complex__(self) -> complex:
        return complex(self.value)

    def __int__(self) -> int:
        found = int(self.value)
        self._look("int()")
        return found

    def item(self) -> Any:
        """The only element as a Python scalar.

        Raises:
            GradientError: the function of this value is being differentiated; detach the value first.
        """
        found = self.value.item()
        self._look("item()")
        return found

    def tolist(self) -> Any:
        """The elements as nested lists of Python scalars.

        Raises:
            GradientError: the function of this value is being differentiated; detach the value first.
        """
        found = self.value.tolist()
        self._look("tolist()")
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if not self._is_looked_at():
            self._export("a NumPy array")
        self._look("a NumPy array")
        return np.array(self.value, dtype=dtype, copy=copy)

    def _is_looked_at(self) -> bool:
        frame: Any = sys._getframe(1)
        while frame is not None:
            package = frame.f_globals.get("__name__", "").partition(".")[0]
            if package in PLOTTING_PACKAGES:
                return True
            if package != "numpy" and not package.startswith("tenferro_"):
                return False
            frame = frame.f_back
        return False

    def numpy(self, *args: Any, **kwargs: Any) -> Any:
        """Not available: call `detach` first.

        Raises:
            GradientError: always.
        """
        self._export("a NumPy array")

    def __dlpack__(self, **kwargs: Any) -> Any:
        self._export("a DLPack capsule")

    def __reduce__(self) -> Any:
        self._export("a pickle or deep copy")
