"""Calls of NumPy functions on tensors, as calls of the namespace's functions.

The counterpart of a function is found by its name, its arguments by the names and order of both signatures;
`_numpy_differences` lists the exceptions. A function without a counterpart runs in NumPy if all operands are concrete,
and returns tensors; traced and differentiated values are refused.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final

import numpy as np

from tenferro_tensor import functions
from tenferro_tensor._array import Array
from tenferro_tensor._foreign import require_no_array
from tenferro_tensor._numpy_calls import UFUNCS
from tenferro_tensor._numpy_differences import (
    ACCUMULATIONS,
    AT,
    COERCING,
    DIFFERENT,
    METADATA,
    MISLEADING,
    NAMES,
    PARAMETERS,
    REDUCTIONS,
    RUNNING,
    WRITING,
    masked,
)
from tenferro_tensor._tensor import Tensor
from tenferro_tensor.calls import SCALARS
from tenferro_tensor.entry_points import EXTENSIONS, installed
from tenferro_tensor.operands import axis_of
from tenferro_tensor.views import replace
from tenferro_tensor_core import ArgumentError, DTypeError, ForeignFunctionError

Adapter = Callable[..., Any]

_FUNCTIONS: Final[dict[Any, Adapter | None]] = {}
"""Adapters of the functions called so far; bounded by the number of NumPy's functions."""

_NEUTRAL: Final = {"order": ("C", "K", "A"), "casting": ("same_kind", "unsafe"), "subok": (True, False), "like": ()}
"""Arguments about memory layout and array classes, with the values that have no effect."""

_OPERANDS: Final = (Array, np.ndarray, np.generic, list, tuple, *SCALARS)


def _namespace() -> Any:
    return Array.namespace or functions


# -- ufuncs ---------------------------------------------------------------------------------------------------------


