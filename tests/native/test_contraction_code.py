"""The machine code of tiles, for every vector level whatever this processor is."""

import re

import pytest

from tenferro_cpu.native import available

pytestmark = pytest.mark.skipif(not available(), reason="native kernels are off")

LEVELS = ("avx512", "avx2", "neon")


@pytest.mark.parametrize("char", "fdFD")
@pytest.mark.parametrize("level", LEVELS)
def test_sums_stay_in_registers(level, char):
    """The loop of a full tile multiplies and adds; no vector goes to the stack."""
    from assembly import HOSTS, assembly, loops, spilled
    from tenferro_cpu.native.contraction._code import Kind
    from tenferro_cpu.native.contraction._module import _declarations
    from tenferro_cpu.native.contraction._tile_text import WAYS, name, scatter, tile

    kind = Kind(char, HOSTS[level])
    full = [tile(kind, way, kind.vectors, kind.columns).replace("define private", "define") for way in WAYS]
    found = assembly("\n".join([_declarations(kind), scatter(kind), *full]), kind.host)
    sums = kind.vectors * kind.columns * kind.parts
    for way in WAYS:
        tiles = [x for x in loops(found[name(way, kind.vectors, kind.columns)]) if re.search("fmadd|fmla", str(x))]
        assert [len([x for x in loop if re.match("vfmadd|fmla", x)]) for loop in tiles] == [sums], way
        assert not any(map(spilled, tiles[0])), way


@pytest.mark.parametrize("char", "D")
def test_the_engine_compiles_for_aarch64(char):
    """All of it; what it computes there is in `test_emulated_contractions`."""
    from assembly import HOSTS, module, target_machine
    from tenferro_cpu.native.contraction._code import Kind
    from tenferro_cpu.native.contraction._module import source

    host = HOSTS["neon"]
    machine_code = target_machine(host).emit_object(module(source(Kind(char, host), 24), host))
    assert machine_code[:4] == b"\x7fELF" and int.from_bytes(machine_code[18:20], "little") == 183  # AArch64
