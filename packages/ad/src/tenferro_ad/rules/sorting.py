"""Rules of sorting: a sort applies the permutation of ``argsort``; equal elements keep their order."""

from __future__ import annotations

from typing import Any, Final

from tenferro_ad.rules._along import take
from tenferro_runtime.extension import General, Inactive
from tenferro_tensor import Primitive
from tenferro_tensor import catalog as c


def _sort_jvp(primals: Any, tangents: Any, outs: Any, axis: int, descending: bool) -> Any:
    return (take(tangents[0], c.argsort(primals[0], axis=axis, descending=descending), axis),)


def _sort_vjp(primals: Any, outs: Any, cotangents: Any, axis: int, descending: bool) -> Any:
    order = c.argsort(primals[0], axis=axis, descending=descending)
    return (take(cotangents[0], c.argsort(order, axis=axis, descending=False), axis),)


RULES: Final[dict[Primitive, Any]] = {
    c.sort: General(jvp=_sort_jvp, vjp=_sort_vjp),
    c.argsort: Inactive(),
    c.searchsorted: Inactive(),
}
