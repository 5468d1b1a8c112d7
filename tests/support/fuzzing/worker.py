"""A process that runs cases for the campaign: ``python -m fuzzing.worker``, a request and replies as lines of JSON.

A request is a batch, ``{"area", "seed", "seconds", "cases", "first"}``, or a trial of given cases, ``{"area",
"trial": [...]}``.
Before each case its number goes to a file that the campaign maps too, with the trials made so far: if this process dies
or hangs, it is known in which case, and the case follows from the seed and the number.
"""

import contextlib
import faulthandler
import json
import logging
import mmap
import os
import random
import signal
import sys
import time
import traceback
import warnings
from typing import Any

from fuzzing.area import ALWAYS, QUICK, Area, Case
from fuzzing.areas import AREAS, PLANTED


def rng_of(seed: int, number: int) -> random.Random:
    """The random numbers of one case."""
    return random.Random((seed << 24) + number)


def failure(area: Area, case: Case) -> dict[str, Any] | None:
    """Run a case; what went wrong, or None."""
    try:
        area.run(case)
    except Exception as error:
        kind = type(error).__name__
        text = str(error) if kind == "Mismatch" else "".join(traceback.format_exception(error)[-6:])
        return {"kind": kind, "text": text[-3000:], "place": _place(error)}
    return None


def _place(error: BaseException) -> str:
    """Function and file where an error other than a mismatch was raised."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{os.path.basename(last.filename)}:{last.name}"


def prepare(machine: str) -> None:
    """Warnings and logs are not what is looked for; machine code from the first call on where that is asked for."""
    warnings.simplefilter("ignore")
    logging.disable()
    if machine == ALWAYS:
        from tenferro_runtime.lowering.native import _cost

        _cost.WAIT_MIN_NS = _cost.COMPILER_NS = _cost.EQUATION_NS = -1  # type: ignore[misc]
    if machine == QUICK:
        import machine_code

        machine_code.install()
        machine_code.optimise(False)


MAX_BYTES = 8 << 30
"""Address space of a worker: a case that asks for more gets a MemoryError, and other programs keep their memory."""


def limit_memory() -> None:
    """Apply `MAX_BYTES` where the system can."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, resource.RLIM_INFINITY))


def main() -> None:
    """Serve requests from standard input until it ends."""
    counter = mmap.mmap(os.open(sys.argv[1], os.O_RDWR), 16)
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the library prints is no reply
    if "TENFERRO_INSTRUMENTED" in os.environ:
        import instrumented  # noqa: F401 - finds the extensions with sanitizers, which map terabytes
    else:
        limit_memory()
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the campaign decides when to end
    prepare(sys.argv[2])

    def reply(**what: Any) -> None:
        replies.write(json.dumps(what) + "\n")
        replies.flush()

    reply(ready=True)
    number = 0
    for line in sys.stdin:
        request = json.loads(line)
        area = (AREAS | PLANTED)[request["area"]]
        if "trial" in request:
            found = None
            for case in request["trial"]:
                number += 1
                counter[:8] = number.to_bytes(8, "little")
                found = failure(area, case)
            reply(done=True, failure=found)
            continue
        area.counts.clear()
        end, i, trials = time.monotonic() + request["seconds"], request.get("first", 0), 0
        while i < request["cases"] and time.monotonic() < end:
            counter[:] = i.to_bytes(8, "little") + trials.to_bytes(8, "little")
            case = area.draw(rng_of(request["seed"], i))
            found = failure(area, case)
            if found:
                reply(number=i, failure=found)
            i, trials = i + 1, trials + area.trials(case)
        reply(done=True, count=i, trials=trials, counts=area.counts)


if __name__ == "__main__":
    main()
