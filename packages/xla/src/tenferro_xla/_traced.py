"""Functions of JAX arrays as StableHLO functions: JAX lowers computations that StableHLO has no operation for."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from tenferro_runtime.extension import BoundedCache
from tenferro_tensor import Spec
from tenferro_tensor_core import RegistryError, key_of
from tenferro_xla._jax_modules import library, wide_numbers


class TracedFunction(NamedTuple):
    """StableHLO functions; the entry point is ``main``.

    Attributes:
        text: text of the functions, without the enclosing module.
        names: names of the functions.
    """

    text: str
    names: frozenset[str]

    def renamed(self, prefix: str) -> str:
        """Return the text with a prefix before all names."""
        known = "|".join(map(re.escape, sorted(self.names, key=len, reverse=True)))
        text = re.sub(rf"@({known})(?![\w.$-])", rf"@{prefix}\1", self.text)
        return text.replace("func.func public", "func.func private")


_TRACED: Final[BoundedCache[Any, TracedFunction]] = BoundedCache("tenferro_xla: functions lowered by JAX", 1024)


def traced(
    function: Callable[..., Any],
    operands: Sequence[Spec],
    outs: Sequence[Spec],
    static: dict[str, Any],
    platform: str,
) -> TracedFunction:
    """Lower ``function(library, *arrays, **static)`` for a platform, with a cache.

    Raises:
        RegistryError: the results have other shapes or dtypes than `outs`.
    """
    options = tuple(sorted((name, key_of(v)) for name, v in static.items()))
    key = (function, tuple(operands), tuple(outs), options, platform)
    return _TRACED.get_or_make(key, lambda: _traced(function, operands, outs, static, platform))


def _traced(
    function: Callable[..., Any], operands: Sequence[Spec], outs: Sequence[Spec], static: dict[str, Any], platform: str
) -> TracedFunction:
    jax = library()
    arguments = [jax.ShapeDtypeStruct(s.shape, s.dtype) for s in operands]
    with wide_numbers():
        # Unused operands are kept, since callers pass all of them.
        found = jax.jit(partial(function, library, **static), keep_unused=True).trace(*arguments)
        text = found.lower(lowering_platforms=(platform,)).as_text()
    got = [(tuple(x.shape), x.dtype) for x in jax.tree.leaves(found.out_info)]
    if got != [(s.shape, s.dtype) for s in outs]:
        raise RegistryError(
            f"{function.__qualname__} returns {got} for {list(operands)}, but the lowering expects {list(outs)}"
        )
    body = text[text.index("\n", text.index("module @")) : text.rindex("}")].strip("\n")
    names = re.findall(r"func\.func (?:public |private )?@([\w.$-]+)", body)
    return TracedFunction(body, frozenset(names))
