"""The only primitive that moves data between memories."""

from tenferro_tensor._place import Place
from tenferro_tensor._primitive import primitive
from tenferro_tensor._spec import Spec
from tenferro_tensor_core import ArgumentError

__all__ = ["transfer"]


def __dir__() -> list[str]:
    return __all__.copy()


@primitive
def transfer(x: Spec, *, place: Place) -> Spec:
    """The same elements at another place, copied only if the memory space differs. No other primitive moves data.

    Args:
        x: operand.
        place: the place.

    Returns:
        Spec of `x` at the place.
    """
    if not isinstance(place, Place):
        raise ArgumentError(
            f"transfer takes a Place, got {place!r}; to_device() makes one of a name", place=repr(place)
        )
    return x.with_(place=place)
