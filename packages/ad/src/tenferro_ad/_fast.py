"""Generated recording methods: the short way of operators and of ops with one or two operands.

They do what `_record` does, unrolled, where everything is as usual: concrete values or values of lower levels, one
output, nothing asked by `_modes`, no device scope open. A table says which specs have been through the long way
before; its entries hold the kernel, the output spec and the pullback plan.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from textwrap import indent
from typing import Any, Final

import numpy as np

from tenferro_ad import _modes
from tenferro_ad._blame import blamed
from tenferro_ad._eager import EagerTensor
from tenferro_ad._node import Node, next_seq, places
from tenferro_ad._plan import PullbackPlan, pullback_plan
from tenferro_ad._record import HOOKS
from tenferro_ad._rules import rule_of
from tenferro_runtime.extension import BoundedCache, Linear, Slopes
from tenferro_tensor import SCALARS, Array, Op, Spec, Tensor, catalog
from tenferro_tensor import dispatch as _select
from tenferro_tensor._shortcuts import Recording, Shortcuts, when_offered
from tenferro_tensor.functions.linear_algebra import PRODUCTS
from tenferro_tensor.operators import BINARY_OPERATORS
from tenferro_tensor.ownership import owned
from tenferro_tensor_core import float64

Entry = tuple[Callable[..., Any], Spec, PullbackPlan]

SHORT: Final[BoundedCache[Any, Entry]] = BoundedCache("short recording", 4096, recency=False)
"""Entries by (op, need, specs...)."""

_METHODS: Final = """
def method(self, other):
    if not modes.slow and not select.open_scopes:
        kind = other.__class__
        spec = self.spec
        if kind is EagerTensor:
            if other.level == self.level:
                entry = both.get(spec) if other.spec is spec else mixed.get((spec, other.spec))
                if entry is not None:
                    {both}
        elif kind is Tensor:
            entry = left.get((spec, other.spec))
            if entry is not None:
                {left}
        elif kind in SCALARS:
            entry = left.get((spec, kind))
            if entry is not None:
                {number_right}
    elif modes.slow and modes.silent(self.level) and not isinstance(other, ndarray):
        if other.__class__ is EagerTensor and other.level == self.level:
            other = other.value
        return operate(self.value, other)
    return miss(self, other)

def reflected(self, other):
    if not modes.slow and not select.open_scopes:
        kind = other.__class__
        if kind in SCALARS:
            entry = right.get((kind, self.spec))
            if entry is not None:
                {number_left}
    return miss(other, self)
"""
"""The methods of an operator; each gap takes one recording."""

_RECORDING: Final = """
run, out, plan = entry
pull = plan.how[1]
x = {x}
y = {y}
try:
    if {concrete}:
        z = new(Tensor)
        z._data = run({raws})
        z.spec = out
    else:
        z = operate(x, y)
        pull = blamed(pull, z)
except OverflowError:  # a number beyond the range of the dtype: the long way words the error
    return miss({operands})
