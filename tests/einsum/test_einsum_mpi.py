"""Slices over MPI, where it is installed: ``pip install mpi4py mpich`` brings all of it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import einsum_on_mpi

pytest.importorskip("mpi4py")


@pytest.mark.slow
def test_values_and_gradients_come_from_mpi_workers():
    mpiexec = shutil.which("mpiexec", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    if mpiexec is None:
        pytest.skip("there is mpi4py, but no mpiexec")
    found = subprocess.run(
        [mpiexec, "-n", "3", sys.executable, "-m", "mpi4py.futures", einsum_on_mpi.__file__],
        capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert found.stdout.strip() == "2 workers [0.25, 0.5, 0.75, 1.0]", found.stderr
