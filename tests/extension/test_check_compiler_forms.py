"""`check_compiler` finds a compiler whose own form of one operation is wrong."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tenferro_ad.compiler_checks import check_compiler
from tenferro_runtime.compilers import ProgramCompiler
from tenferro_runtime.extension import Equation, Literal, Op, Program
from tenferro_runtime.running.rendering import step_kernel
from tenferro_runtime.tracing.expanding import expand
from tenferro_tensor.checking import CheckError

Form = Callable[..., Any]
CHECKS = (
    "results", "dtypes", "repeatable", "layouts", "shared arguments", "donated memory", "sizes", "control flow",
    "derivatives", "batches", "effects", "guards", "threads", "errors",
)  # fmt: skip


class WithForm(ProgramCompiler):
    """Runs steps by their kernels, except one operation, which has a form: a function of the op and raw operands."""

    name = "with a form"

    def __init__(self, primitive: str, form: Form) -> None:
        self.primitive, self.form = primitive, form

    def executable(self, program: Program, donated: tuple[int, ...]) -> Callable[..., tuple[Any, ...]]:
        program = expand(program)
        steps = [(eq, self.call(program, eq)) for eq in program.equations]
        constants = {v: c.data for v, c in program.constants.items()}

        def run(*raws: Any) -> tuple[Any, ...]:
            env = {**constants, **dict(zip(program.input_ids, raws))}
            for eq, call in steps:
                given = [v.value if isinstance(v, Literal) else env[v] for v in eq.operands]
                env.update(zip(eq.results, call(*given)))
            return tuple([env[v] for v in program.output_ids])

        return run

    def call(self, program: Program, eq: Equation) -> Form:
        if eq.op.primitive.name != self.primitive:
            return step_kernel(program, eq)

        def call(*raws: Any) -> tuple[Any, ...]:
            out = self.form(eq.op, *raws)
            return out if isinstance(out, tuple) else (out,)

        return call


def raw(out: Any) -> Any:
    return tuple([x.numpy()[()] for x in out]) if isinstance(out, tuple) else out.numpy()[()]


def ignoring(**params: Any) -> Form:
    """The op with other metadata."""
    return lambda op, *raws: raw(op.primitive.op(**{**op.params, **params})(*raws))


def unclamped(op: Op, x: Any, *starts: Any) -> Any:
    """A window that begins at the end where it would go beyond, as Python's slices do."""
    out = np.zeros(op.params["sizes"], x.dtype)
    cut = x[tuple([slice(int(i), int(i) + n) for i, n in zip(starts, out.shape)])]
    out[tuple([slice(n) for n in cut.shape])] = cut
    return out


def one_after_the_other(op: Op, *raws: Any) -> Any:
    """A loop whose carries of equal kind are assigned one by one, so that the second sees the new first."""
    out = raw(op(*raws))
    same = [i for i, x in enumerate(out) if np.shape(x) == (4,)]
    return tuple([out[same[0]] if i in same else x for i, x in enumerate(out)])


FORMS: dict[str, tuple[str, str, Form, str]] = {
    "numbers of double precision": (
        "dtypes", "mul", lambda op, x, y: x * np.float64(y) if isinstance(y, float) else x * y, "float32 numbers"
    ),
    "numbers of long integers": (
        "dtypes", "mul", lambda op, x, y: x * np.int64(y) if isinstance(y, int) else x * y, "int32 numbers"
    ),
    "sums of long integers": ("dtypes", "reduce_sum", lambda op, x: np.sum(x, op.params["axes"]), "int32 numbers"),
    "absolute values": ("dtypes", "real", lambda op, x: np.abs(x), "complex128 numbers"),
    "quotients to zero": ("results", "floor_divide", lambda op, x, y: np.trunc(x / y).astype(x.dtype), "quotients of"),
    "remainders of C": ("results", "remainder", lambda op, x, y: np.fmod(x, y), "quotients of negative"),
    "the lower bound last": ("results", "clamp", lambda op, x, a, b: np.maximum(np.minimum(x, b), a), "wrong order"),
    "an open window": ("results", "dynamic_slice", unclamped, "a window beyond the end"),
    "endless loops": ("control flow", "while_loop", ignoring(max_steps=None), "a loop of bounded length"),
    "carries in turn": ("control flow", "while_loop", one_after_the_other, "exchanged carries"),
    "sums from the start": ("derivatives", "cumsum", ignoring(reverse=False), "slices and roots"),
    "overwritten parts": ("derivatives", "update_slice", ignoring(mode="set"), "slices and roots"),
    "plain products": ("derivatives", "absorbing_mul", lambda op, x, y: x * y, "slices and roots"),
}  # fmt: skip
"""A wrong form: the check that finds it, the operation, the form, and words of the finding."""


@pytest.mark.parametrize("fault", FORMS)
def test_a_wrong_form_is_found(fault: str) -> None:
    check, primitive, form, text = FORMS[fault]
    with pytest.raises(CheckError) as caught:
        check_compiler(WithForm(primitive, form), skip=[name for name in CHECKS if name != check])
    assert any(text in mistake for f in caught.value.report.failed for mistake in f.mistakes)
