"""Functions without annotations: nothing is inferred of their arguments, and nothing in them may be an error."""
# mypy: check-untyped-defs
# pyright: basic, reportUnnecessaryTypeIgnoreComment=error

from typing import assert_type

import tenferro_runtime as tr


def of_dict(params, x=2.0):
    return tr.sum(params["w"] * x)


def expressions() -> None:
    x = tr.ones(3)
    params = {"w": x}
    tr.grad(lambda x: tr.sum(x * x))(x).sum()
    tr.grad(lambda p: of_dict(p))(params).items()
    tr.grad(of_dict)(params, x=2.0).items()
    tr.compile(tr.grad(of_dict))(params).items()
    tr.compile(tr.value_and_grad(of_dict))(params)[1].items()
    tr.vmap(tr.grad(lambda t: t * t))(x).sum()
    tr.hessian(lambda x: tr.sum(x * x))(x).sum()
    tr.jvp(tr.grad(lambda x: tr.sum(x * x)), (x,), (x,))[1].sum()
    assert_type(tr.linalg.norm(tr.grad(of_dict)(params)["w"]), tr.Array)


def typos() -> None:
    """Never called."""
    tr.compile(of_dict)({}, y=3)  # type: ignore
