"""`debug_callback` and `debug_print`: Python functions that see values while a program runs."""

from __future__ import annotations

import string
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tenferro_runtime.tracing.effects import call_back
from tenferro_tensor_core import ArgumentError


def debug_callback(f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Call a Python function with the values of its arguments while the program runs.

    In a compiled function, a loop or a branch, the call is a step of the program: it takes place each time the program
    reaches it, in source order, even if its arguments are not used otherwise. Differentiated values are passed without
    derivatives, once, in the forward pass. Under `vmap` the function is called for each lane in turn.

    Args:
        f: the function, which receives copies of the arrays as NumPy arrays; its result is ignored.
        args: arrays in any containers; other leaves are passed unchanged.
        kwargs: keyword arguments.

    Raises:
        ArgumentError: `f` is not a function.

    >>> import tenferro_runtime as tr
    >>> seen = []
    >>> @tr.compile
    ... def total(xs):
    ...     def step(sum, x):
    ...         tr.debug_callback(lambda s: seen.append(s.item()), sum)
    ...         return sum + x, None
    ...     return tr.scan(step, 0.0, xs)[0]
    >>> total(tr.asarray([1.0, 2.0, 3.0])), seen
    (Tensor(6.), [0.0, 1.0, 3.0])
    """
    if not callable(f):
        raise ArgumentError(f"debug_callback takes a function, got {f!r:.80}")
    call_back(f, args, kwargs)


def debug_print(text: str, *args: Any, **kwargs: Any) -> None:
    """Print text with the values of its arguments while the program runs; see `debug_callback`.

    Args:
        text: a format string, as for `str.format`: ``"step {} of {name}: {x:.3f}"``. An array with one element is
            formatted as a number.
        args: arrays and numbers in any containers, and any other objects.
        kwargs: keyword arguments.

    Raises:
        ArgumentError: the text names an argument that is not given, or omits one.

    >>> import tenferro_runtime as tr
    >>> @tr.compile
    ... def root(a):
    ...     def step(x):
    ...         tr.debug_print("x = {:.4f}", x)
    ...         return 0.5 * (x + a / x)
    ...     return tr.while_loop(lambda x: tr.abs(x * x - a) > 0.01, step, a)
    >>> root(2.0)
    x = 2.0000
    x = 1.5000
    Tensor(1.41666667)
    """
    if not isinstance(text, str):
        raise ArgumentError(f"debug_print takes a format string first, got {text!r:.80}; write debug_print('{{}}', x)")
    _require_fit(text, len(args), set(kwargs))

    def show(*values: Any, **named: Any) -> None:
        shown = text.format(*map(_plain, values), **{k: _plain(v) for k, v in named.items()})
        sys.stdout.write(shown + "\n")

    show.__qualname__ = f"print {text!r:.40}"
    debug_callback(show, *args, **kwargs)


def _require_fit(text: str, count: int, names: set[str]) -> None:
    used: set[str] = set()
    try:
        fields = list(_fields_in(text))
    except ValueError as error:
        raise ArgumentError(f"debug_print cannot read the format {text!r:.80}: {error}") from None
    counted = 0
    for field in fields:
        head = field.partition(".")[0].partition("[")[0]
        used.add(head or str(counted))
        counted += not head
    given = {*map(str, range(count)), *names}
    if used != given:
        wrong = [f"names {', '.join(sorted(used - given))}, which is not given"] if used - given else []
        wrong += [f"leaves out {', '.join(sorted(given - used))}"] if given - used else []
        raise ArgumentError(f"debug_print: the format {text!r:.80} {' and '.join(wrong)}")


def _fields_in(text: str) -> Iterator[str]:
    """The fields of a format, including those in format specifications."""
    for _, name, spec, _ in string.Formatter().parse(text):
        if name is not None:
            yield name
            yield from _fields_in(spec or "")


def _plain(x: Any) -> Any:
    """A value for formatting: an array with one element becomes a number."""
    return x.item() if isinstance(x, np.ndarray) and x.ndim == 0 else x
