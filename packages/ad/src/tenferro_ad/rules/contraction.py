"""The rule of `dot_general`: contract the cotangent with the other operand over that operand's free axes."""

from __future__ import annotations

from typing import Any, Final

from tenferro_ad.rules._conjugate import conjugate
from tenferro_ad.rules.structure import arranged, inverse
from tenferro_runtime.extension import Linear
from tenferro_tensor import Primitive, Spec
from tenferro_tensor import catalog as c


def _free(spec: Spec, contracted: tuple[int, ...], shared: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([i for i in range(spec.ndim) if i not in contracted and i not in shared])


def _partners(contracted: tuple[int, ...], others: tuple[int, ...]) -> tuple[int, ...]:
    """The axes of one operand paired with the other's contracted axes, which are taken in ascending order."""
    return tuple([contracted[others.index(j)] for j in sorted(others)])


def _left(g: Any, y: Any, x_spec: Spec, contract: Any, batch: Any) -> Any:
    shared = tuple(range(len(batch[0])))
    free_x, free_y = _free(x_spec, contract[0], batch[0]), _free(y.spec, contract[1], batch[1])
    of_y = tuple(range(len(shared) + len(free_x), g.ndim))
    out = c.dot_general(g, conjugate(y), contract=(of_y, free_y), batch=(shared, batch[1]))
    return arranged(out, inverse((*batch[0], *free_x, *_partners(*contract))))


def _right(g: Any, x: Any, y_spec: Spec, contract: Any, batch: Any) -> Any:
    shared = tuple(range(len(batch[0])))
    free_x, free_y = _free(x.spec, contract[0], batch[0]), _free(y_spec, contract[1], batch[1])
    of_x = tuple(range(len(shared), len(shared) + len(free_x)))
    out = c.dot_general(conjugate(x), g, contract=(free_x, of_x), batch=(batch[0], shared))
    return arranged(out, inverse((*batch[1], *_partners(*contract[::-1]), *free_y)))


RULES: Final[dict[Primitive, Any]] = {c.dot_general: Linear(x=_left, y=_right)}
