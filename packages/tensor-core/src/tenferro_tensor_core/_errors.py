"""Typed errors, whose texts say what was asked, what was seen and what to do next.

Every error is a `TenferroError` and also the builtin that it refines, so that `except ValueError`
keeps working. The text is for people, `payload` for programs.
"""

from typing import Any

from numpy.linalg import LinAlgError


class TenferroError(Exception):
    """Base class of all errors that tenferro raises deliberately.

    Catch it to handle all of them; catch a subclass, or the builtin that it refines, to handle one
    family.

    Args:
        message: the text.
        payload: facts for programs, kept in the attribute of this name.

    >>> error = ShapeError("cannot add (2,) and (3,); broadcast one of them", shapes=((2,), (3,)))
    >>> error.payload
    {'shapes': ((2,), (3,))}
    >>> isinstance(error, ValueError)
    True
    """

    payload: dict[str, Any]

    def __init__(self, message: str, /, **payload: Any) -> None:
        super().__init__(message)
        self.payload = payload

    def __reduce__(self) -> tuple[Any, ...]:
        # BaseException.__reduce__ passes `args` only; the payload and notes are in the instance dictionary, which
        # pickle restores afterwards.
        return _rebuild, (type(self), self.args), self.__dict__


def _rebuild(cls: type[TenferroError], args: tuple[Any, ...]) -> TenferroError:
    return cls(*args)


class ShapeError(TenferroError, ValueError):
    """Shapes are incompatible, or a size is impossible.

    Raised by shape inference, broadcasting, reshaping and contraction. The message names the
    axes and sizes that disagree. Reshape, transpose, slice or broadcast an operand.
    """


class DTypeError(TenferroError, TypeError):
    """A dtype is not supported, or not valid for this operation.

    Raised for types outside the supported set (objects, strings, dates) and for
    implicit conversions that would lose information. Convert explicitly to a supported type.
    """


class MissingDTypeError(DTypeError, AttributeError):
    """A dtype needs a package that is not installed; the message names the package.

    It is an `AttributeError`, so that ``hasattr(namespace, "bfloat16")`` tells whether the dtype is available.
    """


class AxisError(TenferroError, IndexError):
    """An axis is out of range or repeated, or an index is out of bounds.

    Raised before anything runs. Axes count from 0, negative ones from the end.
    """


class ArgumentError(TenferroError, ValueError):
    """The function does not accept the value of an argument.

    Raised for a value that is wrong regardless of the shapes and dtypes of the operands.
    The message lists the accepted values.
    """


class LayoutError(TenferroError, ValueError):
    """A memory layout cannot be expressed, or exceeds its buffer.

    Raised when a view would need a copy (a reshape of a transposed layout), when strides reach
    outside the buffer, or when an offset does not fit in 64 bits. Copy into row-major order first,
    or correct the shape, strides and offset.
    """


class InconclusiveDimError(TenferroError, RuntimeError):
    """A comparison of symbolic sizes cannot be decided.

    Raised when bounds do not decide it and there is no example size. Give the dimension tighter
    bounds, supply an example size, or write the code without the branch.
    """


class HostAdapterError(TenferroError, BufferError):
    """Host data cannot be imported as requested.

    Raised when a buffer or DLPack producer is on another device, exports an unsupported
    format, or would need a copy that `copy=False` forbids. Move or copy the data first.
    """


class PlacementError(TenferroError, RuntimeError):
    """Operands are in different places, or no device can be chosen.

    Nothing moves between host and accelerator implicitly. The message lists every operand with
    its place. Transfer the operands explicitly, or name a device.
    """


class AmbiguousPlacementError(PlacementError):
    """No single device can compute on all operands of an operation.

    Raised when operands are in several memory spaces, have different compute devices of their own, or are in memory
    that the device of the enclosing scope cannot access. The message lists every operand with its memory space, its
    compute device and the line that created it, and names the `to_device` calls that bring them together.
    """


class TransferForbiddenError(PlacementError):
    """Data would move between memory spaces where transfers are forbidden.

    Raised inside ``with no_transfers():``, before anything runs. The message names the line that moves data, the
    direction and the number of bytes. Keep the operands in one memory space, or move them before the scope.
    """


class BackendUnavailableError(TenferroError, ImportError):
    """A backend, or a package that it needs, is not installed or not usable here.

    The message names the distribution to install or the missing device.
    """


class UnsupportedError(TenferroError, NotImplementedError):
    """The operation is well defined, but this backend, dtype or layout has no kernel for it.

    There is no silent fallback. Use another device or dtype, or install the package that the message names.
    """


class ForeignFunctionError(UnsupportedError, TypeError):
    """A function of another library was called on a tensor, and tenferro has no counterpart.

    NumPy functions on tensors dispatch to the namespace. One without a counterpart runs on concrete tensors only,
    because a traced, batched or differentiated value would lose its connection. The message names an alternative.
    """


class NumericalError(TenferroError, ArithmeticError, LinAlgError):
    """A computation failed numerically: no convergence, a singular matrix, a division by zero.

    It is also NumPy's `LinAlgError`, which code that calls NumPy's functions on tensors expects.

    Raised instead of returning NaN. Regularise or rescale the input, or use the variant of the
    function that the message names.
    """


class RegistryError(TenferroError, RuntimeError):
    """Two registrations conflict, or an extension could not be registered.

    The message names the distribution at fault. Uninstall one of the two, or upgrade it.
    """


class TracingError(TenferroError, TypeError):
    """A traced value was used where a concrete one is needed, or after its trace ended.

    Raised by conversions to Python numbers and branches on traced values. Mark the argument
    static, or use the structured control flow that the message names.
    """


class GradientError(TenferroError, RuntimeError):
    """The requested derivative does not exist or cannot be computed safely.

    Raised for integer inputs, non-scalar outputs without a cotangent, and degenerate
    decompositions. A gradient is never silently zero.
    """


class MissingRuleError(GradientError, NotImplementedError):
    """A primitive has no derivative rule for the requested mode.

    The message names the primitive and its family. Register a rule, or stop the gradient there.
    """
