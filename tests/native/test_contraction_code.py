"""The machine code of tiles, as the compiler has made it."""

import re
import shutil
import subprocess

import pytest

from native_rooms import Microkernels, compiled

OBJDUMP = shutil.which("objdump")
pytestmark = [
    pytest.mark.skipif(compiled is None, reason="there is no C extension"),
    pytest.mark.skipif(OBJDUMP is None, reason="there is no disassembler"),
]


def loops(function):
    """Instructions of each innermost loop of a function."""
    rows = re.findall(r"^ *([0-9a-f]+):\t(.*?) *$", function, re.M)
    for place, (at, text) in enumerate(rows):
        jump = re.match(r"j\w+ +([0-9a-f]+) ", text)
        if jump and int(jump[1], 16) <= int(at, 16):
            body = [x for number, x in rows[: place + 1] if int(number, 16) >= int(jump[1], 16)]
            if not any(re.match("j|ret", x) for x in body[:-1]):
                yield body


@pytest.mark.parametrize("char", "fdFD")
@pytest.mark.parametrize(("level", "suffix"), [("avx2", "v3"), ("avx512", "v4")])
def test_sums_stay_in_registers(level, suffix, char):
    """The loop of a full tile multiplies and adds; no vector goes to the stack, but one of each of complex rows."""
    if compiled.contraction_sizes(char, "avx2") is None:
        pytest.skip("this is another kind of processor")
    code = Microkernels(char, level, 1 << 20)
    for way in ("PACKED", "DIRECT_ROWS", "DIRECT"):
        name = f"tile_{way}_{code.vectors}_{code.columns}_{char}_{suffix}"
        done = subprocess.run(
            [OBJDUMP, "-d", "--no-show-raw-insn", f"--disassemble={name}", compiled.__file__],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        if f"<{name}>:" not in done.stdout and level != compiled.LEVEL:
            pytest.skip("this level is not compiled")
        found = [loop for loop in loops(done.stdout) if "vfmadd" in str(loop)]
        assert [sum("vfmadd" in x for x in loop) for loop in found] == [code.vectors * code.columns * code.parts], way
        spilled = [x for x in found[0] if re.search(r"mm\d+,.*\(%r[sb]p", x)]
        assert len(spilled) <= (code.parts - 1) * code.vectors, way
