"""Every primitive of the catalog has a kernel and an oracle; every oracle is used by a test of this folder."""

from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest

import structural_oracles
from operations import OPERATIONS
from tenferro_tensor import Primitive, catalog
from tenferro_tensor.reference import kernels

PRIMITIVES = {v for v in vars(catalog).values() if isinstance(v, Primitive)}
ORACLES = {*OPERATIONS, catalog.convert, *structural_oracles.ORACLES}


def test_every_primitive_has_a_kernel_and_nothing_else_has() -> None:
    assert set(kernels(np, lambda: pytest.fail("making the table loads no special functions"))) == PRIMITIVES


def test_every_primitive_has_an_oracle() -> None:
    assert PRIMITIVES == ORACLES


def test_the_split_into_elementwise_and_structural_is_the_catalog_s() -> None:
    assert {p for p in PRIMITIVES if p.elementwise} == {*OPERATIONS, catalog.convert}


@pytest.mark.parametrize("primitive", sorted(structural_oracles.ORACLES, key=attrgetter("name")), ids=lambda p: p.name)
def test_every_structural_oracle_is_used(primitive: Primitive) -> None:
    """The element-wise table is swept as a whole; structural primitives are named by the tests that check them."""
    texts = [p.read_text() for p in Path(__file__).parent.glob("test_reference_*.py") if p.name != Path(__file__).name]
    name = "slice_" if primitive.name == "slice" else primitive.name
    assert any(f"c.{name}" in text for text in texts), f"no test here names {name}"
