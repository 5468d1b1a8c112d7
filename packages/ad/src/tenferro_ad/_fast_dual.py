"""The short way of ops on dual values with one or two operands: one table lookup and one rendered function.

It does what `_dual` does where everything is as usual: concrete values and tangents, one output, nothing asked by
`_modes`, no device scope open.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tenferro_ad import _modes
from tenferro_ad._dual import PUSHES, Dual
from tenferro_ad._push_plan import push_plan
from tenferro_runtime.extension import BoundedCache, Program, render
from tenferro_tensor import SCALARS, Array, Op, Tensor
from tenferro_tensor import dispatch as _select
from tenferro_tensor.operators import BINARY_OPERATORS
from tenferro_tensor_core import key_of

Code = Callable[..., Any]

SHORT: Final[BoundedCache[Any, Code | None]] = BoundedCache("short pushes", 4096, recency=False)
"""Code by (op, need, specs...); a Python scalar stands in a key by `key_of`."""


def _write(program: Program, arrays: int, tangents: int, moves: bool) -> Code:
    """``code(level, *arrays, *tangents)``: the dual value of an op of one output."""
    xs = [f"x{i}" for i in range(arrays)] + [f"t{i}" for i in range(tangents)]
    raws = ", ".join(f"{x}._data" for x in xs)
    lines = [f"def code(level, {', '.join(xs)}):", "    z = new(Tensor)"]
    if moves:
        lines += [
            "    t = new(Tensor)",
            f"    z._data, t._data = run({raws})",
            "    z.spec, t.spec = spec, spec",
            "    d = new(Dual)",
            "    d.value, d.spec, d.level, d.tangent = z, spec, level, t",
            "    return d",
        ]
    else:
        lines += [f"    z._data, = run({raws})", "    z.spec = spec", "    return z"]
    names: dict[str, Any] = {
        "__name__": "tenferro_ad.rendered",
        "new": object.__new__, "Tensor": Tensor, "Dual": Dual, "spec": program.outputs[0],
        "run": render(program, "raw"),
    }  # fmt: skip
    exec(compile("\n".join(lines), "<push>", "exec"), names)
    code: Code = names["code"]
    return code


def _learn(key: Any, op: Op, lower: list[Any], need: tuple[int, ...]) -> None:
    """Write the code of an op that has gone the long way often enough."""
    if op.primitive in PUSHES or _select.open_scopes:
        return
    if not op.primitive.elementwise and any(a.__class__ in SCALARS for a in lower):
        SHORT.put(key, None)  # the long way makes arrays of numbers that are operands of a structural op
        return
    plan = push_plan(op, need, tuple([a.__class__ if a.__class__ in SCALARS else a.spec for a in lower]))
    site = plan.site
    if site.many or not site.active:
        SHORT.put(key, None)
    elif plan.rendered_for(lower):
        traced = plan.program(lower)
        code = None
        if traced is not None:
            program, there, _ = traced
            code = _write(program, sum(a.__class__ is Tensor for a in lower), len(need), bool(there))
        SHORT.put(key, code)


def bind(self: Dual, op: Op, args: tuple[Any, ...]) -> Any:
    """`Dual._bind` with the short way for one and two operands in front."""
    if len(args) > 2 or _modes.slow or _select.open_scopes:
        return _bind_long(self, op, args)
    level = self.level
    if len(args) == 1:
        x, t = self.value, self.tangent
        if x.__class__ is not Tensor or t.__class__ is not Tensor:
            return _bind_long(self, op, args)
        key: Any = (op, x.spec)
        code = SHORT.table.get(key, _UNKNOWN)
        if code.__class__ is _Function:
            return code(level, x, t)
        if code is _UNKNOWN:
            result = _bind_long(self, op, args)
            _learn(key, op, [x], (0,))
            return result
        return _bind_long(self, op, args)
    x, y = args
    if x.__class__ is Dual and x.level == level:
        t = x.tangent
        x = x.value
        if y.__class__ is Dual and y.level == level:
            u = y.tangent
            y = y.value
            if not (x.__class__ is Tensor is y.__class__ is t.__class__ is u.__class__):
                return _bind_long(self, op, args)
            key = (op, 3, x.spec, y.spec)
            code = SHORT.table.get(key, _UNKNOWN)
            if code.__class__ is _Function:
                return code(level, x, y, t, u)
            need: tuple[int, ...] = (0, 1)
        else:
            if not (x.__class__ is Tensor is t.__class__):
                return _bind_long(self, op, args)
            need = (0,)
            if y.__class__ is Tensor:
                key = (op, 1, x.spec, y.spec)
                code = SHORT.table.get(key, _UNKNOWN)
                if code.__class__ is _Function:
                    return code(level, x, y, t)
            elif y.__class__ in SCALARS:
                exact = y and y == y and y.__class__ is not complex  # such a number is its own key beside its class
                key = (op, 1, x.spec, (y.__class__, y) if exact else key_of(y))
                code = SHORT.table.get(key, _UNKNOWN)
                if code.__class__ is _Function:
                    return code(level, x, t)
            else:
                return _bind_long(self, op, args)
    else:
        t = y.tangent
        y = y.value
        if not (y.__class__ is Tensor is t.__class__):
            return _bind_long(self, op, args)
        need = (1,)
        if x.__class__ is Tensor:
            key = (op, 2, x.spec, y.spec)
            code = SHORT.table.get(key, _UNKNOWN)
            if code.__class__ is _Function:
                return code(level, x, y, t)
        elif x.__class__ in SCALARS:
            exact = x and x == x and x.__class__ is not complex
            key = (op, 2, y.spec, (x.__class__, x) if exact else key_of(x))
            code = SHORT.table.get(key, _UNKNOWN)
            if code.__class__ is _Function:
                return code(level, y, t)
        else:
            return _bind_long(self, op, args)
    result = _bind_long(self, op, args)
    if code is _UNKNOWN:
        _learn(key, op, [x, y], need)
    return result


def unary(self: Dual, op: Op) -> Any:
    """`Dual._unary`."""
    return bind(self, op, (self,))


def _operator(op: Op, *, reflected: bool) -> Callable[[Dual, Any], Any]:
    def method(self: Dual, other: Any) -> Any:
        kind = other.__class__
        if kind in SCALARS or kind is Tensor or (kind is Dual and other.level == self.level):
            return bind(self, op, (other, self) if reflected else (self, other))
        if isinstance(other, (Array, np.ndarray, np.generic)):
            return op(other, self) if reflected else op(self, other)
        return NotImplemented

    return method


class _Unknown:
    """Nothing is known of a key yet."""


_UNKNOWN: Any = _Unknown()
_Function: Any = type(_operator)
_bind_long = Dual._bind


def install() -> None:
    """Put the short ways into the class."""
    for name, op in BINARY_OPERATORS.items():
        setattr(Dual, name, _operator(op, reflected=False))
        if name not in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"):
            setattr(Dual, f"__r{name[2:]}", _operator(op, reflected=True))
    for name, method in {"_bind": bind, "_unary": unary}.items():
        setattr(Dual, name, method)


install()
