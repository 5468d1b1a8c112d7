"""Checks of the ways to run an op: recorded, traced, compiled, from a file, expanded, pruned, lowered."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tenferro_ad._rules import rule_of
from tenferro_ad._variable import variable
from tenferro_ad.primitive_checks._subject import Arrays, Subject
from tenferro_runtime import compile, load, trace, vmap
from tenferro_runtime.batching import how_batched
from tenferro_runtime.extension import REGISTRY, Cost
from tenferro_runtime.passes import pruned
from tenferro_runtime.tracing.expanding import apply_expansion, has_expansion
from tenferro_tensor.checking import LeftOut, close, identical
from tenferro_tensor_core import Dim, TenferroError, evaluate

Executor = Callable[..., Any]


def modes(subject: Subject) -> Iterator[str]:
    """Check recorded, traced and compiled calls against plain calls."""
    want = subject.results(subject.arrays)
    operands = subject.put(subject.arrays)
    op = subject.op
    ways: dict[str, Callable[[], Any]] = {
        "recorded": lambda: op(*[variable(x) if x.spec.inexact else x for x in operands]),
        "traced": lambda: trace(op, *operands).run(*operands),
        "compiled": lambda: compile(lambda *xs: op(*xs))(*operands),
        "deterministic": lambda: compile(lambda *xs: op(*xs), deterministic=True)(*operands),
    }
    for name, run in ways.items():
        if name == "recorded" and not _recordable(subject):
            continue
        try:
            got = _elements(run())
        except Exception as error:
            yield f"{name}, the op raises {type(error).__name__} ({error}), but not in a plain call"
            continue
        if not all(map(identical if name == "deterministic" else close, got, want)):
            yield f"{name}, the op returns other results than in a plain call; a kernel may depend only on its operands"
    yield from _other_sizes(subject)


def batches(subject: Subject) -> Iterator[str]:
    """Check `vmap` over all operands, and over each alone, against single calls."""
    lanes = _unrelated(subject)
    how = how_batched(subject.op.primitive)
    count = len(subject.arrays)
    for mapped in {tuple(range(count)), *[(i,) for i in range(count)]}:
        axes = tuple([0 if i in mapped else None for i in range(count)])
        rows = [[lane[i] if i in mapped else lanes[0][i] for i in range(count)] for lane in lanes]
        want = [np.stack(column) for column in zip(*map(subject.results, rows), strict=True)]
        given = [np.stack([row[i] for row in rows]) if i in mapped else rows[0][i] for i in range(count)]
        try:
            got = _elements(vmap(lambda *xs: subject.op(*xs), axes)(*subject.put_lanes(given)))
        except Exception as error:
            yield f"under vmap with in_axes={axes} ({how}), the op raises {type(error).__name__} ({error})"
            continue
        if not all(map(close, got, want)):
            made = REGISTRY.registration("batching", subject.op.primitive)
            of = f"rule of {made.owner}" if made is not None else "kernel or the expansion, which serve all lanes"
            yield f"under vmap with in_axes={axes} ({how}), the op returns other results than alone; correct the {of}"


def _unrelated(subject: Subject) -> list[Arrays]:
    """The operands of three lanes: the example, and elements that no rearrangement of it has, within its range."""
    rng = np.random.default_rng(0)

    def scaled(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return a * a.dtype.type(rng.uniform(0.9, 1.0)) if a.dtype.kind in "fc" else a

    def mixed(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        other = rng.permutation(a.ravel()).reshape(a.shape)
        if a.dtype.kind not in "fc":
            return other
        between = (a + (other - a) * rng.uniform(0.2, 0.8, a.shape)).astype(a.dtype)
        return scaled(a) if np.array_equal(between, a) else between

    for vary in (mixed, scaled):
        lanes = [subject.arrays, *[[np.asarray(vary(a)) for a in subject.arrays] for _ in range(2)]]
        try:
            for lane in lanes:
                subject.results(lane)
        except Exception:  # the kernel may refuse these values, as of matrices that are no longer symmetric
            continue
        return lanes
    return [subject.arrays] * 3


def _recordable(subject: Subject) -> bool:
    """Whether the op can be recorded, which requires a rule."""
    try:
        rule_of(subject.op)
    except TenferroError:
        return False
    return any(s.inexact for s in subject.specs)


def _other_sizes(subject: Subject) -> Iterator[str]:
    """Check one compiled function at other sizes, which kernel makers marked by sized or any_size share."""
    f = compile(lambda *xs: subject.op(*xs))
    f(*subject.operands)
    for arrays in subject.larger():
        shown = ", ".join(str(a.shape) for a in arrays)
        try:
            want = subject.results(arrays)
        except TenferroError:
            continue
        try:
            got = _elements(f(*subject.put(arrays)))
        except Exception as error:
            yield (
                f"compiled at the example and run at the shapes {shown}, the op raises {type(error).__name__} "
                f"({error}); a kernel maker that reads extents must not be marked by sized or any_size"
            )
            continue
        if not all(map(close, got, want)):
            yield (
                f"compiled at the example and run at the shapes {shown}, the op returns other results than a plain "
                "call; a kernel maker that reads extents must not be marked by sized or any_size"
            )


def files(subject: Subject) -> Iterator[str]:
    """Check that a program with the op survives saving and loading."""
    p = subject.op.primitive
    if p.family is None and not p._rule.__module__.startswith("tenferro_"):
        raise LeftOut("it has no family id, so programs with it cannot be saved; give it one, primitive(family=...)")
    program = trace(subject.op, *subject.operands)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program")
        try:
            saved = program.save(path)
            loaded = load(path)
        except TenferroError as error:
            yield str(error)
            return
    here, there = ([eq.op for eq in p.equations if eq.op.primitive is subject.op.primitive] for p in (program, loaded))
    if loaded.content_hash != saved or here != there:
        yield (
            f"a program with {here[0]!r} has {there[0] if there else 'none'!r} in its place after loading; correct "
            "the codec of the primitive: decode must undo encode"
        )
        return
    if not all(map(close, _elements(loaded.run(*subject.operands)), subject.results(subject.arrays))):
        yield "a program returns other results after saving and loading; make the kernel depend only on the metadata"


def pruning(subject: Subject) -> Iterator[str]:
    """Check that the pruned op returns the used outputs."""
    found = REGISTRY.find("pruning", subject.op.primitive)
    if found is None:
        raise LeftOut("no pruning is registered")
    want = subject.results(subject.arrays)
    for i in range(len(want)):
        made = pruned(subject.op, tuple([j == i for j in range(len(want))]))
        if made is None:
            continue
        op, outputs = made
        got = Subject(op, subject.operands).results(subject.arrays)
        position = outputs[i]
        if position is None or not (identical if found.keeps_bits else close)(got[position], want[i]):
            yield f"with only output {i} used, the op becomes {op!r}, whose results differ; correct the pruning"


def costs(subject: Subject) -> Iterator[str]:
    """Check that the cost model returns a `Cost`, the same for numbers and symbolic sizes."""
    model = REGISTRY.find("cost", subject.op.primitive)
    if model is None:
        raise LeftOut("no cost model is registered")
    outs = subject.infer(subject.specs)
    cost = model(tuple(subject.specs), outs, **subject.op.params)
    if not isinstance(cost, Cost):
        yield f"the cost model returned {cost!r:.80}; return a Cost"
        return
    if any(isinstance(n, int) and n < 0 for n in cost):
        yield f"the cost model returned a negative count, {cost!r}"
    specs, values = subject.open_specs()
    out = subject.infer(specs)
    if out is None or not values:
        return
    symbolic = model(tuple(specs), out, **subject.op.params)
    counted = tuple([evaluate(n, values) if isinstance(n, Dim) else n for n in symbolic])
    if counted != tuple(cost):
        yield f"the cost for symbolic sizes is {counted} here, but {tuple(cost)} for numbers; correct the cost model"


def expansion(subject: Subject) -> Iterator[str]:
    """Check the expansion of the op against the kernel."""
    if not has_expansion(subject.op.primitive):
        raise LeftOut("no expansion is registered")
    try:
        got = _elements(apply_expansion(subject.op, subject.operands))
    except Exception as error:
        yield f"the expansion raises {type(error).__name__} ({error}); correct it"
        return
    for i, (y, kernel) in enumerate(zip(got, subject.results(subject.arrays), strict=True)):
        if not close(y, kernel):
            yield f"output {i} of the expansion differs from the kernel's; correct one of them"


def lowering(subject: Subject, executor: Executor | None) -> Iterator[str]:
    """Check the lowering of the op against the kernel."""
    if REGISTRY.find("lowering", subject.op.primitive) is None and not has_expansion(subject.op.primitive):
        raise LeftOut("no lowering is registered")
    if executor is None:
        raise LeftOut("there is no executor; pass executor=tenferro_xla.XlaExecutor().run")
    try:
        got = _elements(executor(trace(subject.op, *subject.operands), *subject.operands))
    except Exception as error:
        yield f"the lowering raises {type(error).__name__} ({str(error)[:300]}); correct it"
        return
    want = subject.results(subject.arrays)
    for i, (y, kernel) in enumerate(zip(got, want, strict=True)):
        if not close(y, kernel):
            yield f"output {i} of the lowering differs from the kernel's; correct the lowering"


def _elements(out: Any) -> list[np.ndarray[Any, Any]]:
    found = list(out) if isinstance(out, (tuple, list)) else [out]
    return [np.array((y.detach() if hasattr(y, "detach") else y)._concrete(), order="C") for y in found]
