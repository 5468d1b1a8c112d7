"""The matrix of execution selection: kinds of operands x scopes x rules, and the texts of its refusals."""

import asyncio
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from itertools import product
from typing import Any

import pytest

import tenferro_runtime as tr
from simulated.installed import simulated
from tenferro_ad import grad, jvp, variable
from tenferro_cpu import CpuPool
from tenferro_tensor import (
    ComputeDevice,
    MemorySpace,
    Place,
    clear_plans,
    compute_context,
    compute_device,
    tensor,
)
from tenferro_tensor import origins as origins
from tenferro_tensor.dispatch import Decision, Rule, decide, recording
from tenferro_tensor_core import AmbiguousPlacementError, ArgumentError, PlacementError

CPU0, CPU1, CPU2, SIM = map(ComputeDevice, ("cpu:0", "cpu:1", "cpu:2", "sim:0"))
HOST_SPACE, SIM_SPACE = MemorySpace("host"), MemorySpace("sim:0")


class Context:
    def __init__(self, device: ComputeDevice) -> None:
        self.device = device


@pytest.fixture(autouse=True)
def machine() -> Iterator[None]:
    """Three CPU devices and an accelerator."""
    clear_plans()
    with simulated(), CpuPool(index=1), CpuPool(index=2):
        yield
    clear_plans()


OPERANDS: dict[str, Callable[[], Any]] = {
    "host": lambda: tensor([1.0, 2.0]),
    "cpu:1": lambda: tensor([1.0, 2.0]).with_compute_device("cpu:1"),
    "cpu:2": lambda: tensor([1.0, 2.0]).with_compute_device("cpu:2"),
    "sim": lambda: tensor([1.0, 2.0], device="sim"),
    "sim:0": lambda: tensor([1.0, 2.0], device="sim").with_compute_device("sim:0"),
    "number": lambda: 2.0,
}
SCOPES = {"": None, "cpu:1": CPU1, "cpu:2": CPU2, "sim": SIM}


def expected(kinds: tuple[str, ...], scope: str, context: str) -> tuple[ComputeDevice, Rule] | None:
    """The rules as a page of text would state them, ``None`` for a refusal."""
    placed = [k for k in kinds if k != "number"]
    if len({"sim" in k for k in placed}) > 1:
        return None
    own = {k for k in placed if ":" in k}
    if own:
        return (ComputeDevice(own.pop()), Rule.OWN) if len(own) == 1 else None
    memory = SIM if "sim" in placed[0] else CPU0
    for name, rule in ((scope, Rule.DEVICE_SCOPE), (context, Rule.CONTEXT_SCOPE)):
        if name:
            return (ComputeDevice(name), rule) if ("sim" in name) == ("sim" in placed[0]) else None
    return memory, Rule.MEMORY


CASES = [
    (kinds, scope, context)
    for kinds, scope, context in product(product(OPERANDS, repeat=2), SCOPES, SCOPES)
    if kinds != ("number", "number")
]


@pytest.mark.parametrize("outer", ["device", "context"])
def test_every_rule_for_all_operands_and_scopes(outer: str) -> None:
    """576 cases, decided on values and carried out by `add`; which scope is the outer one does not matter."""
    for kinds, scope, context in CASES:
        args = [OPERANDS[k]() for k in kinds]
        seen: list[Decision] = []
        want = expected(kinds, scope, context)
        scopes: list[Any] = [compute_device(scope)] if scope else []
        scopes += [compute_context(Context(ComputeDevice(context)))] if context else []
        if outer == "context":
            scopes.reverse()
        with ExitStack() as stack:
            for entered in (*scopes, recording(seen.append)):
                stack.enter_context(entered)
            if want is None:
                with pytest.raises(AmbiguousPlacementError):
                    args[0] + args[1]
                continue
            z = args[0] + args[1]
        assert (seen[-1].device, seen[-1].rule) == want, (kinds, scope, context)
        named = next((a.compute_device for a in args if hasattr(a, "spec") and a.compute_device), None)
        assert z.compute_device is named, "results inherit what operands name, and scopes leave no trace on them"


