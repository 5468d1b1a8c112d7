"""Size has ceilings: lines of code, files and functions behind a call, and calls that should be few."""

import sys
from pathlib import Path

import pytest

import budget
from tenferro_cpu.native import available

PYTHON = '''\
"""Says what the file is.

It has two paragraphs.
"""

# A comment.
from somewhere import Builder  # one line


class Made(Builder):
    """Documentation."""

    size = 3
    """Documentation of a value."""

    def build(
        self,
    ) -> str:
        # Builder() in a comment is no call.
        f"{self.size} is computed"
        text = """
# a line of the string

"""
        return text + str(Builder()) + Builder.exec("Builder()")


def Builder():
    """Builder() in documentation is no call."""
'''

C = """\
/* A comment
   of two lines, which "quotes. */
#include <math.h>

// A comment that goes \\
   on.
static const char *text = "/* no comment"; /* a comment
   beside code */ static char quote = '"';
int one(void) { return 1; } // one
"""


def test_code_is_what_is_no_comment_and_no_documentation() -> None:
    assert budget.python_code(PYTHON) == (12, {"Builder": 1, "exec": 1})
    assert budget.c_code(C) == (4, {})
    assert budget.python_code("") == budget.c_code("") == (0, {})


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """A room of 20 lines of code, below a root of its own."""
    folder = tmp_path / "packages" / "sky" / "src" / "tenferro_sky" / "stars"
    folder.mkdir(parents=True)
    (folder / "_names.py").write_text("# a comment\n" + "x = 1\n" * 15)
    (folder / "names.h").write_text("/* a comment */\n" + "int x;\n" * 5)
    return folder


def test_growth_of_a_room_is_found(room: Path) -> None:
    root = room.parents[4]
    ceilings, whole = budget.lines(root)
    assert ceilings["rooms"] == {"tenferro_sky/stars": 20}
    assert ceilings["sums"] == {"packages/sky": 20, "packages": 20, "everything": 20}
    assert whole["rooms"] == {"tenferro_sky/stars": 22}
    (room / "_more.py").write_text("x = 1\n" * 10)
    assert budget.complaints(budget.lines(root)[0], ceilings) == []
    (room / "_more.py").write_text("x = 1\n" * 11)
    found = budget.complaints(budget.lines(root)[0], ceilings)
    assert len(found) == 4
    assert found[-1] == (
        "the room tenferro_sky/stars has 31 lines of code, and its ceiling is 20: delete, or raise the ceiling on "
        "purpose with `python3 dev budget --write` and say why in the commit"
    )


def test_a_new_room_has_no_ceiling_yet_and_one_that_is_gone_is_slack(room: Path) -> None:
    root = room.parents[4]
    ceilings = budget.lines(root)[0]
    room.rename(room.with_name("moons"))
    figures = budget.lines(root)[0]
    assert [text.partition(":")[0] for text in budget.complaints(figures, ceilings)] == [
        "the room tenferro_sky/moons has 20 lines of code, and its ceiling is 0"
    ]
    assert budget.slack(figures, ceilings) == ["the room tenferro_sky/stars has 0 lines of code, 20 below its ceiling"]


def test_one_more_function_or_call_is_too_many() -> None:
    allowed = budget.ceilings()
    for section in ("files", "functions", "calls"):
        for name in allowed[section]:
            grown = {section: allowed[section].copy()}
            assert budget.complaints(grown, allowed) == []
            grown[section][name] += 1
            assert len(budget.complaints(grown, allowed)) == 1


def test_the_table_is_sorted_and_survives_writing() -> None:
    assert budget.written(budget.ceilings()) == budget.TABLE.read_text()


def test_source_is_within_its_ceilings() -> None:
    figures, _ = budget.lines(budget.ROOT)
    assert budget.complaints(figures, budget.ceilings()) == []


@pytest.mark.skipif(
    sys.version_info[:2] != (3, 11) or sys.platform != "linux" or not available(),
    reason="the ceilings are those of CPython 3.11 with machine code",
)
def test_walks_are_within_their_ceilings() -> None:
    figures, allowed = budget.walks(), budget.ceilings()
    assert figures["files"].keys() == figures["functions"].keys() == allowed["files"].keys() >= budget.GOALS.keys()
    assert budget.complaints(figures, allowed) == []
