"""`show_ir`: loop nests beside the lines of user code that they come from."""

import re
from itertools import pairwise

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import grad
from tenferro_runtime.lowering import lower
from tenferro_tensor.loop_interpreter import interpret
from tenferro_tensor_core import ArgumentError, UnsupportedError


def heat(u):
    def step(u, _):
        inner = u[1:-1]
        flow = u[2:] + u[:-2] - 2.0 * inner
        return u.at[1:-1].set(inner + tr.tanh(flow)), tr.sum(u)

    return tr.scan(step, u, length=50)


def comments(shown: tr.LoopNests) -> list[tuple[str, str]]:
    """Statements that have a line of code, and that line."""
    split = [line.partition("  # ") for line in str(shown).splitlines()]
    return [(statement.strip(), said) for statement, sign, said in split if sign]


def test_statements_stand_beside_the_lines_that_they_come_from() -> None:
    shown = tr.show_ir(heat, tr.ones(9))
    first = heat.__code__.co_firstlineno
    said = comments(shown)
    texts = [text for _, text in said]
    assert f"test_show_ir.py:{first + 6}: return tr.scan(step, u, length=50)" in texts
    (flow,) = [statement for statement, text in said if "flow = u[2:]" in text]
    assert re.fullmatch(r"r\d+: float64 = b\d+\[.*\]", flow)
    assert any("tanh" in statement for statement, text in said if f":{first + 4}: return u.at" in text)
    assert all(
        text.startswith(f"test_show_ir.py:{first + k}") for text in texts for k in [int(text.split(":")[1]) - first]
    )
    assert all(a != b for a, b in pairwise(texts))


def test_what_is_shown_is_what_is_compiled() -> None:
    f = tr.compile(heat)
    shown = tr.show_ir(f, tr.ones(9))
    without = [line.partition("  # ")[0].rstrip() for line in str(shown).splitlines()]
    assert without == str(lower(f.program(tr.ones(9)))).splitlines() == str(shown.function).splitlines()
    u = np.random.default_rng(0).normal(size=9)
    for found, wanted in zip(interpret(shown.function, [u], [9]), heat(tr.asarray(u)), strict=True):
        np.testing.assert_allclose(found, np.asarray(wanted), rtol=1e-12)


def test_programs_gradients_and_calls_of_kernels_are_shown() -> None:
    program = tr.trace(heat, tr.ones(9))
    assert str(tr.show_ir(program)).startswith("function()\n  input b0: float64[9]\n")
    backward = tr.show_ir(grad(lambda u: tr.sum(heat(u)[0])), tr.ones(9))
    assert any("flow = u[2:]" in said for _, said in comments(backward))

    def largest(a):
        return tr.sum(tr.sort(a) * a)

    shown = tr.show_ir(largest, tr.eye(30, dtype=tr.complex128))
    (called,) = [said for statement, said in comments(shown) if " = call " in statement]
    assert called.endswith("return tr.sum(tr.sort(a) * a)")


def test_a_notebook_sees_the_text() -> None:
    shown = tr.show_ir(lambda x: tr.sum(x), tr.ones(3))
    html = shown._repr_html_()
    assert "<pre>function(n0)\n" in html and "for r0 &lt; n0 reduce:" in html and repr(shown) == str(shown)


def test_a_program_that_is_not_loops_is_refused_with_the_step_and_its_line() -> None:
    def kept(x):
        return tr.sum(tr.truncate(x, tr.sum(x > 0)))

    with pytest.raises(
        UnsupportedError, match=r"define_size at .*test_show_ir\.py:\d+ is not lowered to loops"
    ) as found:
        tr.show_ir(kept, tr.ones(4))
    assert found.value.payload["where"].endswith(f"test_show_ir.py:{kept.__code__.co_firstlineno + 1}")


def test_a_program_takes_no_arguments() -> None:
    with pytest.raises(ArgumentError, match="given 1 values"):
        tr.show_ir(tr.trace(heat, tr.ones(9)), tr.ones(9))
