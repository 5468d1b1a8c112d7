"""What the two kinds of differentiated value share: a value inside, a level, and no silent way out."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from tenferro_tensor import Array, Spec
from tenferro_tensor_core import DimLike, GradientError


class Differentiated(Array):
    """A value that a derivative passes through.

    Attributes:
        value: the value inside, of a lower level.
        spec: its spec.
        level: level of the differentiation that it belongs to.
    """

    __slots__ = ()
    value: Any
    spec: Spec
    level: int

    def _split(self, args: tuple[Any, ...]) -> tuple[list[Any], list[int], list[Any]]:
        """Operands as the level below sees them, and those of this kind and level with their positions."""
        cls, level = self.__class__, self.level
        lower = list(args)
        need = [i for i, a in enumerate(args) if a.__class__ is cls and a.level == level]
        for i in need:
            lower[i] = args[i].value
        return lower, need, [args[i] for i in need]

    def _as_extent(self, most: DimLike | None) -> DimLike:
        return self.value._as_extent(most)  # type: ignore[no-any-return]

    def _concrete(self) -> np.ndarray[Any, Any]:
        return self.value._concrete()  # type: ignore[no-any-return]

    @property
    def requires_grad(self) -> bool:
        """Always true: a value that no derivative passes through is of neither kind."""
        return True

    def detach(self) -> Any:
        """The value inside: the same data, and a constant of the differentiation."""
        return self.value

    def _export(self, what: str) -> NoReturn:
        name = type(self).__name__
        raise GradientError(
            f"{what} was asked of {'an' if name[0] in 'AEIOU' else 'a'} {name} {self.spec!r}, and would cut it off "
            "from differentiation silently; use .detach() first if a constant is meant"
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        self._export("a NumPy array")

    def numpy(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: detach first.

        Raises:
            GradientError: always.
        """
        self._export("a NumPy array")

    def __dlpack__(self, **kwargs: Any) -> Any:
        self._export("a DLPack capsule")

    def __reduce__(self) -> Any:
        self._export("a pickle or deep copy")
