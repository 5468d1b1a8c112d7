"""Family ids: the names by which program files identify primitives of extensions. One id is one operation."""

from __future__ import annotations

import inspect
import re
from typing import Any, Final
from weakref import WeakValueDictionary

from tenferro_tensor import entry_points
from tenferro_tensor_core import RegistryError
from tenferro_tensor_core.forks import new_lock

__all__ = ["check_family_id", "claim", "member", "members"]


def __dir__() -> list[str]:
    return __all__.copy()


_FORM: Final = re.compile(r"[a-z0-9]+([-._][a-z0-9]+)*\.[a-z][a-z0-9_]*\.v[1-9][0-9]*")

_claimed: Final[WeakValueDictionary[str, Any]] = WeakValueDictionary()
_lock = new_lock()


def check_family_id(family: str) -> str:
    """Check that an id has the form ``<distribution>.<op>.v<major>``.

    Args:
        family: the id.

    Returns:
        The id.

    Raises:
        RegistryError: it has another form.

    >>> check_family_id("tenferro-linalg.svd.v1")
    'tenferro-linalg.svd.v1'
    """
    if not isinstance(family, str) or not _FORM.fullmatch(family):
        raise RegistryError(
            f"{family!r} is no family id; the form is '<distribution>.<op>.v<major>', "
            "for example 'tenferro-linalg.svd.v1'",
            family=family,
        )
    return family


def claim(primitive: Any) -> None:
    """Claim the family id of a primitive, which is new or belongs to an earlier definition by the same code.

    Args:
        primitive: the primitive.

    Raises:
        RegistryError: other code has a primitive with the same id; the text names both.
    """
    family = check_family_id(primitive.family)
    with _lock:
        other = _claimed.get(family)
        if other is not None and not _redefined(other, primitive):
            raise RegistryError(
                f"the family id {family!r} belongs to {other.name} of {_brought_by(other)}, and "
                f"{primitive.name} of {_brought_by(primitive)} claims it too; a saved program could run either: "
                "uninstall one of the two, or give one another id",
                family=family,
            )
        _claimed[family] = primitive


def member(family: str) -> Any:
    """The primitive of a family id; the newest one if the same code ran again.

    Args:
        family: the id.

    Returns:
        The primitive, or None.
    """
    return _claimed.get(family)


def members() -> list[str]:
    """All claimed family ids.

    Returns:
        The sorted ids.
    """
    with _lock:
        return sorted(_claimed)


def _redefined(old: Any, new: Any) -> bool:
    """Whether the same code created both: a reloaded module, or a cell that ran again."""
    (module, file, name), (module_, file_, name_) = map(_code, (old, new))
    return name == name_ and (module == module_ or file == file_)


def _code(primitive: Any) -> tuple[str, Any, str]:
    rule = inspect.unwrap(primitive._rule)
    code = getattr(rule, "__code__", None)
    file = object() if code is None else code.co_filename
    return str(rule.__module__), file, getattr(rule, "__qualname__", rule.__name__)


def _brought_by(primitive: Any) -> str:
    module = primitive._rule.__module__
    point = entry_points.installed("tenferro.extensions").get(primitive.extension or "")
    if point is not None:
        return f"{entry_points.owner(point)} (extension {primitive.extension!r}, module {module})"
    from importlib.metadata import packages_distributions

    named = sorted(set(packages_distributions().get(module.partition(".")[0], ())))
    return f"{f'distribution {named[0]}, ' if named else ''}module {module}"
