"""Processor seconds and bytes of every C file, at one vector level: `python3 dev bench c_sources --level avx2`.

One file after the other, without a cache; `--only small` takes files with this in their path.
"""

import argparse
import importlib.util
import resource
import subprocess
import sysconfig
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("cpu/src/tenferro_cpu/native", "tensor/src/tenferro_tensor")


def used() -> float:
    """Processor seconds of all processes that were started and ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--level", default="own", help="own, generic, avx2 or avx512")
    parser.add_argument("--only", default="", help="part of the path of the files to compile")
    arguments = parser.parse_args()
    spec = importlib.util.spec_from_file_location("compile_c", ROOT / "packages" / "compile_c.py")
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    compiler = build.compiler_of_system()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "made.o")
        for package in (ROOT / "packages" / name for name in PACKAGES):
            paths = (package, sysconfig.get_path("include"), np.get_include())
            for job in build.jobs_of(package, build.levels_to_build(package, compiler, arguments.level)):
                if arguments.only not in str(job.source):
                    continue
                flags = [*build.FLAGS, *job.flags, *(f"-I{path}" for path in paths), "-w"]
                before = used()
                subprocess.run([*compiler, *flags, "-c", str(job.source), "-o", str(target)], check=True)
                rows.append((used() - before, target.stat().st_size, job.source.relative_to(ROOT / "packages")))
    for seconds, size, source in sorted(rows, reverse=True):
        print(f"{seconds:7.2f} s {size / 1000:8.1f} kB  {source}")
    print(f"{sum(row[0] for row in rows):7.2f} s {sum(row[1] for row in rows) / 1000:8.1f} kB  {len(rows)} files")


if __name__ == "__main__":
    main()
