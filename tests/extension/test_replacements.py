"""An entry that takes the place of another one leaves a trace, is used everywhere, and can be taken back."""

import logging
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import grad, jvp, variable
from tenferro_runtime.extension import Slopes
from tenferro_runtime.ir._reuse import keeps
from tenferro_tensor import REGISTRY, Spec, catalog, primitive, tensor
from tenferro_tensor_core import RegistryError


def tripled(ins: Any, outs: Any) -> Any:
    return lambda x: x * 3


def quadrupled(ins: Any, outs: Any) -> Any:
    return lambda x: x * 4


X = tensor([1.0, 2.0, 3.0])
COMPILED = tr.compile(lambda x: tr.exp(x))
FUSED = tr.compile(lambda x: tr.exp(x + 0.0) * 1.0 - 0.0)
EXACT = tr.compile(lambda x: tr.exp(x + 0.0) - 0.0, deterministic=True)
USES = {
    "eager": lambda: tr.exp(X),
    "recorded": lambda: tr.exp(variable(X)).detach(),
    "compiled": lambda: COMPILED(X),
    "fused": lambda: FUSED(X),
    "exact": lambda: EXACT(X),
    "traced anew": lambda: tr.trace(lambda x: tr.exp(x) + 0.0, X).run(X)[0],
    "scalar": lambda: tr.stack([tr.exp(x) for x in X]),
}


@pytest.mark.parametrize("use", USES)
def test_a_replaced_kernel_of_a_core_primitive_is_used_everywhere_until_it_is_taken_back(use: str) -> None:
    for _ in range(3):
        np.testing.assert_allclose(np.asarray(USES[use]()), np.exp(X.numpy()))
    with REGISTRY.kernel(catalog.exp, "cpu", tripled, replace=True):
        for _ in range(3):
            assert USES[use]().tolist() == [3.0, 6.0, 9.0]
        with REGISTRY.kernel(catalog.exp, "cpu", quadrupled, replace=True):
            assert USES[use]().tolist() == [4.0, 8.0, 12.0]
        assert USES[use]().tolist() == [3.0, 6.0, 9.0]
    for _ in range(3):
        np.testing.assert_allclose(np.asarray(USES[use]()), np.exp(X.numpy()))


def test_matrix_products_and_operators_follow() -> None:
    a = tensor([[1.0, 2.0], [3.0, 4.0]])
    before = (a @ a).tolist(), (a + a).tolist(), (-a).tolist()
    with (
        REGISTRY.kernel(catalog.dot_general, "cpu", lambda ins, outs, **_: lambda x, y: x * 0, replace=True),
        REGISTRY.kernel(catalog.add, "cpu", lambda ins, outs: lambda x, y: x * 0, replace=True),
        REGISTRY.kernel(catalog.neg, "cpu", lambda ins, outs: lambda x: x * 0, replace=True),
    ):
        assert (a @ a).tolist() == (a + a).tolist() == (-a).tolist() == [[0.0, 0.0], [0.0, 0.0]]
        assert tr.compile(lambda x: x + x * x)(a).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert ((a @ a).tolist(), (a + a).tolist(), (-a).tolist()) == before


def test_a_replaced_rule_is_used_at_once() -> None:
    def f(x: Any) -> Any:
        return tr.sum(tr.exp(x))

    compiled = tr.compile(grad(f))
    kept = grad(f)(X).tolist()
    assert compiled(X).tolist() == kept
    with REGISTRY.rule(catalog.exp, Slopes(x=7.0), replace=True):
        assert grad(f)(X).tolist() == compiled(X).tolist() == [7.0, 7.0, 7.0]
        assert jvp(tr.exp, (X,), (tr.ones(3),))[1].tolist() == [7.0, 7.0, 7.0]
        leaf = variable(X)
        f(leaf).backward()
        assert leaf.grad.tolist() == [7.0, 7.0, 7.0]
    assert grad(f)(X).tolist() == compiled(X).tolist() == kept


def test_a_replacement_leaves_a_trace(caplog: pytest.LogCaptureFixture) -> None:
    assert not [r for r in REGISTRY.replacements() if r.primitive is catalog.exp]
    with caplog.at_level(logging.INFO, "tenferro"), REGISTRY.kernel(catalog.exp, "cpu", tripled, replace=True) as made:
        (found,) = [r for r in REGISTRY.replacements() if r.primitive is catalog.exp]
        assert found is made and not found.owner.ours and found.replaced is not None and found.replaced.owner.ours
        text = repr(made)
        assert text.startswith("<the kernel of exp for 'cpu': that of ") and "test_replacements.py:" in text
        assert ", in place of that of tenferro_cpu._backend (" in text
        explanation = str(tr.trace(lambda x: tr.exp(x) * 2.0, X).explain())
        assert "replaced by" in explanation and "test_replacements" in explanation
    (record,) = caplog.records
    assert record.levelno == logging.WARNING and text in record.message
    assert "REGISTRY.replacements() lists such entries" in record.message
    assert "replaced by" not in str(tr.trace(lambda x: tr.exp(x) * 2.0, X).explain())


@primitive
def own(x: Spec) -> Spec:
    """Of this module."""
    return x


def test_replacing_what_is_one_s_own_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level(logging.INFO, "tenferro"),
        REGISTRY.kernel(own, "cpu", tripled),
        REGISTRY.kernel(own, "cpu", quadrupled, replace=True),
    ):
        assert own(X).tolist() == [4.0, 8.0, 12.0]
    assert [r.levelno for r in caplog.records] == [logging.INFO]


def test_entries_are_taken_back_in_any_order() -> None:
    first = REGISTRY.kernel(own, "cpu", tripled)
    second = REGISTRY.kernel(own, "cpu", quadrupled, replace=True)
    first.undo()
    assert own(X).tolist() == [4.0, 8.0, 12.0]
    assert second.replaced is None and second not in REGISTRY.replacements()
    with pytest.raises(RegistryError, match="is registered already"):
        REGISTRY.kernel(own, "cpu", tripled)
    second.undo()
    second.undo()
    assert REGISTRY.find("kernel", own, "cpu") is None
    with pytest.raises(Exception, match="own has no kernel for cpu:0"):
        own(X)


def test_a_program_that_was_prepared_before_keeps_its_kernels() -> None:
    program = tr.trace(lambda x: tr.exp(x), X)
    kept = program.run(X)[0].tolist()
    with REGISTRY.kernel(catalog.exp, "cpu", tripled, replace=True):
        assert program.run(X)[0].tolist() == kept
        assert tr.trace(lambda x: tr.exp(x), X).run(X)[0].tolist() == [3.0, 6.0, 9.0]


def test_programs_that_call_a_replaced_kernel_anywhere_hand_out_memory() -> None:
    """What a program calls is found once, but whether third-party code is among it is asked each time."""
    inner = lambda i, c: tr.cond(tr.sum(c) > 0, lambda v: tr.exp(v) * 0.5, lambda v: v * 2.0, c)
    program = tr.trace(lambda x: (tr.fori_loop(0, 3, inner, x), tr.sin(x)), X)

    def handing() -> set[str]:
        return {eq.op.primitive.name for eq in program.equations if keeps(program, eq)}

    assert handing() == set()
    with REGISTRY.kernel(catalog.exp, "cpu", tripled, replace=True):
        assert handing() == {"scan"}
        with REGISTRY.kernel(catalog.sin, "cpu", tripled, replace=True):
            assert handing() == {"scan", "sin"}
    assert handing() == set()
