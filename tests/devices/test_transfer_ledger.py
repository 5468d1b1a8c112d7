"""The ledger of transfers and their prohibition: eager calls, compiled programs, backward sweeps, new data, results."""

import asyncio
import re
import threading
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from simulated.installed import simulated
from tenferro_ad import grad, jvp, record_sources, value_and_grad, variable, vjp
from tenferro_cpu import CpuPool
from tenferro_tensor import REGISTRY, Spec, clear_plans, primitive, tensor
from tenferro_tensor import transfers as ledgers
from tenferro_tensor_core import PlacementError, TransferForbiddenError

HERE = __file__


@pytest.fixture(autouse=True)
def sim() -> Iterator[Any]:
    clear_plans()
    with simulated() as runtime:
        yield runtime
    clear_plans()
    assert ledgers.watching == 0 and not ledgers.forbidding()


def line_of(f: Any, offset: int) -> str:
    return f"{HERE}:{f.__code__.co_firstlineno + offset}"


@primitive(family="tests.seen.v1")
def seen(x: Spec) -> Spec:
    """`x`; the test learns that it was computed."""
    return x


def there_and_back(x: Any) -> Any:
    y = x.to_device("sim:0")
    return tr.sum(y * y).to_device("cpu:0")


UP, BACK = line_of(there_and_back, 1), line_of(there_and_back, 2)


def booked(ledger: Any) -> list[tuple[str, str, str, int, int]]:
    return sorted((r.line, r.source, r.target, r.count, r.nbytes) for r in ledger.rows)


def test_eager_transfers_are_booked_on_their_lines() -> None:
    x = tensor([1.0, 2.0, 3.0])
    with tr.transfers() as ledger:
        for _ in range(2):
            assert there_and_back(x).item() == 14.0
    assert booked(ledger) == [(UP, "host", "sim:0", 2, 48), (BACK, "sim:0", "host", 2, 16)]
    assert (ledger.count, ledger.nbytes) == (4, 64)
    there_and_back(x)
    assert ledger.count == 4, "a closed ledger is told nothing"


def test_the_ledger_prints_as_a_table() -> None:
    with tr.transfers() as ledger:
        assert repr(ledger).splitlines() == ["bytes  count  from  to  line", "0 transfers, 0 B"]
        there_and_back(tensor(np.ones(1000)))
    lines = repr(ledger).splitlines()
    assert re.split(r"\s{2,}", lines[0].strip()) == ["bytes", "count", "from", "to", "line"]
    assert re.split(r"\s{2,}", lines[1].strip()) == ["8 kB", "1", "host", "sim:0", UP]
    assert re.split(r"\s{2,}", lines[2].strip()) == ["8 B", "1", "sim:0", "host", BACK]
    assert lines[3] == "2 transfers, 8.01 kB"


def test_new_data_results_and_peers() -> None:
    with tr.transfers() as ledger:
        x = tr.asarray([1.0, 2.0], device="sim:0")
        y = x.to_device("sim:1")
        y.numpy()
        tr.zeros(1000, device="sim:1")
        y + 1.0
        y.with_compute_device("sim:1")
        tensor([1.0]).with_compute_device("cpu:0").to_device("cpu:0")
    directions = [(r.source, r.target, r.nbytes) for r in sorted(ledger.rows, key=lambda r: r.line)]
    assert directions == [("host", "sim:0", 16), ("sim:0", "sim:1", 16), ("sim:1", "host", 16)]
    assert all(r.line.startswith(HERE) for r in ledger.rows)


@pytest.mark.parametrize("size", [3, 5])
def test_programs_book_on_the_lines_that_were_traced(size: int) -> None:
    x = tensor(np.arange(float(size)))
    f = tr.compile(there_and_back)
    want = there_and_back(x).item()
    for _ in range(3):
        with tr.transfers() as ledger:
            assert f(x).item() == want
        assert booked(ledger) == [(UP, "host", "sim:0", 1, 8 * size), (BACK, "sim:0", "host", 1, 8)]
    program = tr.trace(there_and_back, x)
    with tr.transfers() as ledger:
        program.run(x)
    assert booked(ledger) == [(UP, "host", "sim:0", 1, 8 * size), (BACK, "sim:0", "host", 1, 8)]


