"""Where the processor time of first calls goes: programs of `loops.py` from the first call until they are settled.

    python3 dev run benchmarks/compile_stages.py [--only REGEX] [--size S] [--gradients] [--passes] [--text FOLDER]

Every program runs in a process of its own with an empty cache. Stages exclude the stages inside them; `other` is what
none of them covers: recording, preparing and running the steps. Milliseconds of the processor, all threads. The columns
after them count what LLVM compiled: functions, those with a body that another one has too, lines and kilobytes of text.
`--passes` adds LLVM's own report of its passes, `--text` keeps the modules.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from contestants import limit
from loop_programs import every
from loops import contestants, warm

STAGES = {
    "record": ("tenferro_runtime.compiling._compiled", "Compiled._trace"),
    "passes": ("tenferro_runtime.runtime", "Runtime.optimise"),
    "lower": ("tenferro_runtime.lowering.native._program", "_lowered"),
    "render": ("tenferro_cpu.native.codegen.whole._entry", "render"),
    "parse": ("llvmlite.binding", "parse_assembly"),
    "optimise": ("tenferro_cpu.native.codegen.machine._jit", "Engine._optimise"),
    "generate": ("llvmlite.binding", "TargetMachine.emit_object"),
    "load": ("tenferro_cpu.native.codegen.machine._jit", "Engine._linked"),
}
"""Module and name of the function that is a stage."""


class Clock:
    """Processor seconds of stages, without those of stages inside them."""

    def __init__(self) -> None:
        self.spent = dict.fromkeys(STAGES, 0.0)
        self._inner = [0.0]

    def times(self, stage: str, f: Callable[..., Any]) -> Callable[..., Any]:
        """The function, timed as a stage."""

        @functools.wraps(f)
        def timed(*args: Any, **options: Any) -> Any:
            start = time.thread_time()
            self._inner.append(0.0)
            try:
                return f(*args, **options)
            finally:
                whole, inner = time.thread_time() - start, self._inner.pop()
                self.spent[stage] += whole - inner
                self._inner[-1] += whole

        return timed

    def watch(self) -> None:
        """Replace the functions of all stages by timed ones."""
        for stage, (module, name) in STAGES.items():
            *path, last = name.split(".")
            owner = functools.reduce(getattr, path, importlib.import_module(module))
            setattr(owner, last, self.times(stage, getattr(owner, last)))


def functions(text: str) -> list[str]:
    """The bodies of the functions of a module."""
    return re.findall(r"^define [^@]*@[^\n]*\n(.*?)^}", text, re.M | re.S)


def measure(name: str, chosen: argparse.Namespace) -> dict[str, Any]:
    """Stages and counts of one program, in this process."""
    from tenferro_cpu.native.codegen.machine._jit import Engine
    from tenferro_runtime.running import fusion

    call = contestants(every()[name], chosen.size, chosen.gradients)["tenferro"]
    warm()
    clock, texts = Clock(), []
    clock.watch()
    compiled = Engine._compile

    def kept(self: Engine, key: str, text: str, *rest: Any) -> bytes:
        texts.append(text)
        return compiled(self, key, text, *rest)

    Engine._compile = kept  # type: ignore[method-assign]
    if chosen.passes:
        Engine._optimise = reported  # type: ignore[method-assign]
    start = time.process_time()
    for _ in range(2):
        call()
        fusion.wait()
    whole = time.process_time() - start
    bodies = [body for text in texts for body in functions(text)]
    if chosen.text:
        chosen.text.mkdir(exist_ok=True)
        for k, text in enumerate(texts):
            (chosen.text / f"{name}.{k}.ll").write_text(text)
    return {
        **{stage: 1e3 * clock.spent[stage] for stage in STAGES},
        "other": 1e3 * (whole - sum(clock.spent.values())),
        "all": 1e3 * whole,
        "modules": len(texts),
        "functions": len(bodies),
        "equal": len(bodies) - len(set(bodies)),
        "lines": sum(text.count("\n") for text in texts),
        "kB": sum(map(len, texts)) / 1000,
    }


def reported(self: Any, module: Any, level: int) -> None:
    """`Engine._optimise`, with the report of LLVM."""
    options = self._compiler.llvm.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization, options.slp_vectorization = True, level > 1
    builder = self._compiler.llvm.create_pass_builder(self._compiler.machine, options)
    builder.start_pass_timing()
    builder.getModulePassManager().run(module, builder)
    print(builder.finish_pass_timing()[:6000], file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="programs whose family and name, as family/name, have this pattern")
    parser.add_argument("--size", default="small")
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument("--passes", action="store_true")
    parser.add_argument("--text", type=Path)
    parser.add_argument("--row", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    limit(1)
    if chosen.row:
        print(json.dumps(measure(chosen.row, chosen)))
        return
    heading = [*STAGES, "other", "all", "modules", "functions", "equal", "lines", "kB"]
    print(f"{'ms':24}" + "".join(f"{name:>10}" for name in heading))
    total: Counter[str] = Counter()
    for p in every().values():
        if not re.search(chosen.only, f"{p.family}/{p.name}") or chosen.gradients > bool(p.gradient):
            continue
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, __file__, "--row", p.name, *sys.argv[1:]]
            environment = {**os.environ, "TENFERRO_CACHE_DIR": folder}
            row = json.loads(subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout)
        total.update(row)
        print(f"{p.name:24}" + "".join(f"{row[name]:10.0f}" for name in heading), flush=True)
    print(f"{'all':24}" + "".join(f"{total[name]:10.0f}" for name in heading))


if __name__ == "__main__":
    main()
