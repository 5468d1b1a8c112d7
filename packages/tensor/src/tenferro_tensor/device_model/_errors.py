"""Errors of rendering, compiling and running kernels."""

from tenferro_tensor_core import TenferroError


class CompileError(TenferroError, RuntimeError):
    """A compiler refuses a kernel's source: a defect of the renderer, or of hand-written source.

    The message quotes the compiler. Rendered kernels should never raise it; please report one that does.
    """
