"""The yardstick of size: lines of code, files and functions behind one line of the user, and calls that should be few.

`python3 dev budget` prints each figure beside its ceiling in tools/budget.toml, and fails where one is passed;
`python3 dev budget --write` makes today's figures the ceilings. A room is a folder with source below packages/*/src,
without the folders in it. Code is what remains without blank lines, comments and documentation. benchmarks/walk.py says
what a walk is. Class names are the subject of tests/test_workspace.py.
"""

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tools" / "budget.toml"
BESIDE_PACKAGES = ("tests", "tools", "benchmarks")

CALLS = ("Builder", "defined", "exec")
"""Functions that packages should call in few places: they make programs and Python by hand."""

GOALS = {
    "first eager call": (25, 70),
    "first gradient": (45, 170),
    "first compiled call": (85, 480),
    "warm gradient": (15, 50),
}
"""Files and functions that walks should come down to."""

SENTENCES = {
    "sums": "{} in sum has {:,} lines of code",
    "rooms": "the room {} has {:,} lines of code",
    "files": "the {} enters {:,} files",
    "functions": "the {} enters {:,} functions",
    "calls": "packages call `{}(` in {:,} places",
}
"""The sections of the table, and how a figure of each is said."""

Figures = dict[str, Counter[str]]
"""Section -> name -> figure."""


