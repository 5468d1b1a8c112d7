"""The tables for those who come from other libraries: both columns of every row run, and their values agree."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import markdown_blocks
from tenferro_runtime import tree_leaves
from workspace import ROOT

FOLDER = ROOT / "docs" / "coming-from"
ROWS = {"numpy": 25, "jax": 25, "pytorch": 25, "autograd": 12, "quimb": 12, "itensor": 12}
"""The pages, and how many rows each has at least."""

WITH_RESULT = ("pytorch", "itensor")
"""Pages with a column of values: the other library is not installed for tests."""

TOLERANCE = {"jax": 2e-6}
"""JAX computes in float32 unless told otherwise; the others agree to rounding."""

ROW = re.compile(r"^\| (.+) \|$", re.MULTILINE)


def has_torch() -> bool:
    return find_spec("torch") is not None and hasattr(__import__("torch"), "tensor")


def rows(page: str) -> Iterator[list[str]]:
    """The cells of a page's table, without the two lines of its head; bars inside code stand for themselves."""
    for line in ROW.findall((FOLDER / f"{page}.md").read_text())[2:]:
        yield [cell.strip() for cell in re.split(r" \|(?= |$)", line)]


@cache
def defined(page: str) -> dict[str, Any]:
    """What the blocks of a page define."""
    return markdown_blocks.run(FOLDER / f"{page}.md", "torch" if page == "pytorch" and has_torch() else None)


def value(cell: str, names: dict[str, Any]) -> Any:
    """The value of the code in a cell: its last expression, or the name to which the last statement assigns."""
    (code,) = re.findall(r"`(.+?)`", cell)
    own, tree = dict(names), ast.parse(code)
    last = tree.body[-1]
    if isinstance(last, ast.Assign | ast.AugAssign):
        target = last.targets[0] if isinstance(last, ast.Assign) else last.target
        name = target.value if isinstance(target, ast.Subscript) else target
        assert isinstance(name, ast.Name)
        tree.body.append(ast.Expr(ast.Name(name.id, ast.Load())))
    expression = tree.body.pop()
    assert isinstance(expression, ast.Expr)
    exec(compile(ast.fix_missing_locations(tree), cell, "exec"), own)
    return eval(compile(ast.fix_missing_locations(ast.Expression(expression.value)), cell, "eval"), own)


def leaves(found: Any) -> list[Any]:
    """The arrays and numbers of a result."""
    if isinstance(found, tuple | list | dict) and not np.isscalar(found):
        return [leaf for each in tree_leaves(found) for leaf in (leaves(each) if each is not found else [each])]
    return [found]


def require_equal(there: Any, here: Any, tolerance: float) -> None:
    """Raise unless structures of arrays have equal shapes and values."""
    for x, y in zip(leaves(there), leaves(here), strict=True):
        if isinstance(x, str):
            assert x == y
            continue
        a, b = (np.asarray(each.detach() if type(each).__module__ == "torch" else each) for each in (x, y))
        assert a.shape == b.shape
        np.testing.assert_allclose(b, a, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("page", "row"), [pytest.param(page, row, id=f"{page}-{row[1]}") for page in ROWS for row in rows(page)]
)
def test_row(page: str, row: list[str]) -> None:
    names, tolerance = defined(page), TOLERANCE.get(page, 1e-10)
    here = value(row[1], names)
    if page not in WITH_RESULT:
        require_equal(value(row[0], names), here, tolerance)
        return
    result = np.asarray(ast.literal_eval(row[2].strip("`")))
    require_equal(result, np.asarray(here), tolerance)
    if page == "pytorch" and has_torch():
        require_equal(result, np.asarray(value(row[0], names)), tolerance)


@pytest.mark.parametrize("page", ROWS)
def test_page_has_enough_rows(page: str) -> None:
    table = list(rows(page))
    assert len(table) >= ROWS[page]
    assert {len(row) for row in table} == {4 if page in WITH_RESULT else 3}


def test_the_overview_lists_all_pages() -> None:
    listed = set(re.findall(r"\((\w+)\.md\)", (FOLDER / "index.md").read_text()))
    assert listed == set(ROWS) == {Path(path).stem for path in FOLDER.glob("*.md")} - {"index"}


def test_a_wrong_row_would_be_seen() -> None:
    with pytest.raises(AssertionError):
        require_equal(value("`[1.0, 2.0]`", {}), value("`b = [1.0, 2.0]; b[0] = 3.0`", {}), 1e-10)
    with pytest.raises(AssertionError):
        require_equal(np.ones(2), np.ones((2, 1)), 1e-10)