def test_the_same_decision_for_every_kind_of_value() -> None:
    """Eager, forward-mode and traced values decide as the concrete values inside of them do."""
    for kinds, scope in product(product(OPERANDS, repeat=2), SCOPES):
        want = None if "number" in kinds else expected(kinds, scope, "")
        if want is None:
            continue
        args = [OPERANDS[k]() for k in kinds]
        calls: list[Callable[[], Any]] = [
            lambda args=args: variable(args[0]) + args[1],  # type: ignore[misc]
            lambda args=args: jvp(lambda v: v + args[1], (args[0],), (args[0],))[0],  # type: ignore[misc]
            lambda args=args: tr.compile(lambda a, b: a + b)(*args),  # type: ignore[misc]
        ]
        for call in calls:
            with ExitStack() as stack:
                if scope:
                    stack.enter_context(compute_device(scope))
                report = tr.explain_dispatch(call)
            adds = {(s.device, s.rule) for s in report.steps if s.primitive == "add"}
            assert (str(want[0]), want[1].value) in adds, (kinds, scope, report)


def test_explicit_devices_rank_first() -> None:
    x = tensor([1.0])
    with compute_device("sim"):
        assert tr.asarray([1.0], device="cpu:1").compute_device is CPU1
        assert tr.zeros_like(x).memory_space is HOST_SPACE
        report = tr.explain_dispatch(lambda: x.to_device("cpu:2").to_device("sim"))
        assert [(s.device, s.rule) for s in report.steps] == [("cpu:0", "an explicit device")] * 2
    with pytest.raises(PlacementError, match=r"cpu:7 was requested, but no such pool .* of cpu:0, cpu:1, cpu:2"):
        tr.ones(2, device="cpu:7")


@pytest.mark.parametrize("kind", ["concrete", "eager", "traced"])
def test_a_compute_device_of_its_own(kind: str) -> None:
    seen: list[Any] = []

    def look(x: Any) -> Any:
        y = x.with_compute_device("cpu:1")
        z = (y * 2.0).sum()
        seen.extend([x.compute_device, y.compute_device, z.compute_device, y.with_compute_device(None).compute_device])
        assert {v.memory_space for v in (x, y, z)} == {HOST_SPACE} and y.device is CPU1
        return z

    x = tensor([1.0, 2.0])
    if kind == "concrete":
        assert look(x).tolist() == 6.0
    elif kind == "eager":
        g = grad(look)(x)
        assert g.tolist() == [2.0, 2.0] and g.compute_device is None, "gradients lie where the inputs lie"
    else:
        assert tr.compile(look)(x).tolist() == 6.0
    assert seen[:4] == [None, CPU1, CPU1, None]
    with pytest.raises(ArgumentError, match="sim:0 cannot compute on host memory; move the data with to_device"):
        x.with_compute_device("sim:0")


def test_a_compiled_function_is_traced_for_each_scope() -> None:
    f = tr.compile(lambda v: v * 2.0 + 1.0)
    x = tensor([1.0, 2.0])
    for _ in range(2):
        assert f(x).tolist() == [3.0, 5.0]
        with compute_device("cpu:1"):
            assert f(x).tolist() == [3.0, 5.0]
            with compute_context(Context(CPU2)):
                assert f(x).tolist() == [3.0, 5.0]
        with compute_context(Context(CPU2)):
            assert f(x).tolist() == [3.0, 5.0]
    assert f.cache_info().traces == 3
    with compute_device("sim"), pytest.raises(AmbiguousPlacementError, match=r"`with compute_device\(...\)`"):
        f(x)


def test_refusals_name_lines_and_the_way_out() -> None:
    x = tensor([[1.0, 2.0]])
    y = tensor([1.0, 2.0], device="sim")
    first = test_refusals_name_lines_and_the_way_out.__code__.co_firstlineno
    for call in (lambda: x + y, lambda: variable(x) + y, lambda: jvp(lambda v: v + y, (x,), (x,))):
        with pytest.raises(AmbiguousPlacementError) as error:
            call()
        assert str(error.value) == (
            "add has operands in several memory spaces:\n"
            f"  operand 0: float64[1, 2] in host memory, no compute device of its own, made at {__file__}:{first + 1}\n"
            f"  operand 1: float64[2] in sim:0 memory, no compute device of its own, made at {__file__}:{first + 2}\n"
            "nothing is transferred implicitly: move operand 1 with .to_device('cpu:0')"
        )
    assert (x + y.to_device("cpu:0")).tolist() == [[2.0, 4.0]], "the advice works"
    with pytest.raises(AmbiguousPlacementError) as error:
        (x * 2).with_compute_device("cpu:1") - (x * 2).with_compute_device("cpu:2") * 1
    text = str(error.value)
    assert "sub has operands with several compute devices" in text
    assert "operand 1: float64[1, 2] in host memory, computed on cpu:2, made by an operation (TENFERRO_TRACE=1" in text
    assert text.endswith("move operand 1 with .to_device('cpu:1')")


