"""pure_callback: host functions as operations, their shapes, lanes and missing derivatives."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import custom_rule, grad, jvp
from tenferro_tensor import Spec
from tenferro_tensor_core import ArgumentError, MissingRuleError

XS = np.array([3.0, 1.0, 2.0])


class Halves(NamedTuple):
    low: Any
    rest: Any


def sine(x: Any) -> Any:
    return tr.pure_callback(np.sin, x, x)


@pytest.mark.parametrize("wrap", [lambda f: f, tr.compile], ids=["eager", "compiled"])
def test_results_come_in_containers(wrap: Any) -> None:
    def split(tree: Any, *, at: Any) -> Any:
        assert type(tree["x"]) is np.ndarray and not tree["x"].flags.writeable
        x = np.sort(tree["x"])
        return Halves(x[: int(at)], {"rest": x[int(at) :], "count": len(x)})

    @wrap
    def f(x: Any) -> Any:
        (n,) = x.shape
        specs = Halves(Spec((1,), x.dtype), {"rest": Spec((n - 1,), x.dtype), "count": 0})
        return tr.pure_callback(split, specs, {"x": x}, at=1)

    for x in (XS, np.array([5.0, 4.0])):
        found = f(x)
        assert found.low.tolist() == [x.min()] and found.rest["rest"].tolist() == sorted(x)[1:]
        assert found.rest["count"].item() == len(x) and found.rest["count"].dtype == tr.int64


def test_one_program_serves_all_sizes() -> None:
    f = tr.compile(lambda x: sine(x) * 2.0)
    for n in range(1, 5):
        np.testing.assert_allclose(np.asarray(f(np.arange(float(n)))), 2 * np.sin(np.arange(n)))
    assert f.cache_info().traces == 1


def test_inside_of_loops_and_branches() -> None:
    @tr.compile
    def f(xs: Any) -> Any:
        last = tr.scan(lambda c, x: (sine(c) + x, None), tr.asarray(0.0), xs)[0]
        return tr.cond(last > 0, sine, lambda v: v, last)

    c = 0.0
    for x in XS:
        c = np.sin(c) + x
    for _ in range(3):
        np.testing.assert_allclose(f(XS).item(), np.sin(c))


@pytest.mark.parametrize("wrap", [lambda f: f, tr.compile], ids=["eager", "compiled"])
@pytest.mark.parametrize("method", ["sequential", "broadcast_all"])
def test_lanes_one_by_one_or_all_at_once(wrap: Any, method: str) -> None:
    seen: list[tuple[int, ...]] = []

    def weighted(x: Any, w: Any) -> Any:
        seen.append(x.shape)
        return (x * w).sum(-1)

    def f(x: Any, w: Any) -> Any:
        return tr.pure_callback(weighted, 0.0, x, w, vmap_method=method)

    run = wrap(tr.vmap(f, in_axes=(0, None)))
    x, w = np.arange(6.0).reshape(2, 3), np.array([1.0, 10.0, 100.0])
    for _ in range(2):
        seen.clear()
        assert run(x, w).tolist() == (x * w).sum(-1).tolist()
        assert seen == ([(3,), (3,)] if method == "sequential" else [(2, 3)])


@pytest.mark.parametrize(
    "transform",
    [grad, lambda f: lambda x: jvp(f, (x,), (x,)), lambda f: tr.compile(grad(f))],
    ids=["grad", "jvp", "compiled"],
)
def test_a_derivative_comes_from_custom_rule_alone(transform: Callable[[Any], Callable[[Any], Any]]) -> None:
    with pytest.raises(MissingRuleError, match="pure_callback cannot be differentiated: .* custom_rule"):
        transform(sine)(0.5)
    with_rule = custom_rule(sine, jvp=lambda primals, tangents, outs: (tr.cos(primals[0]) * tangents[0],))
    for _ in range(2):
        found = tr.tree_leaves(transform(with_rule)(0.5))[-1]
        assert found.item() in (pytest.approx(np.cos(0.5)), pytest.approx(0.5 * np.cos(0.5)))
    assert grad(lambda x: x * sine(tr.stop_gradient(x)))(0.5).item() == pytest.approx(np.sin(0.5))


def test_what_nobody_reads_is_not_computed() -> None:
    calls: list[int] = []

    def counted(x: Any) -> Any:
        calls.append(1)
        return x

    @tr.compile
    def f(x: Any) -> Any:
        tr.pure_callback(counted, x, x)
        return x

    assert f(2.0).item() == 2.0 and calls == []


def test_a_returned_operand_and_a_reused_buffer_are_copied() -> None:
    buffer = np.zeros(3)

    def fill(x: Any) -> Any:
        buffer[:] = x
        return buffer

    first, second = tr.pure_callback(fill, XS, XS), tr.pure_callback(fill, XS, 2 * XS)
    assert first.tolist() == XS.tolist() and second.tolist() == (2 * XS).tolist()
    same = tr.asarray(XS)
    assert not np.shares_memory(np.asarray(tr.pure_callback(lambda x: x, XS, same)), np.asarray(same))


def test_mistakes(tmp_path: Path) -> None:
    x = tr.asarray(XS)
    cases: list[tuple[Any, str]] = [
        (lambda: tr.pure_callback(3, x, x), "pure_callback takes a function, got 3"),  # type: ignore[call-overload]
        (lambda: tr.pure_callback(np.sin, "text", x), "was told 'text' as the result, which has no shape"),
        (lambda: tr.pure_callback(np.sin, (), x), "needs shapes of results, got none"),
        (lambda: tr.pure_callback(np.sin, x, x, vmap_method="all"), "vmap_method='all' is not known"),
        (lambda: tr.pure_callback(np.sum, x, x), r"returned float64\[\] to pure_callback, but float64\[3\]"),
        (lambda: tr.pure_callback(lambda a: a + 1j, x, x), r"returned complex128\[3\] to pure_callback"),
        (lambda: tr.pure_callback(lambda a: [a], {"y": x}, x), "must have the structure"),
        (lambda: tr.pure_callback(lambda a: {"y": a[:1]}, {"y": x}, x), r"\[1\] at \['y'\] to pure_callback"),
    ]
    for call, message in cases:
        with pytest.raises(ArgumentError, match=message):
            call()
    with pytest.raises(ArgumentError, match="to pure_callback, but"):
        tr.compile(lambda x: tr.pure_callback(np.sum, x, x))(XS)
    with pytest.raises(tr.ProgramFileError, match="pure_callback calls a Python function, .*, which cannot be written"):
        tr.compile(sine).save(tmp_path / "sine.tfp", XS)
