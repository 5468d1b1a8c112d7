"""Run suites of other projects on tenferro and beside it on NumPy, PyTorch and JAX: ``python3 dev foreign``.

Everything that is fetched goes into ``build/foreign``: source archives with tests, packages that this workspace lacks,
and PyTorch in a virtual environment of its own, which sees the packages of the workspace.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import subprocess
import sys
import tarfile
import time
import tomllib
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any

from foreign_suites import OWN, SUITES, Suite

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FOLDER = ROOT / "build" / "foreign"
KNOWN = HERE / "known.toml"
TORCH_REQUIREMENT = "torch==2.13.0"
SHOWN = 40
"""Failures that are printed at most."""

Outcomes = dict[str, tuple[str, str]]


def pip(*command: str, python: str = sys.executable) -> None:
    subprocess.run([python, "-m", "pip", *command, "--quiet"], check=True)


def installer() -> str:
    """A Python with pip, which environments of uv lack: the one that `dev` runs on."""
    return os.environ.get("FOREIGN_PYTHON", sys.executable)


def sources(suite: Suite) -> Path:
    """The unpacked source archive of a suite, of the version that is installed."""
    release = version(suite.archive)
    folder = FOLDER / f"{suite.archive}-{release}"
    if not folder.exists():
        options = ("--no-binary", ":all:", "--no-deps", "--dest", str(FOLDER))
        pip("download", *options, f"{suite.archive}=={release}", python=installer())
        with tarfile.open(FOLDER / f"{suite.archive}-{release}.tar.gz") as archive:
            archive.extractall(FOLDER, filter="data")
    return folder


def packages(suite: Suite) -> str:
    """A folder with the packages that a suite needs and the workspace lacks."""
    folder = FOLDER / "packages"
    for need in suite.needs:
        stamp = folder / need
        if not stamp.exists():
            pip("install", "--no-deps", "--target", str(folder), need, python=installer())
            stamp.touch()
    return str(folder)


def interpreter(backend: str) -> str:
    """The Python of a library: PyTorch has an environment of its own."""
    if backend != "torch":
        return sys.executable
    folder = FOLDER / "environment-torch"  # no folder named `torch` where tests are run
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not folder.exists():
        subprocess.run([installer(), "-m", "venv", str(folder)], check=True)
        pip("install", TORCH_REQUIREMENT, python=str(python))
    home = next(Path(p) for p in sys.path if p.endswith("site-packages"))
    for packages_of_torch in folder.glob("[Ll]ib*/**/site-packages"):
        (packages_of_torch / "workspace.pth").write_text(f"{home}\n", encoding="utf-8")
    return str(python)


def run(suite: Suite, backend: str, more: tuple[str, ...] = ()) -> tuple[Outcomes, float]:
    """The outcome of every test of a suite with a library, and seconds."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    folder = sources(suite) if suite.archive else FOLDER
    report = FOLDER / f"{suite.name}-{backend}.json"
    report.unlink(missing_ok=True)
    environment = os.environ | {
        "FOREIGN_BACKEND": backend,
        "FOREIGN_SUITE": suite.name,
        "FOREIGN_REPORT": str(report),
        "PYTHONPATH": os.pathsep.join([str(HERE), packages(suite), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "PYTHONDONTWRITEBYTECODE": "1",
        **{name: value.format(backend=_stand_in(suite, backend)) for name, value in suite.environment},
    }
    command = [interpreter(backend), "-m", "pytest", "-q", "--no-header", "--tb=no", "-p", "no:cacheprovider"]
    command += ["-p", "foreign_plugin", "-c", str(HERE / "pytest.ini"), "--rootdir", str(folder), *suite.options]
    command += [*suite.tests, *more]
    start = time.monotonic()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    seconds = time.monotonic() - start
    if not report.exists():
        raise SystemExit(f"{suite.name} on {backend} did not run:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    found: dict[str, list[str]] = json.loads(report.read_text(encoding="utf-8"))
    return {name: (outcome, reason) for name, (outcome, reason) in found.items()}, seconds


def _stand_in(suite: Suite, backend: str) -> str:
    """The name under which a suite takes the library: SciPy's list is closed, and the plugin replaces NumPy in it."""
    return "numpy" if suite.name.startswith("scipy") and backend == OWN else backend


def known(name: str) -> list[dict[str, Any]]:
    """The known failures of a suite: their tests, as patterns, the reason, and whose fault it is."""
    entries: list[dict[str, Any]] = tomllib.loads(KNOWN.read_text(encoding="utf-8")).get(name, [])
    return entries


def judged(suite: Suite, outcomes: Outcomes, whole: bool = True) -> list[str]:
    """What is wrong: failures that `known.toml` does not list, and entries of it that match none."""
    entries = known(suite.name)
    failed = [name for name, (outcome, _) in outcomes.items() if outcome == "failed"]
    patterns = {pattern: False for entry in entries for pattern in entry["tests"]}
    wrong = []
    for name in failed:
        matching = [pattern for pattern in patterns if fnmatch.fnmatchcase(name, pattern.replace("[", "[[]"))]
        patterns.update(dict.fromkeys(matching, True))
        if not matching:
            wrong.append(f"{suite.name}: {name} fails: {outcomes[name][1]}")
    if whole:
        wrong += [f"{suite.name}: the entry {p!r} of known.toml is stale" for p, seen in patterns.items() if not seen]
    return wrong


def line(outcomes: Outcomes) -> str:
    """Passed / failed / skipped, where tests that are expected to fail count as skipped."""
    count = Counter(outcome for outcome, _ in outcomes.values())
    return f"{count['passed']:,} / {count['failed']:,} / {count['skipped'] + count['xfailed']:,}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="dev foreign", description=__doc__)
    parser.add_argument("names", nargs="*", help="suites, or the beginnings of their names; by default all")
    parser.add_argument("--alone", action="store_true", help="without the other libraries")
    parser.add_argument("--beside", nargs="*", help="the other libraries")
    parser.add_argument("-k", default="", help="only tests that match, as in pytest")
    parser.add_argument("--list", action="store_true", help="list the suites")
    asked = parser.parse_args()
    chosen = [s for s in SUITES if not asked.names or any(s.name.startswith(name) for name in asked.names)]
    if not chosen or asked.list:
        print("\n".join(suite.name for suite in SUITES))
        return int(not chosen)
    more = ("-k", asked.k) if asked.k else ()
    wrong: list[str] = []
    print("passed / failed / skipped")
    for suite in chosen:
        cells = []
        peers = () if asked.alone else suite.peers if asked.beside is None else tuple(asked.beside)
        for backend in (OWN, *peers):
            outcomes, seconds = run(suite, backend, more)
            cells.append(f"{backend.removesuffix('_runtime')} {line(outcomes)} in {seconds:.0f} s")
            if backend == OWN:
                wrong += judged(suite, outcomes, whole=not asked.k)
        print(f"{suite.name:20}{'   '.join(cells)}", flush=True)
    print("\n".join(wrong[:SHOWN]))
    if len(wrong) > SHOWN:
        print(f"and {len(wrong) - SHOWN} more; all outcomes are in {FOLDER}")
    return int(bool(wrong))


if __name__ == "__main__":
    raise SystemExit(main())
