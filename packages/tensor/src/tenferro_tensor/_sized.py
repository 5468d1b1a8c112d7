"""`sized`: marks kernels that receive sizes as arguments."""

from collections.abc import Callable
from typing import Any

from tenferro_tensor._primitive import is_open
from tenferro_tensor._registry import KernelMaker
from tenferro_tensor._spec import Spec
from tenferro_tensor.kernels import followed

Sizes = Callable[..., tuple[Any, ...]]


def sized(sizes: Sizes) -> Callable[[KernelMaker], KernelMaker]:
    """Mark a kernel maker whose kernels receive sizes as trailing arguments, whether concrete or symbolic.

    The maker never looks at extents; for concrete specs, the sizes are bound here. A program for all sizes thus runs
    the same code as a single call.

    Args:
        sizes: ``sizes(ins, outs, **params)`` returns a tuple of extents, tuples of extents and other metadata.

    Returns:
        A decorator.

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