def test_refusals_of_traced_functions_name_arguments_and_lines() -> None:
    x, y = tensor([1.0]), tensor([1.0], device="sim")

    def f(a: Any, b: Any) -> Any:
        c = a * 2.0
        return tr.where(c > 0, b, c)

    with pytest.raises(AmbiguousPlacementError) as error:
        tr.compile(f)(x, y)
    line = f.__code__.co_firstlineno
    assert f"made at {__file__}:{line + 2}" in str(error.value), str(error.value)
    assert "argument b" in str(error.value) and f"made at {__file__}:{line + 1}" in str(error.value)


def test_lines_go_with_their_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(origins, "_table", origins._Table())
    kept = [tensor([float(i)]) for i in range(50)]
    assert all(origins.line_of(x).startswith(__file__) for x in kept)
    assert origins.line_of(kept[0] * 2) == ""
    first = kept[0]
    del kept
    for _ in range(3 * origins.PRUNE_MIN_ENTRIES):
        tensor(1.0)
    assert len(origins._table.entries) <= 2 * origins.PRUNE_MIN_ENTRIES, (
        "tensors that are gone keep no entries for long"
    )
    assert origins.line_of(first).startswith(__file__)
    origins._table.entries[id(first)] = weakref.ref(tensor(1.0)), test_decisions_of_specs_have_no_lines.__code__, 0
    assert origins.line_of(first) == "", "an identity that was another's says nothing"


TRACED = """
import tenferro_runtime as tr
from tenferro_ad import grad
x = tr.asarray([1.0, 2.0])
y = x * 2
z = tr.compile(lambda v: v + 1)(x)
assert grad(lambda v: tr.sum(v * v))(x).tolist() == [2.0, 4.0]
with tr.compute_device("cpu:0"):
    pass
print(y._origin(), x._origin())
"""


def test_tracing_everywhere_tells_the_lines_of_results() -> None:
    done = subprocess.run(
        [sys.executable, "-c", TRACED], capture_output=True, text=True, env=os.environ | {"TENFERRO_TRACE": "1"}
    )
    assert done.stdout == "made at <string>:5 made at <string>:4\n", done.stderr


def test_scopes_of_tasks_threads_and_generators_decide_for_themselves() -> None:
    """Ops of many tasks and threads, each under its own scope, interleaved."""
    x = tensor([1.0, 2.0])
    wrong: list[Any] = []

    def check(device: str) -> None:
        seen: list[Decision] = []
        with recording(seen.append):
            x + x
        if str(seen[0].device) != device:
            wrong.append((device, seen))

    async def task(i: int) -> None:
        with compute_device(f"cpu:{i % 3}"):
            for _ in range(4):
                await asyncio.sleep(0)
                check(f"cpu:{i % 3}")

    async def main() -> None:
        await asyncio.gather(*[task(i) for i in range(12)])
        check("cpu:0")

    def thread(i: int) -> None:
        check("cpu:0")
        with compute_context(Context(ComputeDevice(f"cpu:{i % 3}"))):
            for _ in range(20):
                check(f"cpu:{i % 3}")
            asyncio.run(main_in_context(f"cpu:{i % 3}"))

    async def main_in_context(device: str) -> None:
        check(device)  # a loop starts in the context of its thread

    def generator() -> Generator[None, None, None]:
        with compute_device("cpu:2"):
            while True:
                check("cpu:2")
                yield

    asyncio.run(main())
    workers = [threading.Thread(target=thread, args=(i,)) for i in range(6)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    steps = generator()
    next(steps)
    check("cpu:2")  # documented: a scope leaks out of a suspended generator
    steps.close()
    check("cpu:0")
    assert not wrong


def test_decisions_of_specs_have_no_lines() -> None:
    x = tensor([1.0])
    chip = x.spec.with_(place=Place(SIM_SPACE))
    with pytest.raises(AmbiguousPlacementError) as error:
        decide("f", [x.spec, chip])
    assert "made" not in str(error.value) and error.value.payload["target"] == "cpu:0"