def call_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a ufunc, or one of its methods, with tensors among the operands."""
    others = [x for x in inputs if not isinstance(x, _OPERANDS) and not hasattr(x, "__dim__")]
    for x in others:
        require_no_array(x)
    if others:
        return NotImplemented  # an operand of another library, which may support tensors
    if method == "at":
        return _at(ufunc, *inputs)
    out, where = kwargs.pop("out", None), kwargs.pop("where", True)
    inputs = tuple([np.asarray(x) if isinstance(x, (list, tuple)) else x for x in inputs])
    run = {
        "__call__": _elementwise,
        "reduce": _reduced,
        "accumulate": _accumulated,
        "outer": _outer,
    }.get(method)
    function = getattr(ufunc, method)
    if where is not True and (out is None or method != "__call__"):
        kwargs["where"] = where
    result = _in_numpy(function, inputs, kwargs) if run is None else _or_numpy(function, run, ufunc, inputs, kwargs)
    if where is not True and "where" not in kwargs:
        result = _where(where, result, out)
    return _written(result, out, ufunc.__name__)


def _where(condition: Any, result: Any, out: Any) -> Any:
    """Results where a condition is true, and elsewhere what is in the arrays that they are written to."""
    many = isinstance(result, tuple)
    found = [
        y if o is None else functions.where(functions.asarray(condition), y, functions.asarray(o))
        for y, o in zip(result if many else (result,), out if isinstance(out, tuple) else (out,), strict=True)
    ]
    return tuple(found) if many else found[0]


def _at(ufunc: Any, x: Any, key: Any, *values: Any) -> None:
    """``ufunc.at(x, key, values)``: elements that the key names several times are combined with each value."""
    if not isinstance(x, Array):
        ufunc.at(x, key, *map(np.asarray, values))
        return
    mode = AT.get(ufunc.__name__)
    if mode is not None:
        found = getattr(x.at[key], mode)(*values)
        if _is_concrete(x):
            x[...] = found  # in memory that others may have
        else:
            replace(x, found)
        return
    found = np.array(_in_numpy(np.copy, (x,), {}))
    ufunc.at(found, key, *map(np.asarray, values))
    x[...] = found


def _elementwise(ufunc: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    function = UFUNCS.get(ufunc) or counterpart(ufunc)
    if function is None:
        return _in_numpy(ufunc, inputs, kwargs)
    if ufunc not in UFUNCS:
        UFUNCS[ufunc] = function
    options = _options(ufunc.__name__, kwargs)
    dtype = options.pop("dtype", None)
    if dtype is not None:
        inputs = tuple([functions.astype(functions.asarray(x), dtype) for x in inputs])
    if options:
        raise _refusal(ufunc, inputs, f"its argument {next(iter(options))!r} has no counterpart there")
    return function(*inputs)


def _reduced(ufunc: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    name = REDUCTIONS.get(ufunc.__name__)
    if name is None:
        return _in_numpy(ufunc.reduce, inputs, kwargs)
    kwargs = {"axis": 0, **kwargs}
    return _adapter(getattr(np, name), name)(*inputs, **kwargs)


def _accumulated(ufunc: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    name = ACCUMULATIONS.get(ufunc.__name__)
    running = RUNNING.get(ufunc.__name__)
    if running is not None and not kwargs.keys() - {"axis"}:
        x, axis = functions.asarray(inputs[0]), kwargs.get("axis", 0)
        if x.spec.dtype.kind != "b":
            return running(x, axis=axis_of(f"{ufunc.__name__}.accumulate", axis, x.spec.ndim), reverse=False)
    if name is None:
        return _in_numpy(ufunc.accumulate, inputs, kwargs)
    return getattr(_namespace(), name)(*inputs, **{"axis": 0, **kwargs})


def _outer(ufunc: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    x, y = [functions.asarray(v) for v in inputs]
    return _elementwise(ufunc, (functions.reshape(x, (*x.shape, *(1,) * y.ndim)), y), kwargs)


# -- functions ------------------------------------------------------------------------------------------------------


def call_function(function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a NumPy function that is not a ufunc, with tensors among the arguments."""
    if not all(issubclass(t, (Array, np.ndarray)) for t in types):
        return NotImplemented
    if function in METADATA:
        return METADATA[function](*args, **kwargs)
    if function not in _FUNCTIONS:
        target = counterpart(function)
        _FUNCTIONS[function] = None if target is None else _adapter(function, target)
    adapter = _FUNCTIONS[function]
    if adapter is None or (function in COERCING and _all_concrete((args, kwargs))):
        return _in_numpy(function, args, kwargs)
    return _or_numpy(function, lambda f, args, kwargs: adapter(*args, **kwargs), function, args, kwargs)


