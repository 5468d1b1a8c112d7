"""Suspicions about GPUs that only hardware settles; here the checks of them run on the simulated CuPy."""

import re

import pytest

from gpu_checks import CHECKS, HARDWARE, SIMULATED
from host_kernels import COMPILER
from installed_cupy import simulated_gpu
from workspace import ROOT


@pytest.mark.gpu
@pytest.mark.parametrize("name", CHECKS)
def test_on_hardware(name):
    CHECKS[name](HARDWARE)


@pytest.mark.skipif(COMPILER is None, reason="there is no g++ to compile rendered kernels with")
@pytest.mark.parametrize("name", CHECKS)
def test_on_the_simulated_cupy(name):
    with simulated_gpu():
        CHECKS[name](SIMULATED)


def test_the_page_lists_every_check():
    text = (ROOT / "docs" / "gpu-check.md").read_text(encoding="utf-8")
    assert {*re.findall(r"\[(\w+_\w+)\]`", text)} == {*CHECKS}
