"""Slices on the processes of a run, one of which is killed: ``python -m tenferro_xla.launch -n 3 THIS FOLDER``."""

import os
import signal
import sys
from pathlib import Path

import numpy as np

import tenferro_runtime as tr
from tenferro_einsum import plan, run_on
from tenferro_einsum._slices import contract_slices
from tenferro_xla import distributed


def main(folder: Path) -> None:
    """The value comes from the processes, equal to the one made here, though one is lost in between."""
    distributed.initialize(recoverable=True)
    (folder / str(distributed.process_index())).write_text(str(os.getpid()))
    xs = [tr.asarray(np.random.default_rng(seed).standard_normal((10, 10, 3))) for seed in range(3)]
    whole = plan("abi,bcj,cak->ijk", *xs)
    cut = contract_slices.op(inputs=whole._labels, output=whole._output, steps=whole.steps, sliced=((0, 10),))
    with distributed.workers() as executor:
        if executor is None:
            return
        pids: set[int] = set()
        while len(pids) < 3:  # until each has joined
            pids.add(executor.submit(os.getpid).result())
        os.kill(int((folder / "1").read_text()), signal.SIGKILL)
        finished: list[float] = []
        with run_on(executor, tasks=6, retries=0, progress=lambda part, count: finished.append(part)):
            found = cut(*xs)
        np.testing.assert_allclose(np.asarray(found), np.asarray(whole(*xs)), rtol=1e-12)
        print(f"{len(pids)} processes, {len(finished)} tasks, lost: {executor.lost}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
