"""`Results`: raw arrays that third-party code returns are held against the specs that they were made for.

A tensor matches its spec: all code that reads it relies on that, machine code included. Tests establish it for
tenferro's own code. Third-party code is checked at every call, since a mistake may depend on the data: kernels,
executables of compilers, programs of backends, transfers of device runtimes and executors of tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, NamedTuple, NoReturn, TypeVar

import numpy as np

from tenferro_tensor._owners import in_house
from tenferro_tensor._place import Place
from tenferro_tensor._spec import Spec
from tenferro_tensor.backends import get_backend
from tenferro_tensor.calls import SCALARS
from tenferro_tensor.ownership import read_only
from tenferro_tensor_core import RegistryError

T = TypeVar("T", bound=Any)

__all__ = ["ANY", "Maker", "Results", "arrived", "foreign", "owner_of", "reading"]


def __dir__() -> list[str]:
    return __all__.copy()


ANY: Final = None
"""Stands for an unknown shape."""

_HOST: Final = (np.ndarray, np.generic)


class Maker(NamedTuple):
    """The code that returned results, for the error.

    Attributes:
        text: the code, as in ``"the kernel of sin"``.
        promise: introduces the specs that the results must match, as in ``"its inference says"``.
        remedy: returns the next step for the user.
        details: attributes of the error.
    """

    text: str
    promise: str
    remedy: Callable[[], str]
    details: dict[str, str]


class Results:
    """Checks number, shapes, dtypes and places of the results of one function of raw arrays.

    Args:
        maker: the function, for errors.
        ins: specs of the operands.
        outs: specs of the results; extents may be symbolic.
        many: whether the results are a tuple.
    """

    def __init__(self, maker: Maker, ins: Sequence[Spec], outs: tuple[Spec, ...], many: bool) -> None:
        self.maker: Maker = maker
        self.outs: tuple[Spec, ...] = outs
        self.many: bool = many
        # For each result, the operands in its memory: outside main memory, the result must be an array of their class.
        self.beside: list[tuple[int, ...]] = [
            tuple([i for i, s in enumerate(ins) if s.place.memory_space is out.place.memory_space]) for out in outs
        ]

    def checked(
        self, run: Callable[..., Any], shapes: Sequence[Any], written: Collection[int] = ()
    ) -> Callable[..., Any]:
        """The function, with its results checked and its operands read-only.

        Args:
            run: the function.
            shapes: shapes of the results, `ANY` for unknown ones.
            written: positions of operands that it may write to.

        Returns:
            A callable on raw arrays.
        """
        run = reading(run, written)
        if ANY in shapes or not all(out.place.on_host for out in self.outs):
            return lambda *raws: self.held(run(*raws), raws, shapes)
        # Arrays in main memory are compared here, which is faster.
        usual = [
            ((np.ndarray,) if shape else (np.ndarray, out.dtype.type), shape, out.dtype)
            for out, shape in zip(self.outs, shapes, strict=True)
        ]
        if not self.many:
            ((classes, shape, dtype),) = usual

            def run_checked(*raws: Any) -> Any:
                out = run(*raws)
                if out.__class__ in classes and out.shape == shape and out.dtype == dtype:
                    return out
                return self.held(out, raws, shapes)

            return run_checked

        def run_checked_tuple(*raws: Any) -> Any:
            found = run(*raws)
            if found.__class__ is not tuple or len(found) != len(usual):
                return self.held(found, raws, shapes)
            for out, (classes, shape, dtype) in zip(found, usual):
                if not (out.__class__ in classes and out.shape == shape and out.dtype == dtype):
                    return self.held(found, raws, shapes)
            return found

        return run_checked_tuple

    def checked_open(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """The checked function for all sizes; its last arguments are the shapes of the results.

        Args:
            run: the function.

        Returns:
            A callable on raw arrays, sizes and shapes.
        """
        count, run = len(self.outs), reading(run)
        return lambda *raws: self.held(run(*raws[:-count]), raws, raws[-count:])

    def held(self, out: T, raws: Sequence[Any], shapes: Sequence[Any]) -> T:
        """Check the results of a call.

        Args:
            out: what the function returned.
            raws: its operands.
            shapes: shapes of the results.

        Returns:
            `out`.

        Raises:
            RegistryError: it does not match the specs.
        """
        found = out if self.many else (out,)
        if found.__class__ is not tuple or len(found) != len(self.outs):
            self._refuse([_shown(x) for x in found] if isinstance(found, tuple) else [_shown(found)], shapes)
        for raw, spec, shape, beside in zip(found, self.outs, shapes, self.beside, strict=True):
            if not _is_array(raw, spec, [raws[i] for i in beside]):
                self._refuse([_shown(x, type(x).__name__) for x in found], shapes)
            if raw.dtype != spec.dtype or (shape is not ANY and tuple(raw.shape) != shape):
                self._refuse([_shown(x) for x in found], shapes)
            if not spec.place.on_host and _is_elsewhere(raw, spec.place):
                self._refuse([_located(x, s.place) for x, s in zip(found, self.outs, strict=True)], shapes)
        return out

    def _refuse(self, found: list[str], shapes: Sequence[Any]) -> NoReturn:
        maker = self.maker
        wanted = [
            repr(spec if shape is ANY else spec.with_(shape=tuple(shape)))
            for spec, shape in zip(self.outs, shapes, strict=True)
        ]
        raise RegistryError(
            f"{maker.text} returned {', '.join(found) or 'nothing'}, but {maker.promise} "
            f"{', '.join(wanted) or 'nothing'}{' in a tuple' if self.many else ''}; {maker.remedy()}",
            **maker.details,
        )


def foreign(maker: Any) -> bool:
    """Whether an object is of a third party's class.

    Args:
        maker: the object.

    Returns:
        True if its results must be checked.
    """
    return not in_house(type(maker).__module__)


def owner_of(maker: Any) -> str:
    """The class of an object, for the remedy of an error.

    Args:
        maker: the object.

    Returns:
        Module and name.
    """
    return f"{type(maker).__module__}.{type(maker).__qualname__}"


def arrived(raw: T, spec: Spec, carrier: Any) -> T:
    """Check data that were transferred between two memories.

    Args:
        raw: the data where they arrived.
        spec: their spec.
        carrier: the backend or device runtime that transferred them.

    Returns:
        `raw`.

    Raises:
        RegistryError: a third party's transfer returned data that do not match the spec.
    """
    if foreign(carrier):
        owner = owner_of(carrier)
        kind = getattr(carrier, "kind", "") or getattr(carrier, "name", "")
        maker = Maker(f"a transfer by {owner}", "the data are", lambda: f"correct {owner}", {"backend": kind})
        Results(maker, (), (spec,), False).held(raw, (), (spec.shape,))
    return raw


def reading(run: Callable[..., Any], written: Collection[int] = ()) -> Callable[..., Any]:
    """A function that receives read-only views, because tensors never change; NumPy raises if it writes to one.

    Args:
        run: the function of raw arrays.
        written: positions of arrays that it may write to.

    Returns:
        A callable on raw arrays.
    """
    if not written:
        return lambda *raws: run(*[read_only(x) if x.__class__ is np.ndarray else x for x in raws])
    return lambda *raws: run(
        *[read_only(x) if x.__class__ is np.ndarray and i not in written else x for i, x in enumerate(raws)]
    )


def _is_array(raw: Any, spec: Spec, beside: list[Any]) -> bool:
    if spec.place.on_host:
        return raw.__class__ is np.ndarray or (isinstance(raw, np.generic) and raw.shape == ())
    for like in beside:
        if type(like) not in SCALARS:
            return isinstance(raw, _HOST if isinstance(like, _HOST) else type(like))
    return hasattr(raw, "shape") and hasattr(raw, "dtype")


def _is_elsewhere(raw: Any, place: Place) -> bool:
    """Whether an array is known to be in the memory of another device of its kind."""
    home = get_backend(place.device.kind).device_of(raw)
    return home is not None and home.memory_space is not place.memory_space


def _located(raw: Any, place: Place) -> str:
    """An array with its device."""
    home = None if place.on_host else get_backend(place.device.kind).device_of(raw)
    return f"{_shown(raw)}{'' if home is None else f' at {home}'}"


def _shown(raw: Any, kind: str = "") -> str:
    shape, dtype = getattr(raw, "shape", None), getattr(raw, "dtype", None)
    if shape is None or dtype is None:
        return type(raw).__name__
    return f"{kind}{' ' if kind else ''}{dtype}{list(shape)}"
