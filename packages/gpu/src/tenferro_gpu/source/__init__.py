"""The library functions that rendered kernels call, as source text for the compilers of CUDA and HIP."""

from functools import cache
from importlib.resources import files


@cache
def library(complex_numbers: bool, narrow_numbers: bool = False) -> str:
    """The functions of numbers, with those of complex numbers and of narrow floats where a kernel has any.

    >>> "tf_add" in library(False), "tf_complex" in library(False), "tf_complex" in library(True)
    (True, False, True)
    """
    names = ["numbers.cuh", *["complex.cuh"] * complex_numbers, *["narrow.cuh"] * narrow_numbers]
    return "\n".join([files(__package__).joinpath(name).read_text("utf-8") for name in names])
