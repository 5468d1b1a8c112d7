"""The reference has every public name of every public module once, on the page of its subject."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import reference_pages
from reference_groups import ERRORS, MODULES, PAGES
from tenferro_tensor import functions
from workspace import PROJECTS, ROOT

NAVIGATION = (ROOT / "mkdocs.yml").read_text()


@pytest.fixture(scope="module")
def written() -> dict[str, str]:
    return reference_pages.pages()


def structure(page: str) -> str:
    """A page without the first lines of docstrings, which `dev docs` brings up to date."""
    return re.sub(r"^(\| .*\|) .* \|$", r"\1", page, flags=re.MULTILINE)


@pytest.mark.parametrize("slug", PAGES)
def test_page_is_up_to_date(slug: str, written: dict[str, str]) -> None:
    found = (reference_pages.FOLDER / f"{slug}.md").read_text(encoding="utf-8")
    hint = "run python3 dev run tests/support/reference_pages.py"
    assert structure(found) == structure(written[f"{slug}.md"]), hint
    assert f"reference/{slug}.md\n" in NAVIGATION


def test_functions_that_are_imported_late_are_seen_in_the_source() -> None:
    """The site is built from sources alone: it and type checkers follow star imports, and know no table of names."""
    text = Path(functions.__file__).read_text(encoding="utf-8")
    assert {*functions.LATER} <= set(re.findall(r"^    from tenferro_tensor\.functions\.(\w+) import \*$", text, re.M))


def test_every_public_name_is_in_one_entry() -> None:
    names = [name for entry in reference_pages.entries() for name in entry.names]
    assert sorted(names) == sorted(name for name, _ in reference_pages.public_names())
    assert len(set(names)) == len(names)
    assert {f"tenferro_{project.replace('-', '_')}" for project in PROJECTS} <= set(MODULES)


def test_every_entry_has_a_description() -> None:
    assert [entry.names for entry in reference_pages.entries() if not entry.line] == []


def test_pages_begin_with_arrays_and_not_with_an_error() -> None:
    sections = re.findall(r"reference/([\w-]+)\.md", NAVIGATION)
    assert sections[:3] == ["index", "tensors", "creation"]
    names = re.findall(r"^::: (\S+)", "".join(path.read_text() for path in reference_pages.FOLDER.glob("*.md")), re.M)
    assert "tenferro_runtime.MissingFamilyError" in names
    for slug in PAGES:
        first = re.search(r"^::: (\S+)", (reference_pages.FOLDER / f"{slug}.md").read_text(), re.M)
        assert first is not None
        assert first[1].endswith("Error") == (slug == ERRORS), slug


def test_a_definition_that_no_page_names_would_be_seen() -> None:
    def strange() -> None: ...

    strange.__module__ = "tenferro_strange"
    with pytest.raises(LookupError, match=r"tenferro_strange\.strange belongs to no page"):
        reference_pages.place(strange)


@pytest.mark.parametrize(
    ("module", "name", "page"),
    [
        ("tenferro_runtime", "sum", "reductions"),
        ("tenferro_linalg", "svd", "linear-algebra"),
        ("tenferro_runtime", "MissingFamilyError", "errors"),
        ("tenferro_ad", "fixed_point", "implicit"),
        ("tenferro_fft", "dct", "fourier"),
    ],
)
def test_subjects(module: str, name: str, page: str) -> None:
    value: Any = getattr(import_module(module), name)
    assert reference_pages.place(value)[0] == page
