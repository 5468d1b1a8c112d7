"""Runs the function of an expansion on values of any level, and checks the results against inference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, NoReturn

import numpy as np

from tenferro_tensor import REGISTRY, SCALARS, Array, Op, Primitive, Spec, catalog
from tenferro_tensor.origins import OURS
from tenferro_tensor_core import InconclusiveDimError, RegistryError, TenferroError, TracingError, ask

MAX_NESTED_EXPANSIONS: Final = 32
"""Largest depth of nested expansions; a primitive may use itself with other metadata, but not endlessly."""

_running: Final[ContextVar[tuple[Op, ...]]] = ContextVar("tenferro expansions", default=())


def has_expansion(primitive: Primitive) -> bool:
    """Whether a primitive has an expansion; loads its extension.

    Args:
        primitive: the primitive.

    Returns:
        True if it has one.
    """
    return REGISTRY.find("expansion", primitive) is not None


def nested() -> tuple[Op, ...]:
    """The ops whose expansions are being applied, outermost first."""
    return _running.get()


@contextmanager
def within(ops: tuple[Op, ...]) -> Iterator[None]:
    """A scope inside the expansions of ops.

    Raises:
        RegistryError: the last op is being expanded already, so that its expansion would never end.
    """
    if ops and (ops[-1] in ops[:-1] or len(ops) > MAX_NESTED_EXPANSIONS):
        op = ops[-1]
        raise RegistryError(
            f"the expansion of {op.primitive.name}, {_written_at(op)}, uses itself without end: "
            f"{' -> '.join(map(repr, ops[-4:]))}; write it with other operations",
            primitive=op.primitive.name,
        )
    token = _running.set(ops)
    try:
        yield
    finally:
        _running.reset(token)


def apply_expansion(op: Op, values: Sequence[Any]) -> tuple[Any, ...]:
    """The outputs of an op by its expansion, on values of any level.

    Args:
        op: the op.
        values: the operands.

    Returns:
        The outputs.

    Raises:
        RegistryError: the expansion fails, returns other specs than inference, or uses itself without end.
        TracingError: it cannot be traced.
    """
    wanted = op.infer(*[x.spec for x in values])
    with within((*nested(), op)):
        try:
            out = REGISTRY.find("expansion", op.primitive).function(*values, **op.params)  # type: ignore[union-attr]
        except InconclusiveDimError:
            raise
        except TracingError as cause:
            raise TracingError(
                f"the expansion of {op.primitive.name}, {_written_at(op)}, cannot be traced: {cause}"
            ) from cause
        except TenferroError as cause:
            cause.add_note(f"in the expansion of {op.primitive.name}, {_written_at(op)}{_line(cause)}")
            raise
        except Exception as cause:
            raise RegistryError(
                f"the expansion of {op.primitive.name}, {_written_at(op)}, raised {type(cause).__name__}"
                f"{_line(cause)}: {cause}; correct it",
                primitive=op.primitive.name,
            ) from cause
    many = isinstance(wanted, tuple)
    found = tuple(out) if many and isinstance(out, (tuple, list)) else (out,)
    specs: tuple[Spec, ...] = wanted if isinstance(wanted, tuple) else (wanted,)
    results = [_adopted(x) for x in found]
    if len(results) != len(specs) or (many and not isinstance(out, (tuple, list))):
        _refuse(op, found, specs, many)
    fitted = [_fitted(x, spec) for x, spec in zip(results, specs, strict=True)]
    if any(x is None for x in fitted):
        _refuse(op, found, specs, many)
    return tuple(fitted)


def _adopted(x: Any) -> Any:
    return Primitive.adopt(x) if x.__class__ in SCALARS or isinstance(x, (np.ndarray, np.generic)) else x


def _fitted(x: Any, spec: Spec) -> Any:
    """A value with a given spec, up to names of equal symbolic sizes; ``None`` if its spec differs."""
    if not isinstance(x, Array):
        return None
    have = x.spec
    if have is spec:
        return x
    if have.dtype != spec.dtype or have.place is not spec.place or have.ndim != spec.ndim:
        return None
    if not all(a == b or ask(a, "==", b) for a, b in zip(have.shape, spec.shape, strict=True)):
        return None
    return catalog.reshape(x, shape=spec.shape)


def _refuse(op: Op, found: tuple[Any, ...], specs: tuple[Spec, ...], many: bool) -> NoReturn:
    got = ", ".join([repr(x.spec) if isinstance(x, Array) else f"{type(x).__name__} {x!r:.40}" for x in found])
    raise RegistryError(
        f"the expansion of {op.primitive.name}, {_written_at(op)}, returned {got or 'nothing'}, but the inference of "
        f"{op.primitive.name} says {', '.join(map(repr, specs))}{' in a tuple' if many else ''}; correct the "
        "expansion, or the inference function",
        primitive=op.primitive.name,
    )


def _written_at(op: Op) -> str:
    """The function of an expansion with its location, ``softplus (waves.py:12)``."""
    function: Callable[..., Any] = REGISTRY.find("expansion", op.primitive).function  # type: ignore[union-attr]
    name = getattr(function, "__qualname__", repr(function))
    code = getattr(function, "__code__", None)
    return name if code is None else f"{name} ({code.co_filename}:{code.co_firstlineno})"


def _line(error: BaseException) -> str:
    """The innermost line outside tenferro in the traceback of an error, as a clause."""
    trace, line = error.__traceback__, ""
    while trace is not None:
        if not trace.tb_frame.f_globals.get("__name__", "").startswith(OURS):
            line = f" at {trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    return line
