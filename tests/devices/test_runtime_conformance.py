"""The simulated accelerator keeps the contract of device runtimes, with peer access and without, and with delays."""

from typing import Any

import pytest

from runtime_conformance import RuntimeConformance
from simulated.faults import Faults
from simulated.installed import simulated

WAYS: dict[str, Any] = {
    "peers": {},
    "some peers": {"peers": {(0, 1), (1, 0)}},
    "no peers, delays": {"peers": False, "faults": Faults(seed=5, delayed=0.1, longest=5e-4)},
    "one device": {"count": 1},
}


class TestSimulated(RuntimeConformance):
    """Hazards fail the test: the suite itself issues every wait that is needed."""

    @pytest.fixture(params=WAYS)
    def runtime(self, request):
        with simulated(**WAYS[request.param]) as runtime:
            yield runtime
