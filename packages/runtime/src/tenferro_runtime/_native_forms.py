"""Native forms of programs: who provides them, found when the first program is prepared."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tenferro_tensor_core.forks import importing

if TYPE_CHECKING:
    from tenferro_runtime.ir._program import Program


class NativeForms(NamedTuple):
    """A provider of native forms for programs on the calling thread or on one accelerator.

    Attributes:
        serves: ``serves(program)``, whether a program has a native form.
        form: ``form(program, bare, steps, donated)`` returns the function that prepares the program, from the function
            that prepares its steps.
    """

    serves: Callable[[Program], bool]
    form: Callable[[Program, bool, Callable[[], Any], tuple[int, ...]], Any]


PROVIDERS: Final[list[Callable[[], NativeForms]]] = []
"""Functions that import a provider. Providers stand on the code that runs programs; eager operations need neither."""

_found: Final[dict[Callable[[], NativeForms], NativeForms]] = {}


def native_forms() -> list[NativeForms]:
    """The registered providers."""
    if len(_found) < len(PROVIDERS):
        with importing():
            for provider in PROVIDERS:
                _found[provider] = provider()
    return [*_found.values()]
