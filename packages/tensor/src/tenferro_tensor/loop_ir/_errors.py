"""The error of functions that break the law of `LoopIR`."""

from tenferro_tensor_core import TenferroError


class LoopIRError(TenferroError, ValueError):
    """A function of loop nests breaks the law of its form, or leaves its memory when it is interpreted.

    The message names the statement. Whoever wrote the function is at fault, not the user's program: report it.
    """
