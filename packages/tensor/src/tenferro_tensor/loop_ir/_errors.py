"""The error raised for functions that violate the specification of `LoopIR`."""

from tenferro_tensor_core import TenferroError


class LoopIRError(TenferroError, ValueError):
    """A function of loop nests violates the specification of the IR, or accesses memory out of bounds when interpreted.

    The message names the statement. The error is in the code that wrote the function, not in the user's program: report
    it.
    """
