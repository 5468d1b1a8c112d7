"""`debug_callback` and `debug_print`: Python functions that see values while a program runs."""

from __future__ import annotations

import string
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from tenferro_runtime._rules import Inactive
from tenferro_runtime.effects._recording import run_or_record
from tenferro_runtime.ir._effects import CALLBACKS, EFFECTS
from tenferro_runtime.trees._tree import TreeDef, flatten, unflatten
from tenferro_tensor import HOST, REGISTRY, Array, Primitive, Spec
from tenferro_tensor.operands import value
from tenferro_tensor_core import ArgumentError, bool_

_DONE: Final = np.False_


class Callback:
    """A call of a Python function with the leaves of its arguments left open.

    Compared by identity: each place of a program that calls has its own.
    """

    __slots__ = ("arrays", "f", "leaves", "tree")

    def __init__(self, f: Callable[..., Any], tree: TreeDef, leaves: list[Any], arrays: list[int]) -> None:
        self.f, self.tree, self.leaves, self.arrays = f, tree, leaves, arrays

    def __call__(self, *raws: Any) -> None:
        """Call the function; the arrays are copies of its own."""
        leaves = list(self.leaves)
        for i, raw in zip(self.arrays, raws):
            leaves[i] = np.array(raw)
        args, kwargs = unflatten(self.tree, leaves)
        self.f(*args, **kwargs)

    def __repr__(self) -> str:
        return getattr(self.f, "__qualname__", type(self.f).__name__)


def _debug_callback(*xs: Spec, callback: Callback) -> Spec:
    """Call a Python function with the elements of the operands, in the order of the program; returns nothing."""
    return Spec((), bool_, HOST)


_debug_callback.__name__ = "debug_callback"
callback_primitive = Primitive(_debug_callback)


def _kernel(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, callback: Callback) -> Callable[..., Any]:
    def run(*raws: Any) -> Any:
        callback(*raws)
        return np.asarray(_DONE)

    return run


EFFECTS.add(callback_primitive)
CALLBACKS.add(callback_primitive)
REGISTRY.kernel(callback_primitive, "cpu", _kernel)
REGISTRY.rule(callback_primitive, Inactive())


def debug_callback(f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Call a Python function with the values that its arguments have while the program runs.

    In a compiled function, a loop or a branch the call is a step of the program: it takes place each time the program
    gets there, in the order of the source, whether anything is computed from the values or not. Differentiated values
    are seen as they are without derivatives, once, in the forward pass. Under `vmap` the function is called for each
    lane in turn.

    Args:
        f: the function; what it returns is dropped. It gets NumPy arrays of its own in the containers of the arguments.
        args: arrays in any containers; numbers and other leaves are passed on as they are.
        kwargs: the same by name.

    Raises:
        ArgumentError: `f` is no function.

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
    leaves, tree = flatten((args, kwargs))
    places = [i for i, x in enumerate(leaves) if _is_number(x)]
    values = [value(leaves[i]) for i in places]
    rest = [None if i in places else x for i, x in enumerate(leaves)]
    run_or_record(callback_primitive.op(callback=Callback(f, tree, rest, places)), values)


def debug_print(text: str, *args: Any, **kwargs: Any) -> None:
    """Print text with the values that its arguments have while the program runs; see `debug_callback`.

    Args:
        text: a format string, as for `str.format`: ``"step {} of {name}: {x:.3f}"``. An array of one element takes
            the format of its number.
        args: arrays and numbers in any containers, and anything else that can be formatted.
        kwargs: the same by name.

    Raises:
        ArgumentError: the text names an argument that is not given, or leaves one out.

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
    """The fields of a format, each before those of its own specification."""
    for _, name, spec, _ in string.Formatter().parse(text):
        if name is not None:
            yield name
            yield from _fields_in(spec or "")


def _plain(x: Any) -> Any:
    """A value for formatting: an array of one element is its number."""
    return x.item() if isinstance(x, np.ndarray) and x.ndim == 0 else x


def _is_number(x: Any) -> bool:
    return isinstance(x, (Array, np.ndarray)) or hasattr(x, "__dim__")
