"""As `user_code`, for functions without annotations, for which mypy infers `Any` and pyright more."""
# mypy: ignore-errors
# pyright: basic, reportUnnecessaryTypeIgnoreComment=error

from typing import assert_type

import tenferro_runtime as tr


def loss(x, scale=1.0):
    return tr.sum(x * x) * scale


def of_dict(params, x):
    return tr.sum(params["w"] * x)


@tr.compile
def fast(x, scale=2.0):
    return tr.sum(x) * scale


def expressions() -> None:
    x = tr.ones(3)
    assert_type(tr.grad(lambda x: tr.sum(x * x))(x), tr.Array)
    assert_type(tr.grad(loss)(x, scale=2.0), tr.Array)
    assert_type(tr.grad(of_dict)({"w": x}, x)["w"], tr.Array)
    assert_type(tr.compile(tr.grad(of_dict))({"w": x}, x)["w"], tr.Array)
    assert_type(tr.value_and_grad(loss)(2.0), tuple[tr.Array, tr.Array])
    assert_type(tr.hessian(loss)(x), tr.Array)
    assert_type(tr.vmap(lambda row: tr.sum(row))(tr.eye(3)), tr.Array)
    assert_type(fast(x), tr.Array)
    fast(x, factor=3.0) if not x.ndim else None  # type: ignore
