"""`as_jax` and `from_jax`: tenferro functions inside JAX, and JAX functions inside tenferro. Needs `tenferro-xla`."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from tenferro_ad._forward import jvp
from tenferro_ad._linearize import linear_transpose
from tenferro_ad._reverse import vjp
from tenferro_runtime import trace
from tenferro_runtime.extension import Program

__all__ = ["as_jax", "from_jax"]

_inside_jax: Final[Any] = import_module("tenferro_xla.inside_jax")

Places = tuple[int, ...]


def _of_some(program: Program, values: tuple[Any, ...], need: Places, active: Places) -> Any:
    """Some outputs of a program as a function of some inputs, with the other inputs fixed."""

    def some(*moved: Any) -> tuple[Any, ...]:
        given = dict(zip(need, moved, strict=True))
        outs = program.run(*[given.get(i, x) for i, x in enumerate(values)])
        return tuple([outs[i] for i in active])

    return some


def _jvp(program: Program, need: Places) -> Program:
    count = len(program.inputs)
    floating = tuple([i for i, s in enumerate(program.outputs) if s.inexact])

    def tangents(*values: Any) -> tuple[Any, ...]:
        primals, ts = values[:count], values[count:]
        found: tuple[Any, ...] = jvp(_of_some(program, primals, need, floating), [primals[i] for i in need], ts)[1]
        return found

    return trace(tangents, *program.inputs, *[program.inputs[i] for i in need])


def _vjp(program: Program, need: Places, active: Places) -> Program:
    count = len(program.inputs)

    def cotangents(*values: Any) -> tuple[Any, ...]:
        primals, given = values[:count], values[count:]
        some = _of_some(program, primals, need, active)
        found: tuple[Any, ...] = vjp(some, *[primals[i] for i in need], convention="jax")[1](given)
        return found

    return trace(cotangents, *program.inputs, *[program.outputs[i] for i in active])


def _transpose(program: Program, need: Places, active: Places) -> Program:
    fixed = [i for i in range(len(program.inputs)) if i not in need]

    def cotangents(*values: Any) -> tuple[Any, ...]:
        known = dict(zip(fixed, values, strict=False))
        every = tuple([known.get(i) for i in range(len(program.inputs))])
        some = _of_some(program, every, need, active)
        found: tuple[Any, ...] = linear_transpose(some, *[program.inputs[i] for i in need], convention="jax")(
            tuple(values[len(fixed) :])
        )
        return found

    return trace(cotangents, *[program.inputs[i] for i in fixed], *[program.outputs[i] for i in active])


_inside_jax.differentiate_with(_inside_jax.Derivatives(_jvp, _vjp, _transpose))
as_jax = _inside_jax.as_jax
from_jax = _inside_jax.from_jax
