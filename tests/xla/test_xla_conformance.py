"""XLA passes the checks for backends and for compilers of whole programs."""

import pytest

from tenferro_ad import check_compiler
from tenferro_tensor.conformance import check_backend
from thorough import THOROUGH
from xla_table import how, primitives

MANY_COMPILATIONS = ("results", "sizes", "layouts", "broadcasting")
"""Checks that compile each operation for every dtype and shape, in minutes."""


@pytest.mark.parametrize("device", ["cpu", "xla:cpu:0"])
def test_the_compiler(device):
    report = check_compiler("xla", device=device)
    left_out = {f.check: f.left_out for f in report.findings if f.outcome != "passed"}
    assert list(left_out) == (["effects"] if device == "cpu" else ["layouts", "effects"])
    if device != "cpu":
        assert left_out["layouts"] == f"arguments on {device} have the layout of that device"


def test_the_backend():
    report = check_backend("xla:cpu:0", skip=() if THOROUGH else MANY_COMPILATIONS)
    assert "define_size" in report.absent
    known = [p for those in primitives().values() for name, p in those.items() if not how(name, p)]
    assert set(report.absent) <= {p.name for p in known}  # special functions too, once they are loaded
