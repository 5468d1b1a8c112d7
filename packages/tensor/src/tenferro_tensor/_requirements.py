"""Checks the requirements of a distribution on tenferro, by installed metadata.

Installers check requirements once; a manual upgrade of one distribution, or a path entry, bypasses them. This module
reads requirements of the form ``name>=1.2,<2``, and ignores those with a marker or an address.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from tenferro_tensor._owners import HOUSE

_REQUIREMENT: Final = re.compile(r"\s*([A-Za-z0-9][\w.-]*)\s*(?:\[[^\]]*\])?\s*\(?([^;@()]*)\)?\s*", re.ASCII)
_CLAUSE: Final = re.compile(r"\s*(~=|===?|!=|<=?|>=?)\s*([^\s]+)\s*")
_VERSION: Final = re.compile(
    r"v?(?:(\d+)!)?(\d+(?:\.\d+)*)[-_.]?(?:(a|b|rc|c|alpha|beta|pre|preview)[-_.]?(\d*))?"
    r"(?:[-_.]?(?:post|rev|r)[-_.]?(\d*)|-(\d+))?(?:[-_.]?(dev)[-_.]?(\d*))?(?:\+.*)?",
    re.ASCII | re.IGNORECASE,
)

Key = tuple[Any, ...]


def normal(name: Any) -> str:
    """The normalised name of a distribution; empty if it is not a name."""
    return re.sub(r"[-_.]+", "-", name).lower() if isinstance(name, str) else ""


def unmet(distribution: Any) -> Iterator[tuple[str, str, str]]:
    """Unmet requirements on tenferro's distributions: the text, the name, and the installed version."""
    from importlib.metadata import PackageNotFoundError, version  # deferred: slow to import

    try:
        wanted = list(distribution.requires or ())
    except Exception:  # missing or damaged metadata
        return
    for text in wanted:
        found = _REQUIREMENT.fullmatch(text) if isinstance(text, str) else None
        name = normal(found[1]) if found else ""
        if found is None or name not in HOUSE:
            continue
        try:
            there = version(name)
        except PackageNotFoundError:
            there = ""
        if not there or not satisfies(there, found[2]):
            yield text.strip(), name, there


def satisfies(version: str, specifiers: str) -> bool:
    """Whether a version satisfies a comma-separated list of specifiers.

    >>> satisfies("0.3.1", ">=0.2,<1"), satisfies("1.0rc1", ">=1.0"), satisfies("1.4.5", "~=1.4.2, !=1.4.5")
    (True, False, False)
    """
    have = _key(version)
    for clause in specifiers.split(","):
        found = _CLAUSE.fullmatch(clause)
        if have is not None and found is not None and not _holds(have, found[1], found[2]):
            return False
    return True


def _holds(have: Key, comparison: str, text: str) -> bool:
    if comparison in ("==", "!=") and text.endswith(".*"):
        prefix = _key(text[:-2], whole=True)
        return prefix is None or _begins(have, prefix) == (comparison == "==")
    want = _key(text)
    if want is None:
        return True
    if comparison == "~=":
        whole = _key(text, whole=True)
        assert whole is not None
        return have >= want and _begins(have, (whole[0], whole[1][:-1]))
    same_release = have[:2] == want[:2]
    if comparison == "<":  # pre-releases of a version do not count as lower
        return have < want and not (same_release and want[2] == _FINAL and want[3] < 0)
    if comparison == ">":
        return have > want and not same_release if want[2] == _FINAL and want[3] < 0 else have > want
    return {"<=": have <= want, ">=": have >= want, "!=": have != want}.get(comparison, have == want)


def _begins(have: Key, prefix: Key) -> bool:
    release = have[1] + (0,) * len(prefix[1])
    return bool(have[0] == prefix[0] and release[: len(prefix[1])] == prefix[1])


_FINAL: Final = (3, 0)
_STAGES: Final = {"a": 0, "alpha": 0, "b": 1, "beta": 1, "c": 2, "rc": 2, "pre": 2, "preview": 2}


def _key(text: str, *, whole: bool = False) -> Key | None:
    """Sort key of a version: epoch, release, stage, post, dev; ``None`` if it is not a version."""
    found = _VERSION.fullmatch(text.strip())
    if found is None:
        return None
    epoch, numbers, stage, number, post, dash, dev, working = found.groups()
    release = tuple(map(int, numbers.split(".")))
    while not whole and len(release) > 1 and release[-1] == 0:
        release = release[:-1]
    after = -1 if post is None and dash is None else int(post or dash or 0)
    kind: Key = (_STAGES[stage.lower()], int(number or 0)) if stage else _FINAL
    if dev and not stage and after < 0:
        kind = (-1, 0)
    return int(epoch or 0), release, kind, after, (0, int(working or 0)) if dev else (1, 0)
