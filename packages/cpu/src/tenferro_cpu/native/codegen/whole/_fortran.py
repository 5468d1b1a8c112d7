"""The library of each subroutine: products come from the chosen BLAS, other BLAS and LAPACK subroutines from SciPy,
routines of the backend from the C extension.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from tenferro_cpu.native._extension import compiled
from tenferro_cpu.native.codegen.machine._jit import RESOLVERS
from tenferro_cpu.native.threads._blas import provider
from tenferro_tensor.loop_interpreter import fortran_address

_LETTERS: Final = {"s": "f", "d": "d", "c": "F", "z": "D"}
"""NumPy's letters of the dtypes of subroutines."""

PREFIX: Final = "fortran."
ROUTINE: Final = "routine."


def _chosen(symbol: str) -> tuple[int, int] | None:
    """Address and integer size of a product of the chosen BLAS."""
    library = provider().library
    products = {} if library is None else {"gemm": library.gemm, "syrk": library.syrk}.get(symbol[1:], {})
    address = products.get(_LETTERS[symbol[0]], 0)
    return (address, library.integers) if library is not None and address else None


def fortran(symbol: str) -> tuple[str, int]:
    """Name of a subroutine in generated code, and the bytes of its integers.

    Raises:
        UnsupportedError: no library has it.
    """
    if "." in symbol:
        return f"{ROUTINE}{symbol}", 8
    found = _chosen(symbol)
    if found is None:
        fortran_address(symbol)
    width = 4 if found is None else found[1]
    return f"{PREFIX}{symbol}.{8 * width}", width


def fortran_symbols(names: Iterable[str]) -> Mapping[str, int]:
    """Addresses of the names that `fortran` returned; code from a process with another library may name missing ones.

    Args:
        names: the names.

    Returns:
        Address by name, without the missing ones.
    """
    symbols = {}
    for name in names:
        symbol = name.removeprefix(PREFIX).split(".")[0]
        if fortran(symbol)[0] == name:
            found = _chosen(symbol)
            symbols[name] = fortran_address(symbol) if found is None else found[0]
    return symbols


def has_routine(symbol: str) -> bool:
    """Whether the C extension has a routine of the backend."""
    return compiled is not None and symbol in compiled.ADDRESSES


def _routines(names: Iterable[str]) -> Mapping[str, int]:
    """Addresses of routines of the backend."""
    symbols = {name: name.removeprefix(ROUTINE) for name in names}
    return {name: compiled.ADDRESSES[symbol] for name, symbol in symbols.items() if has_routine(symbol)}


RESOLVERS[PREFIX] = fortran_symbols
RESOLVERS[ROUTINE] = _routines