def _or_numpy(function: Any, run: Adapter, asked: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``run(asked, args, kwargs)``; calls on concrete tensors that the namespace refuses run in NumPy."""
    try:
        return run(asked, args, kwargs)
    except (ArgumentError, DTypeError, ForeignFunctionError, TypeError):
        if function in WRITING or not _all_concrete((args, kwargs)):
            raise
    return _in_numpy(function, args, kwargs)


def counterpart(function: Any) -> Any:
    """The counterpart of a function of NumPy or SciPy, or ``None``."""
    module, name = _home(function), function.__name__
    different = DIFFERENT.get((module, name))
    if different is not None:
        return different
    if (module, name) == ("", "einsum"):
        return _einsum()
    if name in MISLEADING:
        return None
    home = _namespace()
    for part in filter(None, module.split(".")):
        home = getattr(home, part, None)
    for known in (name, NAMES.get(name)):
        found = None if known is None else getattr(home, known, None)
        if callable(found) and not isinstance(found, type):
            return found
    return None


def _home(function: Any) -> str:
    """The subpackage of NumPy that defines a function: "", "linalg" or "fft"; always "" for a ufunc."""
    module = getattr(function, "__module__", None) or "numpy"
    return module.removeprefix("numpy").removeprefix(".") if module.startswith("numpy") else ""


def _einsum() -> Any:
    entry = installed(EXTENSIONS).get("einsum")
    return None if entry is None else import_module(entry.module.partition(".")[0]).einsum


def _adapter(function: Any, target: Any) -> Adapter:
    """`target`, the counterpart of a NumPy function, with the signature of that function."""
    if isinstance(target, str):
        target = getattr(_namespace(), target)
    theirs, ours = inspect.signature(function), inspect.signature(target)
    if any(p.kind is p.VAR_POSITIONAL for p in theirs.parameters.values()):
        return _passing(function, target, theirs)
    sources = _sources(list(theirs.parameters.values()), list(ours.parameters.values()))

    def adapted(*args: Any, **kwargs: Any) -> Any:
        given = theirs.bind(*args, **kwargs).arguments
        given.update(given.pop("kwargs", {}))
        positional, named = [], {}
        for name, source, at_place, usual in sources:
            other = PARAMETERS.get(name)
            if source not in given and other in given:
                source = other
            if source in given:
                value = given.pop(source)
            elif usual is not inspect.Parameter.empty:
                value = usual
            else:
                continue
            if at_place:
                positional.append(value)
            elif usual is not inspect.Parameter.empty or not _is_default(theirs, source, value):
                named[name] = value
        options = _options(function.__name__, {k: v for k, v in given.items() if not _is_default(theirs, k, v)})
        out, dtype = options.pop("out", None), options.pop("dtype", None)
        if "shape" in options and function.__name__.endswith("_like"):
            like = functions.asarray(positional[0])
            positional[0] = functions.empty(options.pop("shape"), dtype=like.dtype, device=like.device)
        if options.keys() & {"where", "initial"}:
            positional[0], after = masked(function.__name__, positional[0], options, named)
        else:
            after = None
        if options:
            raise _refusal(function, args, f"its argument {next(iter(options))!r} has no counterpart in tr")
        result = target(*positional, **named)
        result = result if after is None else after(result)
        result = result if dtype is None else functions.astype(result, dtype)
        return _written(result, None if out is None else (out,), function.__name__)

    return adapted


def _sources(theirs: list[Any], ours: list[Any]) -> list[tuple[str, str, bool, Any]]:
    """For each of our parameters its name, theirs, whether it is positional, and the default to pass.

    Parameters are matched by name, required ones also by position.
    """
    names, own = {p.name: p for p in theirs}, {p.name for p in ours}
    empty = inspect.Parameter.empty
    found = []
    for i, p in enumerate(ours):
        if any(PARAMETERS.get(name) == p.name for name in own):
            continue  # our second name of a parameter
        source = next((n for n in (p.name, PARAMETERS.get(p.name)) if n in names), None)
        if source is None and p.kind is p.KEYWORD_ONLY and theirs[-1].kind is p.VAR_KEYWORD:
            found.append((p.name, p.name, False, empty))
            continue
        by_order = (p.default is empty or p.kind is p.POSITIONAL_ONLY) and i < len(theirs)
        if source is None and by_order and theirs[i].name not in own:
            source = theirs[i].name
        if source is None or p.kind is p.VAR_POSITIONAL:
            continue
        default = names[source].default
        plain = default is None or isinstance(default, (bool, int, float, str, tuple))
        needed = p.default is empty or (plain and default is not None and default != p.default)
        found.append((p.name, source, p.kind is p.POSITIONAL_ONLY or p.default is empty, default if needed else empty))
    return found


def _passing(function: Any, target: Any, theirs: inspect.Signature) -> Adapter:
    """`target` for a function of any number of arrays, which are passed on unchanged."""
    known = inspect.signature(target).parameters

    def adapted(*args: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None)
        kwargs = {k: v for k, v in kwargs.items() if k in known or not _is_default(theirs, k, v)}
        options = _options(function.__name__, {k: v for k, v in kwargs.items() if k not in known})
        if options:
            raise _refusal(function, args, f"its argument {next(iter(options))!r} has no counterpart in tr")
        result = target(*args, **{k: v for k, v in kwargs.items() if k in known})
        return _written(result, None if out is None else (out,), function.__name__)

    return adapted


def _is_default(signature: inspect.Signature, name: str, value: Any) -> bool:
    parameter = signature.parameters.get(name)
    if parameter is None:
        return False
    return value is parameter.default or (isinstance(value, (bool, int, str)) and value == parameter.default)


def _options(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments without those that have no effect or concern memory layout and array classes."""
    left = {}
    for key, value in given.items():
        if key == "like" or value is None or (key == "where" and value is True):
            continue
        if key in _NEUTRAL and any(value is v or value == v for v in _NEUTRAL[key]):
            continue
        left[key] = value
    return left


# -- functions without a counterpart --------------------------------------------------------------------------------


def _in_numpy(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run the NumPy function on the elements of concrete tensors in main memory; its array results become tensors."""

    def host(x: Any) -> Any:
        if isinstance(x, Array):
            if not _is_concrete(x) and not x._is_looked_at():
                raise _refusal(function, (x,), "tenferro has no counterpart of it")
            return np.asarray(x) if x._is_looked_at() else _seen(x._concrete())
        if x.__class__ in (list, tuple):
            return x.__class__([host(v) for v in x])
        return {k: host(v) for k, v in x.items()} if x.__class__ is dict else x

    found = function(*host(args), **host(kwargs))
    return found if function in COERCING else _as_tensors(found, args, kwargs)


def _seen(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A read-only view."""
    view = array.view()
    view.flags.writeable = False
    return view


def _is_concrete(x: Any) -> bool:
    return isinstance(x, Tensor) and x.spec.place.on_host


def _all_concrete(x: Any) -> bool:
    """Whether all tensors in nested sequences and dictionaries are concrete and in main memory."""
    if isinstance(x, Array):
        return _is_concrete(x) or x._is_looked_at()
    if x.__class__ is dict:
        x = tuple(x.values())
    return x.__class__ not in (list, tuple) or all(map(_all_concrete, x))


def _as_tensors(found: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if isinstance(found, np.ndarray | np.generic) and found.dtype.kind in "biufc":
        given = any(found is x for x in (*args, *kwargs.values()))
        return found if given else functions.asarray(found)
    if isinstance(found, tuple | list):
        parts = [_as_tensors(x, args, kwargs) for x in found]
        return type(found)(*parts) if hasattr(found, "_fields") else type(found)(parts)
    return found


def _refusal(function: Any, args: tuple[Any, ...], why: str) -> ForeignFunctionError:
    module = getattr(function, "__module__", None) or "numpy"
    name = f"{module}.{function.__name__}".replace("numpy", "np", 1)
    seen = next((x for x in args if isinstance(x, Array)), None)
    kind = "" if seen is None else f" on {seen.spec!r} ({type(seen).__name__})"
    there = counterpart(function)
    use = "use other functions of tr, tr.linalg and tr.fft"
    if there is not None and there.__module__ != _DIFFERENCES:
        part = _home(function)
        use = f"call tr.{part + '.' if part else ''}{there.__name__} with its own arguments"
    return ForeignFunctionError(
        f"{name} was called{kind}, and {why}; {use}, detach the value if a constant is intended, or give a function "
        "that calls NumPy its own rule with custom_rule",
        function=name,
    )


_DIFFERENCES: Final = "tenferro_tensor._numpy_differences"


def _written(result: Any, out: Any, name: str) -> Any:
    """The result, or `out` after the result has been written to it, as in NumPy."""
    if out is None or (isinstance(out, tuple) and all(o is None for o in out)):
        return result
    results = result if isinstance(result, tuple) else (result,)
    for given, found in zip(out, results, strict=True):
        if given is None:
            continue
        if isinstance(given, Array):
            given[...] = found
        elif isinstance(found, Array) and not isinstance(found, Tensor):
            raise ForeignFunctionError(
                f"np.{name} cannot write a {type(found).__name__} {found.spec!r} into a NumPy array: its derivative "
                "would be lost, or its elements are unknown; write a = a + x instead of a += x, or make a tensor of "
                "the array first",
                function=name,
            )
        else:
            np.copyto(given, np.asarray(found), casting="same_kind")
    return out if len(out) > 1 else out[0]
