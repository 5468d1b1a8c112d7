"""Which library serves a subroutine of BLAS or LAPACK: products come from the chosen BLAS, all else from SciPy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from tenferro_cpu.native.machine._jit import RESOLVERS
from tenferro_cpu.native.threads._blas import provider
from tenferro_tensor.loop_ir import fortran_address

_LETTERS: Final = {"s": "f", "d": "d", "c": "F", "z": "D"}
"""NumPy's letters of the dtypes of subroutines."""

PREFIX: Final = "fortran."


def _chosen(symbol: str) -> tuple[int, int] | None:
    """Address and bytes of integers of a product of the chosen BLAS."""
    library = provider().library
    products = {} if library is None else {"gemm": library.gemm, "syrk": library.syrk}.get(symbol[1:], {})
    address = products.get(_LETTERS[symbol[0]], 0)
    return (address, library.integers) if library is not None and address else None


def fortran(symbol: str) -> tuple[str, int]:
    """What generated code calls a subroutine, and the bytes of its integers.

    Raises:
        UnsupportedError: no library has it.
    """
    found = _chosen(symbol)
    if found is None:
        fortran_address(symbol)
    width = 4 if found is None else found[1]
    return f"{PREFIX}{symbol}.{8 * width}", width


def fortran_symbols(names: Iterable[str]) -> Mapping[str, int]:
    """Addresses of what `fortran` named; code of a process that had another library may name what there is not."""
    symbols = {}
    for name in names:
        symbol = name.removeprefix(PREFIX).split(".")[0]
        if fortran(symbol)[0] == name:
            found = _chosen(symbol)
            symbols[name] = fortran_address(symbol) if found is None else found[0]
    return symbols


RESOLVERS[PREFIX] = fortran_symbols
