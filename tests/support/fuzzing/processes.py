"""Threads that compute, forks among them, and signals that interrupt: all end, and every result is right."""

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator

from fuzzing.area import ALWAYS, WITH, WITHOUT, Area, Case, Mismatch, halves

JOBS = {
    "eager": "assert float(tr.sum(tr.sin(x) * x + k)) == float(tr.sum(tr.sin(x) * x + k))",
    "compile": "f = tr.compile(lambda v: tr.sum(tr.tanh(v * k) + v)); assert abs(float(f(x)) - float(f(x))) < 1e-9",
    "grad": "g = grad(lambda v: tr.sum(v * v * k))(x); assert np.allclose(np.asarray(g), 2 * k * x.numpy())",
    "compiled grad": "g = tr.compile(grad(lambda v: tr.sum(tr.exp(v) * k)))(x); "
    "assert np.allclose(np.asarray(g), k * np.exp(x.numpy()))",
    "einsum": "y, n = einsum('ij,jk,kl->il', z, z, z), z.numpy(); assert np.allclose(np.asarray(y), n @ n @ n)",
    "large": "y = tr.exp(big) * k; assert float(y[7]) == float(tr.exp(big[7:8] * 1)[0] * k)",
    "scan": "c, ys = tr.scan(lambda c, v: (c * 0.5 + v, c), x[0], x); assert ys.shape == x.shape",
    "save": "p = tempfile.mktemp(); tr.compile(lambda v: v * k).save(p, x); y = tr.load(p)(x); os.remove(p); "
    "assert np.allclose(np.asarray(y), x.numpy() * k)",
    "error": "\ntry:\n    tr.reshape(x, (7, 7, 7))\n    raise SystemExit(9)\nexcept ValueError:\n    pass",
}

SCRIPT = """
import faulthandler, os, random, signal, sys, tempfile, threading, time, warnings
import numpy as np
import tenferro_runtime as tr
from tenferro_ad import grad
from tenferro_einsum import einsum
warnings.simplefilter("ignore")
faulthandler.register(signal.SIGUSR1, all_threads=True)
x = tr.asarray(np.linspace(0.1, 1.0, 24))
z = tr.asarray(np.linspace(-1.0, 1.0, 16).reshape(4, 4))
big = tr.asarray(np.linspace(0.0, 1.0, 300_000))
problems = []

def job(code, k):
    exec(code, globals() | {"k": float(k)})

def serve(codes, rounds):
    try:
        for k in range(1, rounds + 1):
            for code in codes:
                job(code, k)
    except BaseException as error:
        problems.append(repr(error))

class Stop(KeyboardInterrupt):
    pass

def interrupted(*_):
    raise Stop

"""


def script(case: Case) -> str:
    """The case as a program; it exits with 0 when all is right."""
    lines = [SCRIPT]
    if case["warm"]:  # else first uses meet: imports, the loading of backends, the first machine code
        lines.append(f"serve({[JOBS[n] for n in sorted(JOBS)]!r}, 1)")
    for codes in case["threads"]:
        lines.append(f"threading.Thread(target=serve, args=({[JOBS[c] for c in codes]!r}, {case['rounds']})).start()")
    lines.append("children = []")
    for act, name, delay in case["main"]:
        lines.append(f"time.sleep({delay})")
        if act == "fork":
            lines.append(
                textwrap.dedent(f"""
                pid = os.fork()
                if not pid:
                    problems.clear()
                    signal.signal(signal.SIGALRM, signal.SIG_DFL)
                    signal.alarm({case["limit"]})
                    serve([{JOBS[name]!r}], 2)
                    sys.stderr.write("".join(problems))
                    os._exit(5 if problems else 0)
                children.append(pid)""")
            )
        elif act == "signal":
            lines.append(
                textwrap.dedent(f"""
                signal.signal(signal.SIGALRM, interrupted)
                signal.setitimer(signal.ITIMER_REAL, {delay})
                try:
                    for k in range(1, 40):
                        job({JOBS[name]!r}, k)
                except Stop:
                    pass
                signal.setitimer(signal.ITIMER_REAL, 0)""")
            )
        else:
            lines.append(f"job({JOBS[name]!r}, 3)")
    lines.append(textwrap.dedent("""
        for child in children:
            status = os.waitpid(child, 0)[1]
            if status:
                problems.append(f"child: exit {os.waitstatus_to_exitcode(status)}")
        for thread in threading.enumerate():
            if thread is not threading.current_thread() and not thread.daemon:
                thread.join()
        for code in JOBS:
            serve([code], 1)
        if problems:
            sys.exit("; ".join(problems))
        """).replace("JOBS", repr([JOBS[n] for n in sorted(JOBS)])))  # fmt: skip
    return "\n".join(lines)


class Processes(Area):
    """One process with threads, forks and interrupts."""

    name = "processes"
    machines = (WITH, WITHOUT, ALWAYS)
    patience = 120.0

    def draw(self, rng: random.Random) -> Case:
        names = sorted(JOBS)
        threads = [[rng.choice(names) for _ in range(rng.randint(1, 3))] for _ in range(rng.choice((0, 1, 2, 3)))]
        warm = rng.random() < 0.8
        main = []
        for _ in range(rng.randint(1, 6)):
            act = rng.choice(("fork", "fork", "signal", "signal", "job"))
            if act == "fork" and threads and not warm:
                act = "job"  # CPython's import locks do not survive a fork from another thread's import
            main.append([act, rng.choice(names), round(rng.choice((0.0, 0.001, 0.01, 0.05)) * rng.random(), 5)])
        return {"threads": threads, "rounds": rng.choice((2, 10)), "main": main, "limit": 20, "warm": warm}

    def run(self, case: Case) -> None:
        child = subprocess.Popen(
            [sys.executable, "-c", script(case)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip
        try:
            _, err = child.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGUSR1)
            try:
                _, err = child.communicate(timeout=2)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                _, err = child.communicate()
            raise Mismatch(f"it did not end: {err[-1500:]}") from None
        if child.returncode:
            raise Mismatch(f"exit status {child.returncode}: {err[-1500:]}")

    def shrink(self, case: Case) -> Iterator[Case]:
        yield from (case | {"threads": threads} for threads in halves(case["threads"]))
        yield from (case | {"main": main} for main in halves(case["main"]))
        if case["rounds"] > 2:
            yield case | {"rounds": 2}

    def code(self, case: Case) -> str:
        return f"# {json.dumps(case)}\n{script(case)}"