n = new(Node)
n.seq = seq()
n.pull = pull
n.parents = ({parents},)
n.saved = ({saved})
r = new(EagerTensor)
r.value = z
r.spec = out
r.level = self.level
r.node = n
return r
"""
"""Run the kernel on what is inside the operands, and leave one node."""


def _methods_text(op: Op, spec: Spec) -> str:
    def recording(need: tuple[int, ...], **gaps: str) -> str:
        save = pullback_plan(op, need, (spec, spec)).site.save
        return _RECORDING.format(saved="".join(f"{'xyz'[i]}, " for i in save), **gaps).strip()

    on_the_left = {"x": "self.value", "operands": "self, other"}
    texts = {
        "both": recording(
            (0, 1), **on_the_left, y="other.value", parents="self.node, other.node", raws="x._data, y._data",
            concrete="x.__class__ is Tensor is y.__class__",
        ),
        "left": recording(
            (0,), **on_the_left, y="owned(other)" if 1 in pullback_plan(op, (0,), (spec, spec)).site.save else "other",
            parents="self.node", raws="x._data, y._data", concrete="x.__class__ is Tensor",
        ),
        "number_right": recording(
            (0,), **on_the_left, y="other", parents="self.node", raws="x._data, y", concrete="x.__class__ is Tensor"
        ),
        "number_left": recording(
            (1,), x="other", y="self.value", operands="other, self", parents="self.node", raws="x, y._data",
            concrete="y.__class__ is Tensor",
        ),
    }  # fmt: skip
    lines = []
    for line in _METHODS.splitlines():
        gap = line.strip().strip("{}")
        lines.append(indent(texts[gap], line[: len(line) - len(line.lstrip())]) if gap in texts else line)
    return "\n".join(lines)


_DIFFERENTIABLE: Final = (catalog.add, catalog.sub, catalog.mul, catalog.div, catalog.pow)
_NEED: Final = {"both": (0, 1), "left": (0,), "right": (1,)}
_FOREIGN: Final = (Array, np.ndarray, np.generic)


def install_methods(name: str, op: Op, spec: Spec) -> bool:
    """Generate the methods of an operator; ``False`` where its rule is of a kind that the long way serves."""
    rule = rule_of(op)
    if not isinstance(rule, (Slopes, Linear)) or any(i not in rule.operands for i in op.primitive.operands):
        return False
    tables = _tables(op.primitive.name)

    def miss(x: Any, y: Any) -> Any:
        if not all(a.__class__ in SCALARS or isinstance(a, _FOREIGN) for a in (x, y)):
            return NotImplemented
        result = op(x, y)
        if result.__class__ is EagerTensor and not _select.open_scopes:
            _learn(op, x, y, result.level, tables)
        return result

    _install(name, op, spec, miss, tables, (False, True))
    return True


_PRODUCT: Final = catalog.dot_general.op(contract=((1,), (0,)), batch=((), ()))
"""A product to tell what all save: each operand where the other one is differentiated."""


def install_product() -> None:
    """Generate the method of ``@``, for products that are one `dot_general` as they stand."""
    tables = _tables("matrix products")

    def miss(x: Any, y: Any) -> Any:
        result = Array.__matmul__(x, y)
        if result.__class__ is EagerTensor and isinstance(y, Array) and not _select.open_scopes:
            op = PRODUCTS.get((x.spec, y.spec))
            if op is not None:
                _learn(op, x, y, result.level, tables)
        return result

    _install("__matmul__", _PRODUCT, Spec((1, 1), float64), miss, tables, (False,))


def _tables(name: str) -> dict[str, BoundedCache[Any, Entry]]:
    return {
        table: BoundedCache(f"recording of {name}, {table}", 512, recency=False)
        for table in ("both", "mixed", "left", "right")
    }


def _install(
    name: str,
    op: Op,
    spec: Spec,
    miss: Callable[[Any, Any], Any],
    tables: dict[str, BoundedCache[Any, Entry]],
    sides: tuple[bool, ...],
) -> None:
    """Put generated methods into the class: the plain one, the reflected one, or both."""
    names: dict[str, Any] = {
        "__name__": "tenferro_ad.rendered",
        "modes": _modes, "select": _select, "EagerTensor": EagerTensor, "Tensor": Tensor, "Node": Node,
        "SCALARS": SCALARS, "new": object.__new__, "seq": next_seq, "operate": getattr(operator, name), "miss": miss,
        "blamed": blamed, "owned": owned,
        "ndarray": np.ndarray,
        **{table: cache.table for table, cache in tables.items()},
    }  # fmt: skip
    exec(compile(_methods_text(op, spec), f"<recording of {op.primitive.name}>", "exec"), names)
    save = {side: pullback_plan(op, need, (spec, spec)).site.save for side, need in _NEED.items()}
    recording = Recording(
        EagerTensor, Node, PullbackPlan, places, vars(_modes), {k: t.table for k, t in tables.items()}, save
    )
    methods = [(reflected, names["reflected" if reflected else "method"]) for reflected in sides]
    for reflected, method in methods:
        method.__name__ = f"__{'r' * reflected}{name.strip('_')}__"
        setattr(EagerTensor, method.__name__, method)

    def shorten(shortcuts: Shortcuts) -> None:
        for reflected, method in methods:
            found = shortcuts.record_operator(method.__name__, method, recording, reflected=reflected)
            setattr(EagerTensor, method.__name__, found)

    when_offered(shorten)


def _learn(op: Op, x: Any, y: Any, level: int, tables: dict[str, BoundedCache[Any, Entry]]) -> None:
    """Remember specs that went the long way, if the kernel is known by now."""
    mine = [a.__class__ is EagerTensor and a.level == level for a in (x, y)]
    given = tuple([a.__class__ if a.__class__ in SCALARS else getattr(a, "spec", None) for a in (x, y)])
    forward = op.plans.get(given)
    if forward is None or forward.many:
        return
    need = tuple([i for i, m in enumerate(mine) if m])
    entry = (forward.run, forward.out, pullback_plan(op, need, given))
    if need == (0, 1):
        table, key = ("both", given[0]) if given[0] is given[1] else ("mixed", given)
    else:
        table, key = "left" if need == (0,) else "right", given
    tables[table].put(key, entry)


def _first_use(name: str, op: Op, *, reflected: bool) -> Callable[[Any, Any], Any]:
    """The method in place until an operator is first used on a differentiated value: generates the real one."""

    def method(self: EagerTensor, other: Any) -> Any:
        if not (other.__class__ in SCALARS or isinstance(other, _FOREIGN)):
            return NotImplemented
        if install_methods(name, op, self.spec):
            chosen = getattr(EagerTensor, f"__r{name.strip('_')}__" if reflected else name)
            return chosen(self, other)
        return op(other, self) if reflected else op(self, other)

    return method


def _first_product(self: EagerTensor, other: Any) -> Any:
    """The method in place until a product is first recorded."""
    install_product()
    return self @ other


def bind(self: EagerTensor, op: Op, args: tuple[Any, ...]) -> Any:
    """`EagerTensor._bind` with the short way for one and two operands in front."""
    if len(args) == 2 and not _modes.slow and not _select.open_scopes:
        x, y = args
        level = self.level
        parents: tuple[Node, ...] = ()
        if x.__class__ is EagerTensor and x.level == level:
            if y.__class__ is EagerTensor and y.level == level:
                entry = SHORT.table.get((op, 3, x.spec, y.spec))
                if entry is not None:
                    parents = (x.node, y.node)
                    x, y = x.value, y.value
            elif y.__class__ in SCALARS:
                entry = None
            else:
                entry = SHORT.table.get((op, 1, x.spec, y.spec))
                if entry is not None:
                    parents = (x.node,)
                    x = x.value
                    if y.__class__ is Tensor and y._data.__class__ is np.ndarray and y._data.base is not None:
                        owned(y)
        elif x.__class__ in SCALARS:
            entry = None
        else:
            entry = SHORT.table.get((op, 2, x.spec, y.spec))
            if entry is not None:
                parents = (y.node,)
                y = y.value
                if x.__class__ is Tensor and x._data.__class__ is np.ndarray and x._data.base is not None:
                    owned(x)
        if entry is not None:
            run, out, plan = entry
            if x.__class__ is Tensor is y.__class__:
                z = _new(Tensor)
                z._data = run(x._data, y._data)
                z.spec = out
            else:
                z = op(x, y)
            _, pull, keep = plan.how
            return _recorded(z, out, level, pull, parents, keep(x, y, z))
        result = _bind_long(self, op, args)
        if result.__class__ is EagerTensor and x.__class__ not in SCALARS and y.__class__ not in SCALARS:
            mine = [a.__class__ is EagerTensor and a.level == level for a in args]
            forward = op.plans.get((x.spec, y.spec))
            if forward is not None and not forward.many:
                need = tuple([i for i, m in enumerate(mine) if m])
                plan = pullback_plan(op, need, (x.spec, y.spec))
                SHORT.put((op, mine[0] + 2 * mine[1], x.spec, y.spec), (forward.run, forward.out, plan))
        return result
    return _bind_long(self, op, args)


def unary(self: EagerTensor, op: Op) -> Any:
    """`EagerTensor._unary` with the short way in front."""
    if _modes.slow or _select.open_scopes:
        return _bind_long(self, op, (self,))
    entry = SHORT.table.get((op, self.spec))
    if entry is None:
        result = _bind_long(self, op, (self,))
        forward = op.plans.get((self.spec,))
        plain = result.__class__ is EagerTensor and op.primitive not in HOOKS
        if plain and forward is not None and not forward.many:
            plan = pullback_plan(op, (0,), (self.spec,))
            SHORT.put((op, self.spec), (forward.run, forward.out, plan))
        return result
    run, out, plan = entry
    x = self.value
    if x.__class__ is Tensor:
        z = _new(Tensor)
        z._data = run(x._data)
        z.spec = out
    else:
        z = x._unary(op)
    _, pull, keep = plan.how
    return _recorded(z, out, self.level, pull, (self.node,), keep(x, z))


def _recorded(z: Any, out: Spec, level: int, pull: Any, parents: tuple[Node, ...], saved: Any) -> EagerTensor:
    if z.__class__ is not Tensor:
        pull = blamed(pull, z)
    n = _new(Node)
    n.seq, n.pull, n.parents, n.saved = next_seq(), pull, parents, saved
    r = _new(EagerTensor)
    r.value, r.spec, r.level, r.node = z, out, level, n
    return r


_new = object.__new__
_bind_long = EagerTensor._bind


def install() -> None:
    """Put the short ways into the class."""
    for name, op in BINARY_OPERATORS.items():
        if op.primitive in _DIFFERENTIABLE:
            setattr(EagerTensor, name, _first_use(name, op, reflected=False))
            setattr(EagerTensor, f"__r{name[2:]}", _first_use(name, op, reflected=True))
    EagerTensor.__matmul__ = _first_product  # type: ignore[method-assign, assignment]
    for name, method in {"_bind": bind, "_unary": unary}.items():
        setattr(EagerTensor, name, method)
    when_offered(_shorten_unary)


def _shorten_unary(shortcuts: Shortcuts) -> None:
    recording = Recording(EagerTensor, Node, PullbackPlan, places, vars(_modes), {"unary": SHORT.table}, {})
    EagerTensor._unary = shortcuts.record_unary("_unary", unary, recording)  # type: ignore[method-assign]


install()
