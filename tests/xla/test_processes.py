"""Runs of several real processes: trained as by one, ended with an error where one is lost, continued by others."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import einsum_on_processes
import example_programs
from tenferro_tensor_core import ArgumentError
from tenferro_xla import distributed
from tenferro_xla.checkpoints import load_sharded
from tenferro_xla.mesh import Mesh
from workspace import ROOT

EXAMPLE = ROOT / "examples" / "digits_on_processes.py"


def launch(count: int, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tenferro_xla.launch", "-n", str(count), "--devices", "1", str(EXAMPLE)]
    return subprocess.Popen(
        [*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace"
    )


def test_training_survives_the_loss_of_a_process(tmp_path: Path) -> None:
    """Four train and one of them is killed; two go on from the checkpoint, and end where a single one does."""
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "digits.npz", images=rng.random((200, 64)), labels=rng.integers(0, 10, 200))
    given = ["--images", str(tmp_path / "digits.npz"), "--bond", "4", "--batch", "32"]
    many = launch(4, "--checkpoint", str(tmp_path / "many"), "--every", "5", "--steps", "1000000", *given)
    assert many.stdout is not None and many.stderr is not None
    pids = dict(re.findall(r"(\d) is (\d+)", many.stderr.readline()))
    while not (line := many.stdout.readline()).startswith("[0] step 10:"):
        assert line, many.stderr.read()
    os.kill(int(pids["2"]), signal.SIGKILL)
    out, err = many.communicate(timeout=120)
    assert many.returncode == 128 + signal.SIGKILL
    assert "launch: process 2 of 4 was ended by SIGKILL" in err
    lost = r"^\[(\d)\] .*ProcessLostError: another process of the run has ended or does not respond .* checkpoint$"
    assert {*re.findall(lost, out, re.MULTILINE)} == {"0", "1", "3"}, out
    done = load_sharded(tmp_path / "many")["step"]
    assert done >= 10 and done % 5 == 0
    steps = str(done + 5)
    two = launch(2, "--checkpoint", str(tmp_path / "many"), "--steps", steps, *given)
    out, err = two.communicate(timeout=120)
    assert two.returncode == 0, out + err
    digits = example_programs.load("digits_on_processes")
    images, labels = digits.load(tmp_path / "digits.npz")
    mesh = Mesh({"data": 1}, jax.devices()[:1])
    digits.train(mesh, images, labels, tmp_path / "one", steps=int(steps), every=10**6, batch=32, bond=4)
    found, wanted = [load_sharded(tmp_path / name) for name in ("many", "one")]
    assert found["step"] == wanted["step"] == int(steps)
    for part, arrays in wanted["training"].items():
        for name, x in arrays.items():
            np.testing.assert_allclose(np.asarray(found["training"][part][name]), np.asarray(x), rtol=0, atol=1e-12)


def test_the_slices_of_a_lost_process_are_done_by_the_others(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tenferro_xla.launch", "-n", "3", "--devices", "1"]
    found = subprocess.run(
        [*command, einsum_on_processes.__file__, str(tmp_path)],
        capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert re.search(r"\[0\] 3 processes, 6 tasks, lost: \['a process of the run is lost: ", found.stdout), found
    assert found.stderr.splitlines()[1:] == ["launch: process 1 of 3 was ended by SIGKILL"]
    assert found.returncode == 128 + signal.SIGKILL


def test_arguments_of_initialize_belong_together() -> None:
    with pytest.raises(ArgumentError, match="coordinator, processes and index together, got 'host:1', 2 and None"):
        distributed.initialize("host:1", 2)
    with pytest.raises(ArgumentError, match="got process 2 of 2; indices start at 0"):
        distributed.initialize("host:1", 2, 2)
    assert jax.devices() and not distributed.launched()
    with pytest.raises(
        distributed.ProcessesError, match="cannot join a run .* once, before any computation with XLA, in a"
    ):
        distributed.initialize("127.0.0.1:1", 1, 0)
    assert (distributed.process_index(), distributed.process_count()) == (0, 1)


def test_one_process_gives_tasks_to_its_own_devices() -> None:
    with distributed.workers() as executor:
        assert executor is not None and executor.submit(os.getpid).result() == os.getpid()
    with pytest.raises(RuntimeError, match="the workers have been shut down"):
        executor.submit(os.getpid)


def test_only_errors_about_lost_processes_are_named_so() -> None:
    with pytest.raises(ValueError, match="no such axis"), distributed.losses_named():
        raise ValueError("no such axis")
    monkey = pytest.MonkeyPatch()
    with monkey.context() as patched:
        patched.setattr("atexit.register", lambda f: f)
        text = r"has ended or does not respond \(Gloo all-reduce failed: Connection closed by peer\)"
        with pytest.raises(distributed.ProcessLostError, match=text), distributed.losses_named():
            raise ValueError("Gloo all-reduce failed: Connection closed by peer\nmore")
