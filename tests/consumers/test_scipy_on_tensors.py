"""SciPy's functions that take arrays of the standard, on tensors: special to signal, each beside NumPy's arrays."""

import os

import pytest

from probing import check

pytestmark = pytest.mark.filterwarnings("ignore")  # SciPy's own, of small samples and ill-conditioned filters

PARTS = (
    "special", "fft", "stats", "signal", "signal.windows", "ndimage", "integrate", "interpolate", "cluster", "spatial",
    "optimize", "differentiate", "linalg", "constants",
)  # fmt: skip

KNOWN: dict[str, str] = {}
"""Probes that fail, with a part of what is said."""


@pytest.mark.parametrize("part", PARTS)
def test_functions_agree_with_those_of_numpy(part: str) -> None:
    assert os.environ["SCIPY_ARRAY_API"] == "1", "SciPy was imported without it"
    from scipy_probes import PROBES, leaves

    probes = {name: probe for name, probe in PROBES.items() if name.partition(":")[0] == part}
    assert probes
    check(probes, KNOWN, leaves)
