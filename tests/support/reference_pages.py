"""The pages of the reference, one for each subject: a table of the names, then their documentation.

``python3 dev run tests/support/reference_pages.py`` writes them into ``docs/reference``, and so does ``dev docs``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from reference_groups import ERRORS, MODULES, PAGES, VALUES

FOLDER: Final = Path(__file__).resolve().parents[2] / "docs" / "reference"
NOTE: Final = "<!-- written by tests/support/reference_pages.py -->\n"
OPTIONS: Final = (
    "    options:\n      show_root_heading: true\n      show_root_toc_entry: true\n      heading_level: {level}\n"
)
INHERITED: Final = "      inherited_members: true\n"
WHOLE: Final = "tenferro_tensor.Array"
"""The class whose inherited members are listed: what all kinds of arrays have."""


@dataclass
class Entry:
    """What one line of a table describes: its public names, of which the first is the home of its documentation."""

    page: str
    section: str
    line: str
    names: list[str] = field(default_factory=list)
    documented: bool = True


def public_names() -> Iterator[tuple[str, Any]]:
    """All public names of the modules with their objects."""
    for module in MODULES:
        found = import_module(module)
        for name in found.__all__:
            yield f"{module}.{name}", getattr(found, name)


def place(value: Any) -> tuple[str, str]:
    """The page and the section of a function or class: those that name the longest part of its path.

    Raises:
        LookupError: no group names it.
    """
    if isinstance(value, type) and issubclass(value, BaseException):
        return ERRORS, ""
    path = f"{value.__module__}.{value.__name__}"
    matches = [
        (len(prefix), page, section)
        for page, group in PAGES.items()
        for section, prefixes in group.sections.items()
        for prefix in prefixes
        if path == prefix or path.startswith(f"{prefix}.")
    ]
    if not matches:
        raise LookupError(f"{path} belongs to no page: name its module in tests/support/reference_groups.py")
    best = max(matches)
    if [match[0] for match in matches].count(best[0]) > 1:
        raise LookupError(f"{path} belongs to several pages: {[match[1:] for match in matches]}")
    return best[1:]


def first_line(value: Any) -> str:
    """The first paragraph of a docstring, in one line of a table; bars in it stand in code, which needs no escape."""
    paragraph = (inspect.getdoc(value) or "").partition("\n\n")[0]
    return re.sub(r"``(.+?)``", r"`\1`", " ".join(paragraph.split()))


def entries() -> list[Entry]:
    """The entries of all pages; every public name is in exactly one."""
    found: dict[Any, Entry] = {}
    for name, value in public_names():
        if name in VALUES:
            page, section, line = VALUES[name]
            entry = found.setdefault((page, line, name.rpartition(".")[2].strip("_")), Entry(page, section, line))
            entry.documented = False
        else:
            entry = found.setdefault(id(value), Entry(*place(value), first_line(value)))
        entry.names.append(name)
    for entry in found.values():
        entry.names.sort(key=lambda name: (MODULES.index(name.rpartition(".")[0]), _is_synonym(name)))
    return sorted(found.values(), key=lambda entry: entry.names[0].rpartition(".")[2].lower())


def _is_synonym(name: str) -> bool:
    module, _, label = name.rpartition(".")
    return getattr(getattr(import_module(module), label), "__name__", label) != label


def shown(name: str, module: str) -> str:
    """A name as it is written on a page whose names come from a module."""
    home, _, label = name.rpartition(".")
    if home == module:
        return f"`{label}`"
    return f"`{name.replace('tenferro_runtime.', 'tr.')}`"


def row(entry: Entry, module: str) -> str:
    """A line of a table."""
    first, *others = entry.names
    link = f"[{shown(first, module)}][{first}]" if entry.documented else shown(first, module)
    return f"| {', '.join([link, *(shown(name, module) for name in others)])} | {entry.line} |"


def page(slug: str, of_page: list[Entry]) -> str:
    """The text of a page."""
    group = PAGES[slug]
    homes = [entry.names[0].rpartition(".")[0] for entry in of_page]
    module = max(MODULES, key=homes.count)
    parts = [NOTE, f"# {group.title}\n", group.sentence + "\n"]
    sections = {title: [entry for entry in of_page if entry.section == title] for title in group.sections}
    for title, rows in sections.items():
        if rows:
            heading = f"| {title or 'name'} | |\n|---|---|"
            parts.append("\n".join([heading, *(row(entry, module) for entry in rows)]) + "\n")
    for title, rows in sections.items():
        documented = [entry for entry in rows if entry.documented]
        if documented and title:
            parts.append(f"## {title}\n")
        options = OPTIONS.format(level=3 if title else 2)
        names = [entry.names[0] for entry in documented]
        parts += [f"::: {name}\n{options}{INHERITED if name == WHOLE else ''}" for name in names]
    return "\n".join(parts)


def pages() -> dict[str, str]:
    """The text of every page by its file name."""
    every = entries()
    return {f"{slug}.md": page(slug, [entry for entry in every if entry.page == slug]) for slug in PAGES}


if __name__ == "__main__":
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