def test_gradients_book_on_the_forward_line() -> None:
    x = tensor([1.0, 2.0, 3.0])
    for _ in range(3):  # by the rule, then by what is rendered of it
        _, pull = vjp(there_and_back, x)
        with tr.transfers() as ledger:
            (g,) = pull(tensor(1.0))
        assert g.tolist() == [2.0, 4.0, 6.0]
        assert booked(ledger) == [(UP, "sim:0", "host", 1, 24), (BACK, "host", "sim:0", 1, 8)]
    v = variable(x)
    out = there_and_back(v)
    with tr.transfers() as ledger:
        out.backward()
    assert booked(ledger) == [(UP, "sim:0", "host", 1, 24), (BACK, "host", "sim:0", 1, 8)]
    for f in (tr.compile(value_and_grad(there_and_back)), value_and_grad(tr.compile(there_and_back))):
        with tr.transfers() as ledger:
            assert f(x)[1].tolist() == [2.0, 4.0, 6.0]
        assert booked(ledger) == [
            (UP, "host", "sim:0", 1, 24), (UP, "sim:0", "host", 1, 24),
            (BACK, "host", "sim:0", 1, 8), (BACK, "sim:0", "host", 1, 8),
        ]  # fmt: skip


def test_forward_mode_and_higher_orders() -> None:
    x = tensor([1.0, 2.0])
    for _ in range(2):
        with tr.transfers() as ledger:
            _, t = jvp(there_and_back, (x,), (tensor([1.0, 0.0]),))
        assert t.item() == 2.0 and ledger.count == 4 and {r.line for r in ledger.rows} == {UP, BACK}  # type: ignore[attr-defined]
        h = grad(lambda v: tr.sum(grad(there_and_back)(v) ** 2))(x)
        assert h.tolist() == [8.0, 16.0]
    with record_sources():
        assert grad(there_and_back)(x).tolist() == [2.0, 4.0]


def test_eager_transfers_are_refused_before_they_happen(sim: Any) -> None:
    x, y = tensor([1.0, 2.0]), tensor([1.0], device="sim:0")
    with tr.no_transfers(), tr.transfers() as ledger:
        assert (x * 2.0 + x).tolist() == [3.0, 6.0]
        assert (y + 1.0).memory_space is y.memory_space, "numbers are arguments of kernels"
        assert tr.zeros_like(y).memory_space is y.memory_space
        with pytest.raises(TransferForbiddenError) as error:
            there_and_back(x)
        for call in (
            lambda: y.numpy(),
            lambda: y.item(),
            lambda: tr.asarray([1.0], device="sim:0"),
            lambda: y.to_device("sim:1"),
            lambda: tr.compile(lambda v: v.to_device("cpu:0"))(y),
        ):
            with pytest.raises(PlacementError, match=r"no_transfers\(\) forbids it here"):
                call()
    assert str(error.value) == (
        f"16 bytes from host to sim:0 memory at {UP} would be moved, but no_transfers() forbids it here; "
        "keep the operands in one memory, or move them before the scope"
    )
    assert error.value.payload == {"nbytes": 16, "source": "host", "target": "sim:0", "line": UP}
    assert ledger.count == 0
    assert there_and_back(x).item() == 5.0


def test_programs_are_refused_before_their_first_step() -> None:
    ran: list[int] = []
    x = tensor([1.0, 2.0])
    REGISTRY.kernel(seen, "cpu", lambda ins, outs: lambda raw: ran.append(1) or raw, replace=True)

    def late(v: Any) -> Any:
        w = tr.exp(seen(v) * 2.0)
        return tr.sum(w).to_device("sim:0")

    f = tr.compile(late)
    f(x)
    assert ran
    ran.clear()
    for g in (f, tr.compile(lambda v: f(v) * 2.0), lambda v: tr.trace(late, v).run(v)):
        with tr.no_transfers(), pytest.raises(TransferForbiddenError) as error:
            g(x)
        assert f"from host to sim:0 memory at {line_of(late, 2)} would be moved" in str(error.value)
        assert "by this program, before any of its steps ran" in str(error.value)
    assert not ran and f(x).to_device("cpu:0").item() == pytest.approx(float(np.exp(2.0) + np.exp(4.0)))


def test_a_branch_that_is_not_taken_moves_nothing() -> None:
    def choose(p: Any, v: Any) -> Any:
        return tr.cond(p, lambda u: u * 2.0, lambda u: u.to_device("sim:0").to_device("cpu:0") * 3.0, v)

    f, x = tr.compile(choose), tensor([1.0, 2.0])
    with tr.no_transfers():
        assert f(tensor(True), x).tolist() == [2.0, 4.0]
        with pytest.raises(TransferForbiddenError, match="before any of its steps ran"):
            f(tensor(False), x)
    assert f(tensor(False), x).tolist() == [3.0, 6.0]


