"""Guests with mistakes drawn at every hook, and everything that a user may do with them."""

import os
import random
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import numpy as np

import tenferro_runtime as tr
from tenferro_ad import grad, hessian, jvp, variable, vjp
from tenferro_runtime.extension import Cost, General, Inactive, Linear, Slopes, catalog
from tenferro_tensor import REGISTRY, Array, Primitive, Spec
from tenferro_xla import XlaExecutor

_numbers = count()


class GuestFault(Exception):
    """What the code of a guest raises; a user sees it as it is."""


def fails(*_: Any, **__: Any) -> Any:
    raise GuestFault("the guest's own code")


INFER: dict[str, Callable[..., Any]] = {
    "right": lambda x: x,
    "pair": lambda x: (x, x),
    "fails": fails,
    "None": lambda x: None,
    "list": lambda x: [x],
    "text": lambda x: "float64[3]",
    "empty": lambda x: (),
    "shape": lambda x: x.with_(shape=(7,)),
    "dtype": lambda x: x.with_(dtype=np.dtype("int8")),
    "negative": lambda x: x.with_(shape=(-1,)),
    "numbers alone": lambda x: x.with_(shape=(len(range(x.shape[0])),)),
}
KERNELS: dict[str, Callable[..., Any]] = {
    "right": lambda x: x * 2,
    "pair": lambda x: (x, x * 2),
    "fails": fails,
    "None": lambda x: None,
    "short": lambda x: x[:1],
    "dtype": lambda x: x.astype("f4"),
    "list": lambda x: x.tolist(),
    "arity": lambda: 1.0,
    "operand": lambda x: x,
    "number": lambda x: 3,
    "text": lambda x: "three",
}
MAKERS: dict[str, Callable[[Any], Any]] = {
    "right": lambda kernel: lambda ins, outs: kernel,
    "fails": lambda kernel: fails,
    "None": lambda kernel: lambda ins, outs: None,
    "arity": lambda kernel: lambda: kernel,
    "no function": lambda kernel: 3,
    "any size": lambda kernel: _marked(lambda ins, outs: kernel, any_size=True),
    "sizes": lambda kernel: _marked(
        lambda ins, outs: lambda x, n: kernel(x), sizes=lambda ins, outs: (ins[0].shape[0],)
    ),
    "wrong sizes": lambda kernel: _marked(lambda ins, outs: kernel, sizes=lambda ins, outs: 3),
    "failing sizes": lambda kernel: _marked(lambda ins, outs: kernel, sizes=fails),
    "text of sizes": lambda kernel: _marked(lambda ins, outs: kernel, sizes=lambda ins, outs: ("n",)),
}
RULES: dict[str, Any] = {
    "right": Linear(x=lambda g: 2.0 * g),
    "none": None,
    "no record": 3,
    "a function": lambda g: g,
    "fails": Linear(x=fails),
    "parameter": Linear(x=lambda g, axis: g),
    "None": Linear(x=lambda g: None),
    "number": Linear(x=lambda g: 3),
    "text": Linear(x=lambda g: "g"),
    "shape": Linear(x=lambda g: g[:1]),
    "operand": Linear(y=lambda g: g),
    "slopes": Slopes(x=2.0),
    "slope function": Slopes(x=lambda out: 2.0),
    "slope None": Slopes(x=lambda x: None),
    "slope text": Slopes(x=lambda x: "2"),
    "slope shape": Slopes(x=lambda x: x[:1]),
    "slope fails": Slopes(x=fails),
    "forward": General(jvp=lambda primals, tangents, outs: (tangents[0],), forward=lambda primals, tangents: 3),
    "forward count": General(
        jvp=lambda primals, tangents, outs: (tangents[0],), forward=lambda primals, tangents: ((), ())
    ),
    "inactive": Inactive(),
    "jvp": General(jvp=lambda primals, tangents, outs: (tangents[0] * 2.0,)),
    "jvp count": General(jvp=lambda primals, tangents, outs: (tangents[0], tangents[0], tangents[0])),
    "jvp bare": General(jvp=lambda primals, tangents, outs: tangents[0]),
    "jvp None": General(jvp=lambda primals, tangents, outs: None),
    "jvp arity": General(jvp=lambda primals: primals),
    "jvp shape": General(jvp=lambda primals, tangents, outs: (tangents[0][:1],)),
    "vjp": General(vjp=lambda primals, outs, cotangents: (cotangents[0] * 2.0,)),
    "vjp count": General(vjp=lambda primals, outs, cotangents: ()),
    "vjp bare": General(vjp=lambda primals, outs, cotangents: cotangents[0]),
    "vjp None": General(vjp=lambda primals, outs, cotangents: None),
    "vjp text": General(vjp=lambda primals, outs, cotangents: ("g",)),
    "vjp shape": General(vjp=lambda primals, outs, cotangents: (cotangents[0][:1],)),
    "vjp dtype": General(vjp=lambda primals, outs, cotangents: (tr.astype(cotangents[0], tr.float32),)),
    "vjp fails": General(vjp=fails),
}
LOWERINGS: dict[str, Any] = {
    "none": None,
    "fails": fails,
    "None": lambda e, operands, outs: None,
    "operand": lambda e, operands, outs: operands[0],
    "text": lambda e, operands, outs: "x",
    "many": lambda e, operands, outs: [operands[0]] * 3,
    "not callable": 3,
}
COSTS: dict[str, Any] = {
    "none": None,
    "right": lambda ins, outs: Cost(1),
    "fails": fails,
    "None": lambda ins, outs: None,
    "number": lambda ins, outs: 3,
    "text": lambda ins, outs: Cost("many"),  # type: ignore[arg-type]
    "negative": lambda ins, outs: Cost(-1, -1, -1),
}
PRUNINGS: dict[str, Any] = {
    "none": None,
    "keep": lambda op, used: None,
    "fails": fails,
    "text": lambda op, used: "op",
    "index": lambda op, used: (catalog.neg.op(), (5, 5)),
    "short": lambda op, used: (catalog.neg.op(), ()),
    "other": lambda op, used: (catalog.neg.op(), (0, 0)),
    "no op": lambda op, used: (3, (0, 0)),
}
CODECS: dict[str, Any] = {
    "none": None,
    "right": (dict, dict),
    "encode fails": (fails, dict),
    "decode fails": (dict, fails),
    "encode None": (lambda p: None, dict),
    "decode None": (dict, lambda p: None),
    "encode object": (lambda p: {"a": object()}, dict),
    "decode more": (dict, lambda p: {"more": 1}),
}
HOOKS = {
    "infer": INFER, "kernel": KERNELS, "maker": MAKERS, "rule": RULES, "lowering": LOWERINGS, "cost": COSTS,
    "pruning": PRUNINGS, "codec": CODECS,
}  # fmt: skip