def tolerance(section: str, ceiling: int) -> int:
    """Lines may pass their ceiling by 10 or by 1 %, whichever is more; other figures by nothing."""
    return max(10, ceiling // 100) if section in ("sums", "rooms") else 0


# -- lines --------------------------------------------------------------------------------------------------------


def python_code(text: str) -> tuple[int, Counter[str]]:
    """Count the lines of code of a Python file, and its calls of `CALLS`. A string that is a statement is no code."""
    silent: set[int] = set()
    code: set[int] = set()
    calls: Counter[str] = Counter()
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                silent.update(range(node.lineno, (node.end_lineno or 0) + 1))
            case ast.Constant() | ast.JoinedStr():
                code.update(range(node.lineno, (node.end_lineno or 0) + 1))
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in CALLS:
                calls[name] += 1
    rows = [row.strip() for row in text.split("\n")]
    kept = [row for i, row in enumerate(rows, 1) if row and i not in silent and (row[0] != "#" or i in code)]
    return len(kept), calls


LEXEME = re.compile(
    r"""/\*.*?\*/ | //(?:\\\n|[^\n])* | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'""", re.DOTALL | re.VERBOSE
)
"""A comment of C, or a literal that may look like one."""


def c_code(text: str) -> tuple[int, Counter[str]]:
    """Count the lines of code of a C file, a header or a CUDA header; it makes no calls of `CALLS`."""
    bare = LEXEME.sub(lambda found: "\n" * found[0].count("\n") if found[0][0] == "/" else found[0], text)
    return sum(bool(row.strip()) for row in bare.split("\n")), Counter()


READERS: Mapping[str, Callable[[str], tuple[int, Counter[str]]]] = {
    ".py": python_code, ".pyi": python_code, ".c": c_code, ".h": c_code, ".cuh": c_code,
}  # fmt: skip


def sources(root: Path) -> Iterator[tuple[str, str, Path]]:
    """The room, or nothing outside packages, what it is summed up in, and the path of each file with source."""
    for path in sorted(root.glob("packages/*/src/**/*")):
        folder, _, *room = path.parent.relative_to(root / "packages").parts
        if path.suffix in READERS:
            yield "/".join(room), f"packages/{folder}", path
    for part in BESIDE_PACKAGES:
        for path in sorted((root / part).rglob("*")):
            if path.suffix in READERS:
                yield "", part, path


def lines(root: Path) -> tuple[Figures, Figures]:
    """Count lines of code and calls, and all lines."""
    code: Figures = {"sums": Counter(), "rooms": Counter(), "calls": Counter(dict.fromkeys(CALLS, 0))}
    whole: Figures = {"sums": Counter(), "rooms": Counter()}
    for room, part, path in sources(root):
        text = path.read_text(encoding="utf-8")
        count, calls = READERS[path.suffix](text)
        places = [("sums", part), ("sums", "everything")]
        if room:
            places += [("rooms", room), ("sums", "packages")]
            code["calls"] += calls
        for section, name in places:
            code[section][name] += count
            whole[section][name] += len(text.splitlines())
    return code, whole


# -- walks --------------------------------------------------------------------------------------------------------


def walks() -> Figures:
    """Count files and functions of each walk, in a fresh process that nothing around it can influence."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TENFERRO_")}
    environment |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    with tempfile.TemporaryDirectory() as folder:
        environment |= {"PYTHONHASHSEED": "0", "TENFERRO_CACHE_DIR": folder}
        command = [sys.executable, str(ROOT / "benchmarks" / "walk.py"), "--counts"]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    counts = json.loads(done.stdout)
    return {
        "files": Counter({name: files for name, (files, _) in counts.items()}),
        "functions": Counter({name: functions for name, (_, functions) in counts.items()}),
    }


# -- the table ----------------------------------------------------------------------------------------------------


HEADER = """\
# Ceilings, written by `python3 dev budget --write`. A commit that raises one says why.
# Walks are those of Python 3.11; from 3.12 on comprehensions are no functions, and fewer are entered.
"""


def written(figures: Figures) -> str:
    """The table with these ceilings."""
    text = HEADER
    for section in SENTENCES:
        rows = "".join(f'"{name}" = {figure}\n' for name, figure in sorted(figures[section].items()))
        text += f"\n[{section}]\n{rows}"
    return text


def ceilings(path: Path = TABLE) -> Figures:
    """The table; a name that is absent has the ceiling 0."""
    found = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {section: Counter(found.get(section, {})) for section in SENTENCES}


def complaints(figures: Figures, allowed: Figures) -> list[str]:
    """One sentence for each figure that passes its ceiling."""
    return [
        f"{SENTENCES[section].format(name, figure)}, and its ceiling is {ceiling:,}: delete, or raise the ceiling on"
        " purpose with `python3 dev budget --write` and say why in the commit"
        for section in figures
        for name, figure in sorted(figures[section].items())
        for ceiling in [allowed[section][name]]
        if figure > ceiling + tolerance(section, ceiling)
    ]


def slack(figures: Figures, allowed: Figures) -> list[str]:
    """One sentence for each figure below its ceiling, also of what is gone."""
    return [
        f"{SENTENCES[section].format(name, figure)}, {ceiling - figure:,} below its ceiling"
        for section in figures
        for name, ceiling in sorted(allowed[section].items())
        for figure in [figures[section][name]]
        if figure < ceiling
    ]


def show(section: str, titles: tuple[str, str], figures: Figures, allowed: Figures, beside: Mapping[str, int]) -> None:
    """Print a section: figures, ceilings, and a third figure where there is one."""
    print(f"\n{titles[0]:>10}{'ceiling':>10}{titles[1]:>11}  {section}")
    for name, figure in sorted(figures[section].items()):
        third = f"{beside[name]:,}" if name in beside else ""
        print(f"{figure:10,}{allowed[section][name]:10,}{third:>11}  {name}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="dev budget", description="figures of size beside their ceilings")
    parser.add_argument("--write", action="store_true", help="make today's figures the ceilings")
    write = parser.parse_args().write
    code, whole = lines(ROOT)
    figures = {**code, **walks()}
    if write:
        TABLE.write_text(written(figures), encoding="utf-8")
    allowed = ceilings()
    for section in ("sums", "rooms"):
        show(section, ("code and C", "all lines"), figures, allowed, whole[section])
    for number, section in enumerate(("files", "functions")):
        show(section, ("entered", "goal"), figures, allowed, {name: goal[number] for name, goal in GOALS.items()})
    show("calls", ("places", ""), figures, allowed, {})
    print("\n`python3 dev bench walk --functions` names files and functions.")
    below, beyond = slack(figures, allowed), complaints(figures, allowed)
    if below:
        print("\nSlack, which `python3 dev budget --write` takes back:", *below, sep="\n  ")
    if beyond:
        print("\nToo large:", *beyond, sep="\n  ")
    return 1 if beyond else 0


if __name__ == "__main__":
    raise SystemExit(main())