def test_sweeps_are_refused_before_their_first_step() -> None:
    x = tensor([1.0, 2.0])
    compiled = tr.compile(there_and_back)
    for f, line in ((there_and_back, BACK), (compiled, None), (lambda v: compiled(tr.exp(v)) * 2.0, None)):
        for _ in range(3):
            v = variable(x)
            out = f(v)
            with tr.no_transfers(), tr.transfers() as ledger, pytest.raises(TransferForbiddenError) as error:
                out.backward()
            assert "by the gradient of that line, but no_transfers() forbids" in str(error.value)
            assert (line or error.value.payload["line"]) in (UP, BACK)
            assert ledger.count == 0 and v.grad is None
            out.backward()  # the graph is whole: nothing was released
            assert v.grad is not None
    _, pull = vjp(there_and_back, x)
    with tr.no_transfers(), pytest.raises(TransferForbiddenError, match=re.escape(UP) + "|" + re.escape(BACK)):
        pull(tensor(1.0))


def test_scopes_nest_and_belong_to_their_context() -> None:
    x = tensor([1.0])
    with tr.transfers() as outer:
        x.to_device("sim:0")
        with tr.transfers() as inner:
            x.to_device("sim:0")
        threads = [threading.Thread(target=lambda: x.to_device("sim:0")) for _ in range(3)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert (outer.count, inner.count) == (2, 1), "a thread starts with no ledger"

    async def move(count: int) -> int:
        with tr.transfers() as ledger:
            for _ in range(count):
                x.to_device("sim:0")
                await asyncio.sleep(0)
        return ledger.count

    async def forbidden() -> str:
        with tr.no_transfers():
            await asyncio.sleep(0)
            try:
                x.to_device("sim:0")
            except TransferForbiddenError:
                return "refused"
        return "moved"

    async def main() -> list[Any]:
        return await asyncio.gather(*[move(i) for i in range(5)], forbidden(), move(2))

    assert asyncio.run(main()) == [0, 1, 2, 3, 4, "refused", 2]

    def generator() -> Generator[None, None, None]:
        with tr.no_transfers():
            yield

    suspended = generator()
    thread = threading.Thread(target=lambda: next(suspended))
    thread.start()
    thread.join()
    x.to_device("sim:0")  # the prohibition is that of another context
    suspended.close()
    with ExitStack() as stack:
        stack.enter_context(tr.no_transfers())
    x.to_device("sim:0")


def test_a_shared_ledger_counts_right() -> None:
    x = tensor([1.0])
    with tr.transfers() as ledger:

        def work() -> None:
            with ledgers.booking(ledger.add):
                for _ in range(100):
                    x.to_device("sim:0")

        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert ledger.count == 400 and ledger.nbytes == 3200


def test_programs_on_several_devices() -> None:
    """Scopes inside, two pools and an accelerator: eager, explained and compiled agree, and so does what is booked."""

    def f(x: Any) -> Any:
        with tr.compute_device("cpu:1"):
            a = tr.sum(tr.exp(x) * x)
        with tr.compute_device("cpu:2"):
            b = tr.sum(tr.sin(x) + x)
        return a + b + tr.sum(x.to_device("sim:0") ** 2).to_device("cpu:0")

    x = tensor(np.linspace(0.0, 1.0, 50))
    with CpuPool(index=1), CpuPool(index=2):
        report = tr.explain_dispatch(f, x)
        devices = {(s.primitive, s.device, s.rule) for s in report.steps if s.primitive in ("exp", "sin", "pow")}
        assert devices == {
            ("exp", "cpu:1", "with compute_device(...)"),
            ("sin", "cpu:2", "with compute_device(...)"),
            ("pow", "sim:0", "the operands' memory"),
        }
        compiled = tr.compile(value_and_grad(f))
        want, slope = value_and_grad(f)(x)
        compiled(x)
        with tr.transfers() as ledger:
            value, gradient = compiled(x)
        np.testing.assert_allclose(value.numpy(), want.numpy(), rtol=1e-14)
        np.testing.assert_allclose(gradient.numpy(), slope.numpy(), rtol=1e-14)
        assert value.compute_device is gradient.compute_device is None
        line = line_of(f, 5)
        assert booked(ledger) == [(line, "host", "sim:0", 1, 400), (line, "sim:0", "host", 2, 408)]
        with tr.no_transfers(), pytest.raises(TransferForbiddenError, match="before any of its steps ran"):
            compiled(x)


def test_a_comparison_names_transfers_that_one_function_makes() -> None:
    x = tensor([1.0, 2.0, 3.0])
    compiled = tr.compile(lambda x: tr.sum(x * x))
    found = tr.compare(compiled, tr.compile(there_and_back), x, repeat=1)
    text = {d.kind: d.text for d in found.costs}["transfer"]
    line = UP.rpartition("/")[2]
    assert text == f"makes 2 transfers between memories instead of 0, of 32 B, the first at {line}"
    assert [side.transfers for side in (found.old, found.new)] == [0, 2] and found.new.moved_bytes == 32