def _marked(make: Any, **marks: Any) -> Any:
    vars(make).update(marks)
    return make


class Guest:
    """A guest with one to three mistakes.

    Attributes:
        chosen: what was drawn for each hook.
        primitive: the primitive.
    """

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        self.chosen = dict.fromkeys(HOOKS, "right") | dict.fromkeys(("lowering", "cost", "pruning", "codec"), "none")
        for hook in rng.sample(list(HOOKS), rng.choice([1, 1, 2, 3])):
            self.chosen[hook] = rng.choice(list(HOOKS[hook]))
        infer = INFER[self.chosen["infer"]]
        name = f"guest_{next(_numbers)}"

        def inferred(x: Spec) -> Any:
            return infer(x)

        inferred.__name__ = inferred.__qualname__ = name
        elementwise = rng.random() < 0.3
        self.primitive = Primitive(inferred, family=f"guests.{name}.v1", elementwise=elementwise)
        self.registrations = [
            lambda: REGISTRY.kernel(
                self.primitive, "cpu", MAKERS[self.chosen["maker"]](KERNELS[self.chosen["kernel"]])
            ),
            *[
                lambda hook=hook, entry=HOOKS[hook][self.chosen[hook]]: getattr(REGISTRY, hook)(self.primitive, entry)
                for hook in ("rule", "lowering", "cost")
                if HOOKS[hook][self.chosen[hook]] is not None
            ],
        ]
        if PRUNINGS[self.chosen["pruning"]] is not None:
            self.registrations.append(lambda: REGISTRY.pruning(self.primitive, PRUNINGS[self.chosen["pruning"]]))
        if CODECS[self.chosen["codec"]] is not None:
            self.registrations.append(lambda: REGISTRY.codec(self.primitive, *CODECS[self.chosen["codec"]]))

    def uses(self) -> Iterator[tuple[str, Callable[[], Any]]]:
        """Everything that a user may do with the primitive, by name."""
        p, x = self.primitive, tr.asarray([1.0, 2.0, 3.0])

        def f(v: Any) -> Any:
            out = p(v)
            return out[-1] if isinstance(out, tuple) and out else out if isinstance(out, Array) else fails()

        def total(v: Any) -> Any:
            return tr.sum(f(v) * v)

        for i, register in enumerate(self.registrations):
            yield f"register {i}", register
        yield "eager", lambda: p(x)
        yield "again", lambda: p(x) if p(x) is not None else None
        yield "number", lambda: p(2.0)
        yield "recorded", lambda: f(variable(x))
        yield "backward", lambda: total(variable(x)).backward()
        yield "grad", lambda: grad(total)(x)
        yield "vjp", lambda: vjp(f, x)[1](x)
        yield "jvp", lambda: jvp(f, (x,), (x,))
        yield "hessian", lambda: hessian(total)(x)
        yield "compiled", lambda: tr.compile(f)(x)
        yield "compiled total", lambda: [tr.compile(total)(x), tr.compile(total)(x[:2])]
        yield "compiled grad", lambda: tr.compile(grad(total))(x)
        yield "grad of compiled", lambda: grad(tr.compile(total))(x)
        yield "explained", lambda: str(tr.trace(total, x).explain())
        yield "drawn", lambda: str(tr.trace(total, x))
        yield "profiled", lambda: tr.trace(total, x).profile(x)
        yield "saved", lambda: _through_a_file(tr.trace(total, x), x)
        yield "in a loop", lambda: tr.compile(lambda v: tr.scan(lambda c, r: (c, f(r[None])), 0.0, v))(x)
        yield "in a branch", lambda: tr.compile(lambda v: tr.cond(tr.sum(v) > 0.0, f, lambda u: u, v))(x)
        yield "lowered", lambda: XlaExecutor().run(tr.trace(total, x), x)


def _through_a_file(program: Any, x: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program")
        program.save(path)
        return tr.load(path).run(x)
