"""autograd's package with tenferro behind it: its tests then call tenferro's functions and transforms.

Replaced are the functions of `autograd.numpy` and `autograd.scipy` that the namespace has, `make_vjp` and `make_jvp`,
on which autograd's operators and checks are built, `primitive` with its definitions of rules, which become custom
rules, and the containers, which are Python's own here.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from types import ModuleType
from typing import Any, Final

import numpy as np

import tenferro_ad as ta
import tenferro_runtime as tr

_AUTOGRAD: Final[Any] = import_module("autograd")
_RULES: Final[dict[Any, Callable[..., Any]]] = {}
"""For each primitive a function of the numbers of arguments, the value and the arguments to a pullback."""

_REPLACED: Final = {
    "autograd.numpy": "",
    "autograd.numpy.numpy_wrapper": "",
    "autograd.numpy.linalg": "linalg",
    "autograd.numpy.fft": "fft",
    "autograd.scipy.linalg": "linalg",
    "autograd.scipy.special": "special",
}
"""Modules of functions, and the part of the namespace that has them."""


def make_vjp(fun: Callable[..., Any], x: Any) -> tuple[Callable[..., Any], Any]:
    value, pull = ta.vjp(fun, x, convention="jax")
    return lambda g: pull(g)[0], value


def make_jvp(fun: Callable[..., Any], x: Any) -> Callable[..., Any]:
    return lambda v: ta.jvp(fun, (x,), (v,))


def primitive(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy arrays that is differentiated by the rule of `defvjp`."""

    @wraps(f)
    def wrapped(*args: Any, **options: Any) -> Any:
        traced = [_is_numeric(a) and any(map(_is_traced, tr.tree_leaves(a))) for a in args]
        parts = [a for a, chosen in zip(args, traced, strict=True) if chosen]
        others = [None if chosen else a for a, chosen in zip(args, traced, strict=True)]
        if not parts:
            return f(*map(_concrete, args), **options)

        def whole(parts: Any) -> list[Any]:
            left = iter(parts)
            return [next(left) if chosen else other for other, chosen in zip(others, traced, strict=True)]

        def value(*parts: Any) -> Any:
            return tr.asarray(f(*map(_concrete, whole(parts)), **options))

        def backward(primals: Any, outs: Any, cotangents: Any) -> tuple[Any, ...]:
            pull = _rule(wrapped)(np.flatnonzero(traced), outs[0], whole(primals), options)
            return tuple(tr.tree_map(tr.conj, g) for g in pull(tr.conj(cotangents[0])))

        spec = value(*tr.tree_map(tr.stop_gradient, parts)).spec
        return ta.custom_rule(vjp=backward, infer=lambda *_: spec)(value)(*parts)

    return wrapped


def _is_numeric(x: Any) -> bool:
    leaves = tr.tree_leaves(x)
    return bool(leaves) and all(isinstance(v, float | complex | np.ndarray | tr.Array) for v in leaves)


def _is_traced(x: Any) -> bool:
    return isinstance(x, tr.Array) and not isinstance(x, tr.Tensor)


def _concrete(x: Any) -> Any:
    return tr.tree_map(np.asarray, x) if _is_numeric(x) else x


def _rule(fun: Any) -> Callable[..., Any]:
    if fun not in _RULES:
        raise NotImplementedError(f"{fun} has no rule")
    return _RULES[fun]


def defvjp_argnums(fun: Any, maker: Callable[..., Any]) -> None:
    _RULES[fun] = maker


def defvjp(fun: Any, *makers: Any, argnums: Any = None) -> None:
    by_number = dict(enumerate(makers) if argnums is None else zip(argnums, makers, strict=True))

    def maker(numbers: Any, value: Any, args: Any, options: Any) -> Callable[..., Any]:
        chosen = [(by_number.get(i), args[i]) for i in numbers]
        pulls = [tr.zeros_like(x) if make is None else make(value, *args, **options) for make, x in chosen]
        return lambda g: [pull(g) if callable(pull) else pull for pull in pulls]

    defvjp_argnums(fun, maker)


def defvjp_argnum(fun: Any, maker: Callable[..., Any]) -> None:
    def all_of(numbers: Any, value: Any, args: Any, options: Any) -> Callable[..., Any]:
        pulls = [maker(i, value, args, options) for i in numbers]
        return lambda g: [pull(g) for pull in pulls]

    defvjp_argnums(fun, all_of)


class _Spaces(dict[type, Any]):
    """autograd's table from classes to vector spaces, with all classes of tensors."""

    def __missing__(self, kind: type) -> Any:
        if issubclass(kind, tr.Array):
            return _space
        raise KeyError(kind)


def _space(x: Any) -> Any:
    """autograd's description of an array, from that of a tensor, which may have no elements to look at."""
    spaces = import_module("autograd.numpy.numpy_vspaces")
    dtype = np.dtype(str(x.dtype))
    space = object.__new__(spaces.ComplexArrayVSpace if dtype.kind == "c" else spaces.ArrayVSpace)
    space.shape, space.dtype = x.shape, dtype
    return space


def _modules(name: str) -> list[ModuleType]:
    """Modules of autograd that have a name."""
    parts = ("", ".core", ".extend", ".tracer", ".builtins", ".differential_operators", ".test_util", ".misc.flatten")
    return [module for part in parts if hasattr(module := import_module(f"autograd{part}"), name)]


def install() -> None:
    """Replace what the tests of autograd import."""
    core = import_module("autograd.core")
    to_nary = import_module("autograd.wrap_util").unary_to_nary
    for name, function in (("make_vjp", make_vjp), ("make_jvp", make_jvp)):
        original = getattr(core, name)
        for module in _modules(name):
            setattr(module, name, function if getattr(module, name) is original else to_nary(function))
        setattr(import_module("autograd.differential_operators"), f"_{name}", function)
    replaced = (primitive, defvjp, defvjp_argnum, defvjp_argnums)
    own = {function.__name__: function for function in replaced}
    own |= {name: getattr(builtins, name) for name in ("dict", "isinstance", "list", "tuple", "type")}
    for name, value in own.items():
        for module in _modules(name):
            setattr(module, name, value)
    core.VSpace.mappings = _Spaces(core.VSpace.mappings)
    for name, part in _REPLACED.items():
        module = import_module(name)
        family: Any = getattr(tr, part) if part else tr
        for word in dir(module):
            found = getattr(family, word, None)
            if isinstance(getattr(np, word, None), np.ufunc) and not part:
                found = getattr(np, word)  # which takes objects of all libraries
            if callable(found) and word != "where" and not word.startswith("_"):
                setattr(module, word, found)
    _replace_own_forms()


def _replace_own_forms() -> None:
    """Functions of which autograd has forms of its own."""
    anp: Any = import_module("autograd.numpy")
    anp.r_, anp.c_, anp.trace, anp._original_where = tr.r_, tr.c_, tr.linalg.trace, np.where
    anp.stack = lambda arrays, axis=0: tr.stack([*arrays], axis=axis)
    anp.make_diagonal = lambda d, axis1=-1, axis2=-2: d[..., None] * tr.eye(d.shape[-1])
    special: Any = import_module("autograd.scipy.special")
    logsumexp = import_module("scipy.special").logsumexp  # which takes weights
    special.logsumexp = lambda a, b=None, **options: logsumexp(
        tr.asarray(a), b=None if b is None else tr.asarray(b), **options
    )
