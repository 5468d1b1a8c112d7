"""`sized`: the mark of kernels that are told their sizes."""

from collections.abc import Callable
from typing import Any

from tenferro_tensor._primitive import is_open
from tenferro_tensor._registry import KernelMaker
from tenferro_tensor._spec import Spec
from tenferro_tensor.kernels import followed

Sizes = Callable[..., tuple[Any, ...]]


def sized(sizes: Sizes) -> Callable[[KernelMaker], KernelMaker]:
    """Mark a maker whose kernels take what `sizes` gives as trailing arguments, for numbers as for open sizes.

    The maker never looks at extents: where specs are concrete, its kernels are given their sizes here. So a program
    for all sizes runs the same code as a single call.

    Args:
        sizes: ``sizes(ins, outs, **params)``, a tuple of extents, of tuples of extents and of other metadata.

    >>> import numpy as np
    >>> @sized(lambda ins, outs, *, shape: (shape,))
    ... def reshape(ins, outs, *, shape):
    ...     return lambda x, shape: x.reshape(shape)
    >>> wide, tall = (Spec(shape, np.dtype("float64")) for shape in ((2, 3), (3, 2)))
    >>> reshape((wide,), (tall,), shape=(3, 2))(np.ones((2, 3))).shape
    (3, 2)
    """

    def mark(make: KernelMaker) -> KernelMaker:
        def maker(ins: tuple[Spec, ...], outs: tuple[Spec, ...], **params: Any) -> Callable[..., Any]:
            run = make(ins, outs, **params)
            if any(s.symbolic for s in (*ins, *outs)) or any(map(is_open, params.values())):
                return run
            return followed(run, sizes(ins, outs, **params))

        maker.sizes = sizes  # type: ignore[attr-defined]
        return maker

    return mark
