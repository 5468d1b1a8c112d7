"""Typed errors: what was asked, what was seen, what to do next.

Every error of tenferro is a `TenferroError` and also the builtin that it refines, so that
`except ValueError` keeps working. The text is for people, `payload` for programs.
"""

from typing import Any


class TenferroError(Exception):
    """Base of all errors that tenferro raises on purpose.

    Catch it to handle every one of them; catch a subclass, or the builtin it refines, to handle
    one family. Keyword arguments become `payload`, the machine-readable half of the message.

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
        # BaseException.__reduce__ calls the class with `args` only; the payload (and notes) live
        # in the instance dictionary, which pickle restores afterwards.
        return _rebuild, (type(self), self.args), self.__dict__


def _rebuild(cls: type[TenferroError], args: tuple[Any, ...]) -> TenferroError:
    return cls(*args)


class ShapeError(TenferroError, ValueError):
    """Shapes do not fit together, or a size is impossible.

    Raised by shape inference, broadcasting, reshaping and contraction. The message names the
    axes and sizes that disagree: reshape, transpose, slice or broadcast an operand.
    """


class DTypeError(TenferroError, TypeError):
    """An element type is not supported, or cannot take part in this operation.

    Raised for types outside the supported set (objects, strings, dates) and for
    implicit conversions that would lose information. Convert explicitly to a supported type.
    """


class MissingDTypeError(DTypeError, AttributeError):
    """An element type needs a package that is not installed; the message names it.

    It is an `AttributeError`, so that ``hasattr(namespace, "bfloat16")`` asks whether the type is there.
    """


class AxisError(TenferroError, IndexError):
    """An axis number is out of range, repeated, or an index leaves its axis.

    Raised before anything runs. Axes count from 0, negative ones from the end.
    """


class ArgumentError(TenferroError, ValueError):
    """An argument is outside of what the function accepts.

    Raised for a value that is wrong by itself, whatever the shapes and types of the operands.
    The message lists the accepted values.
    """


class LayoutError(TenferroError, ValueError):
    """A memory layout cannot be expressed, or leaves its buffer.

    Raised when a view would need a copy (a reshape of a transposed layout), when strides reach
    outside the buffer, or when an address does not fit 64 bits. Copy into row-major order first,
    or correct the shape, strides and offset.
    """


class InconclusiveDimError(TenferroError, RuntimeError):
    """A question about symbolic sizes has no answer yet.

    Raised when bounds do not decide a comparison and no example size may decide it. Give the
    dimension tighter bounds, supply an example size, or write the code without the branch.
    """


class HostAdapterError(TenferroError, BufferError):
    """Host data cannot be taken over as asked.

    Raised when a buffer or DLPack producer lives on another device, exports an unsupported
    format, or would need a copy that `copy=False` forbids. Move or copy the data first.
    """


class PlacementError(TenferroError, RuntimeError):
    """Operands live in different places, or no device can be chosen.

    Nothing moves between host and accelerator by itself: the message lists every operand with
    its place. Transfer the operands explicitly, or name a device.
    """


class AmbiguousPlacementError(PlacementError):
    """Operands of one operation that no device computes on together.

    Raised when operands lie in several memories, have compute devices of their own that differ, or lie where the
    device of the enclosing scope does not compute. The message lists every operand with its memory, its compute
    device and the line that made it, and names the `to_device` calls that bring them together.
    """


class TransferForbiddenError(PlacementError):
    """Data would be moved between memories where that is forbidden.

    Raised inside of ``with no_transfers():``, before anything runs. The message names the line that moves data, the
    direction and the bytes: keep the operands in one memory, or move them before the scope.
    """


class BackendUnavailableError(TenferroError, ImportError):
    """A backend or a package that it needs is not installed or not usable here.

    The message names the distribution to install or the missing device.
    """


class UnsupportedError(TenferroError, NotImplementedError):
    """The operation is well defined but this backend, type or layout has no kernel for it.

    There is no silent fallback: use another device or type, or install what the message names.
    """


class ForeignFunctionError(UnsupportedError, TypeError):
    """A function of another library was called on a tensor, and has no counterpart that could stand for it.

    NumPy's functions on tensors are those of the namespace. One that the namespace does not have runs on concrete
    tensors only: a value that is traced, batched or differentiated would be cut off. The message names what to use.
    """


class NumericalError(TenferroError, ArithmeticError):
    """A computation failed numerically: no convergence, a singular matrix, a division by zero.

    Raised instead of returning NaN. Regularise or rescale the input, or use the variant of the
    function that the message names.
    """


class RegistryError(TenferroError, RuntimeError):
    """Two registrations collide, or an extension could not be registered.

    The message names the distribution at fault: uninstall one of the two, or upgrade it.
    """


class TracingError(TenferroError, TypeError):
    """A traced value was used where a concrete one is needed, or outlived its trace.

    Raised by conversions to Python numbers and branches on traced values. Mark the argument
    static, or use the structured control flow that the message names.
    """


class GradientError(TenferroError, RuntimeError):
    """A derivative was asked for that does not exist or cannot be computed safely.

    Raised for integer inputs, non-scalar outputs without a cotangent, and degenerate
    decompositions. A gradient is never silently zero.
    """


class MissingRuleError(GradientError, NotImplementedError):
    """A primitive has no derivative rule for the mode asked for.

    The message names the primitive and its family. Register a rule, or stop the gradient there.
    """
