"""Of products of three factors or more, every run tries a part in which each pair of values is."""

import os
import subprocess
import sys
from itertools import combinations, product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covering import covering
from workspace import ROOT


def pairs(rows):
    return {(i, j, row[i], row[j]) for row in rows for i, j in combinations(range(len(row)), 2)}


@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_every_pair_of_values_stays(extents, random):
    """Also of a product with gaps, such as the cases that an option has selected."""
    rows = [row for row in product(*map(range, extents)) if random.random() < 0.8]
    kept = [rows[at] for at in covering(rows)]
    assert pairs(kept) == pairs(rows) and len({*kept}) == len(kept)
    assert kept == [row for row in rows if row in kept]
    if len(extents) < 3:
        assert kept == rows


def test_a_large_product_becomes_small():
    rows = list(product(range(6), range(5), range(7), range(3)))
    assert 42 <= len(covering(rows)) < 70


CASES = """
import pytest

@pytest.fixture(params="uv")
def letter(request):
    return request.param

@pytest.mark.parametrize("a", range(4))
@pytest.mark.parametrize(("b", "c"), [(0, 1), (1, 0), (0, 0)])
def test_of_two_factors(a, b, c):
    pass

@pytest.mark.parametrize("a", range(4))
@pytest.mark.parametrize(("b", "c"), [(0, 1), (1, 0), (0, 0)])
def test_of_three_factors(a, b, c, letter):
    pass
"""


@pytest.mark.parametrize(("thorough", "two", "three"), [("", 12, 12), ("1", 12, 24)])
def test_the_suite_is_sampled(thorough, two, three, tmp_path: Path):
    (tmp_path / "test_cases.py").write_text(CASES)
    path = os.pathsep.join([str(ROOT / "tests"), str(ROOT / "tests" / "support")])
    command = [sys.executable, "-m", "pytest", "-p", "conftest", "-c", os.devnull, "--co", "-q", str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": path, "TENFERRO_THOROUGH": thorough}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=tmp_path)
    assert [done.stdout.count(f"test_of_{n}_factors[") for n in ("two", "three")] == [two, three], done.stderr
