"""What machine code knows of the interpreter that calls it."""

from typing import NamedTuple

from tenferro_cpu.native.machine._jit import available
from tenferro_cpu.native.python._capi import symbols
from tenferro_cpu.native.python._layout import Layout


class Interpreter(NamedTuple):
    """An interpreter that native entries are written for.

    Attributes:
        tuple_items: bytes before the items of a tuple.
        symbols: addresses of what entries call and compare with, by symbol name.
    """

    tuple_items: int
    symbols: dict[str, int]


def interpreter() -> Interpreter | None:
    """The one of this process, or None where there can be no native entries: no compiler, or other objects."""
    layout = Layout.found() if available() else None
    known = symbols() if layout is not None else None
    return None if layout is None or known is None else Interpreter(layout.tuple_items, known)
