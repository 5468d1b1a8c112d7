"""Mutation testing: change one operator, number or decorator at a time, and see whether a test fails.

Run by `python3 dev mutants`, which installs cosmic-ray. Mutants are made in a copy of the sources below build/mutants,
so the working tree is never touched. A survivor is code whose meaning no test of its target holds.
"""

import argparse
import ast
import os
import random
import shutil
import sys
import time
from collections import Counter
from pathlib import Path

from cosmic_ray.commands.init import init
from cosmic_ray.mutating import mutate_and_test
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import TestOutcome, WorkItem, WorkResult

from equivalent_mutants import EQUIVALENT

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "mutants"
COPY = FOLDER / "copy"

TARGETS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "rules": (
        ("packages/ad/src/tenferro_ad/rules/*.py",),
        (
            "tests/ad/test_rules_table.py",
            "tests/ad/test_rules_traps.py",
            "tests/ad/test_scatter_derivatives.py",
            "tests/ad/test_values_at_limits.py",
            "tests/ad/test_rules_traced.py",
        ),
    ),
    "passes": (
        ("packages/runtime/src/tenferro_runtime/passes/*.py",),
        (
            "tests/runtime/test_passes.py",
            "tests/runtime/test_accumulate.py",
            "tests/runtime/test_updates.py",
            "tests/runtime/test_algebra.py",
            "tests/runtime/test_contractions.py",
            "tests/runtime/test_layout.py",
            "tests/runtime/test_schedule.py",
            "tests/runtime/test_guards.py",
            "tests/runtime/test_equal_constants.py",
            "tests/runtime/test_overwriting.py",
            "tests/runtime/test_passes_symbolic.py",
            "tests/runtime/test_structure.py",
            "tests/runtime/test_fusion.py",
        ),
    ),
}
"""Name of a target -> its sources, and the tests that must kill their mutants, quick ones first."""


def annotations(source: str) -> set[tuple[int, int]]:
    """Positions (line, column) inside type annotations: they are never evaluated, so their mutants mean nothing."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        for name in ("annotation", "returns"):
            part = getattr(node, name, None)
            if isinstance(part, ast.expr):
                found |= {
                    (child.lineno, column)
                    for child in ast.walk(part)
                    if isinstance(child, ast.expr)
                    for column in range(child.col_offset, (child.end_col_offset or 0) + 1)
                }
    return found


def candidates(database: WorkDB, paths: list[Path], seed: int) -> list[WorkItem]:
    """One mutant of each kind for each place in the sources, annotations left out.

    An operator can be replaced by a dozen others, most of which fail at once: one of them is drawn.
    """
    init(paths, database, {})
    typed = {path: annotations(path.read_text()) for path in paths}
    places: dict[tuple[object, ...], list[WorkItem]] = {}
    for item in database.work_items:
        mutation = item.mutations[0]
        if mutation.start_pos not in typed[mutation.module_path]:
            kind = mutation.operator_name.split("_")[0]
            places.setdefault((mutation.module_path, mutation.start_pos, kind), []).append(item)
    draw = random.Random(seed)
    return [
        draw.choice(sorted(items, key=lambda item: (item.mutations[0].operator_name, item.mutations[0].occurrence)))
        for items in places.values()
    ]


def copy_sources() -> None:
    """A fresh copy of what tests and sources need."""
    shutil.rmtree(COPY, ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__", "node_modules")
    for name in ("packages", "tests", "docs"):
        shutil.copytree(ROOT / name, COPY / name, ignore=ignored)
    for name in ("pyproject.toml", "README.md"):
        shutil.copy2(ROOT / name, COPY / name)


def changed_lines(diff: str) -> tuple[str, str]:
    """The original and the mutated line of a diff, without spaces."""
    lines = [line for line in diff.splitlines() if not line.startswith(("---", "+++"))]
    before, after = ("".join(line[1:] for line in lines if line.startswith(sign)) for sign in "-+")
    return "".join(before.split()), "".join(after.split())


def is_equivalent(result: WorkResult) -> bool:
    """Whether `equivalent_mutants` says that the mutant means the same."""
    before, after = changed_lines(result.diff or "")
    for reason, patterns in EQUIVALENT.items():
        for old, new in patterns:
            found = "".join(old.split())
            if found in before and before.replace(found, "".join(new.split()), 1) == after:
                print(f"equivalent: {reason}: {before} -> {after}", flush=True)
                return True
    return False


def report(results: list[tuple[WorkItem, WorkResult]]) -> str:
    """Score for each file, and the diffs of the survivors."""
    made: Counter[str] = Counter()
    lived: Counter[str] = Counter()
    diffs = []
    for item, result in results:
        name = str(item.mutations[0].module_path)
        made[name] += 1
        if result.test_outcome is TestOutcome.SURVIVED:
            lived[name] += 1
            diffs.append(result.diff or "")
    lines = [f"{made[name] - lived[name]:5} of {made[name]:5} killed  {name}" for name in sorted(made)]
    total, killed = made.total(), made.total() - lived.total()
    return "\n".join([*lines, f"{killed} of {total} killed: {100 * killed / max(total, 1):.1f} %", *diffs])


def main() -> int:
    parser = argparse.ArgumentParser(prog="dev mutants", description=__doc__)
    parser.add_argument("target", choices=sorted(TARGETS))
    parser.add_argument("--sample", type=int, default=0, help="number of mutants drawn at random; 0 for all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="part of a path: mutate these files only")
    parser.add_argument("--minimum", type=float, default=90.0, help="score in percent below which the exit status is 1")
    options = parser.parse_args()

    copy_sources()
    os.chdir(COPY)
    sources, tests = TARGETS[options.target]
    paths = sorted(
        p for pattern in sources for p in Path().glob(pattern) if p.name != "__init__.py" and options.only in str(p)
    )
    packages = os.pathsep.join(str(path) for path in sorted(COPY.glob("packages/*/src")))
    os.environ["PYTHONPATH"] = packages
    command = f"{sys.executable} -m pytest -x -q -p no:cacheprovider {' '.join(tests)}"

    start = time.monotonic()
    if os.waitstatus_to_exitcode(os.system(command)):
        raise SystemExit("mutants: the tests fail without any mutant")
    timeout = 60 + 5 * (time.monotonic() - start)

    results = []
    database_path = FOLDER / f"{options.target}.sqlite"
    database_path.unlink(missing_ok=True)
    with use_db(str(database_path)) as database:
        items = candidates(database, paths, options.seed)
        if options.sample and options.sample < len(items):
            items = random.Random(options.seed).sample(items, options.sample)
        for number, item in enumerate(items, 1):
            result = mutate_and_test(item.mutations, command, timeout)
            database.set_result(item.job_id, result)
            if result.test_outcome is TestOutcome.SURVIVED and is_equivalent(result):
                continue
            results.append((item, result))
            if result.test_outcome is TestOutcome.SURVIVED:
                print(result.diff, flush=True)
            if number % 10 == 0 or number == len(items):
                lived = sum(result.test_outcome is TestOutcome.SURVIVED for _, result in results)
                print(f"{number} of {len(items)} mutants tried, {lived} survived", flush=True)
    text = report(results)
    (FOLDER / f"{options.target}.txt").write_text(text)
    print(text)
    killed = sum(result.test_outcome is not TestOutcome.SURVIVED for _, result in results)
    return int(100 * killed < options.minimum * len(results))


if __name__ == "__main__":
    raise SystemExit(main())
