"""Errors: each refines a builtin, carries a payload, survives pickling, and documents itself."""

import copy
import pickle

import numpy as np
import pytest

import tenferro_tensor_core as core

BUILTINS = {
    "ShapeError": ValueError,
    "DTypeError": TypeError,
    "MissingDTypeError": AttributeError,
    "AxisError": IndexError,
    "ArgumentError": ValueError,
    "LayoutError": ValueError,
    "InconclusiveDimError": RuntimeError,
    "HostAdapterError": BufferError,
    "PlacementError": RuntimeError,
    "AmbiguousPlacementError": RuntimeError,
    "TransferForbiddenError": RuntimeError,
    "BackendUnavailableError": ImportError,
    "UnsupportedError": NotImplementedError,
    "ForeignFunctionError": TypeError,
    "NumericalError": ArithmeticError,
    "RegistryError": RuntimeError,
    "TracingError": TypeError,
    "GradientError": RuntimeError,
    "MissingRuleError": NotImplementedError,
}


def test_the_table_is_complete():
    exported = {
        name
        for name in core.__all__
        if isinstance(getattr(core, name), type) and issubclass(getattr(core, name), core.TenferroError)
    }
    assert exported == {"TenferroError", *BUILTINS}
    assert issubclass(core.MissingRuleError, core.GradientError)
    assert issubclass(core.NumericalError, np.linalg.LinAlgError)  # which callers of NumPy's functions catch


@pytest.mark.parametrize("name", BUILTINS)
def test_an_error_refines_its_builtin_and_keeps_its_payload(name):
    cls = getattr(core, name)
    error = cls("asked, seen, next", shapes=((2, 3), (4,)), message="payload may use any name")
    error.add_note("written at model.py:3")
    assert isinstance(error, BUILTINS[name]) and isinstance(error, core.TenferroError)
    assert "Raised" in cls.__doc__ or "message" in cls.__doc__
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(twin) is cls
        assert str(twin) == "asked, seen, next"
        assert twin.payload == {"shapes": ((2, 3), (4,)), "message": "payload may use any name"}
        assert twin.__notes__ == ["written at model.py:3"]


def test_payload_is_the_instances_own():
    assert core.ShapeError("x").payload is not core.ShapeError("y").payload
