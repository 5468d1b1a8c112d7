"""Program files: what comes back computes the same, and damage is an error of the library."""

import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fuzzing.area import WITHOUT, Area, Case, Mismatch
from fuzzing.comparing import bitwise
from fuzzing.programs import Programs, draw_program, function, function_text
from fuzzing.reference import expected, library
from fuzzing.values import array

DAMAGE = ("none", "none", "flip", "flip", "flip", "truncate", "zero", "insert", "swap", "append")


def damaged(data: bytes, kind: str, seed: int) -> bytes:
    """Bytes of a file after an accident."""
    rng = random.Random(seed)
    raw = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8)) if kind != "none" else 0):
        at = rng.randrange(max(1, len(raw)))
        if kind == "flip":
            raw[at] ^= 1 << rng.randrange(8)
        elif kind == "truncate":
            del raw[at:]
            raw += b"\0" * (not raw)
        elif kind == "zero":
            raw[at : at + 16] = bytes(len(raw[at : at + 16]))
        elif kind == "insert":
            raw[at:at] = rng.randbytes(4)
        elif kind == "swap":
            there = rng.randrange(len(raw))
            raw[at : at + 8], raw[there : there + 8] = raw[there : there + 8], raw[at : at + 8]
        else:
            raw += rng.randbytes(32)
    return bytes(raw)


class Archives(Area):
    """A program or a compiled function, saved, damaged perhaps, loaded and run."""

    name = "files"
    machines = (WITHOUT,)

    def __init__(self) -> None:
        super().__init__()
        self._programs = Programs()

    def draw(self, rng: random.Random) -> Case:
        case = draw_program(rng, 2, 20)
        more = {"whole": rng.random() < 0.4, "damage": rng.choice(DAMAGE), "damages": [rng.getrandbits(32)]}
        return case | more | {"damages": [rng.getrandbits(32) for _ in range(12)], "way": "eager"}

    def run(self, case: Case) -> None:
        import tenferro_runtime as tr
        from tenferro_tensor_core import TenferroError

        raws = [array(x) for x in case["inputs"].values()]
        args = [tr.asarray(x) for x in raws]
        f = function(function_text(case), library())
        want = expected(f, *args)
        if isinstance(want, Exception):
            return
        program: Any = tr.compile(f) if case["whole"] else tr.trace(f, *args)
        direct = program(*args) if case["whole"] else program.run(*args)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "f.tenferro"
            mark = program.save(path, *args) if case["whole"] else program.save(path)
            data = path.read_bytes()
            for seed in case["damages"] if case["damage"] != "none" else [0]:
                path.write_bytes(damaged(data, case["damage"], seed))
                for expect in (mark, None):
                    try:
                        got = self._again(path, expect, args, case["whole"])
                    except TenferroError as error:
                        if case["damage"] == "none":
                            raise Mismatch(f"a whole file: {error}") from error
                    except Exception as error:
                        text = f"{case['damage']} {seed}: a raw {type(error).__name__}: {error}"
                        raise Mismatch(text) from error
                    else:
                        bitwise(got, direct, f"loaded after {case['damage']}")

    def _again(self, path: Path, expect: str | None, args: list[Any], whole: bool) -> Any:
        import tenferro_runtime as tr

        with np.errstate(all="ignore"):
            loaded = tr.load(path, expected_hash=expect)
            return loaded(*args) if whole else loaded.run(*args)

    def shrink(self, case: Case) -> Iterator[Case]:
        if len(case["damages"]) > 1:
            yield from (case | {"damages": [d]} for d in case["damages"])
        yield from self._programs.shrink(case)

    def code(self, case: Case) -> str:
        names = ", ".join(case["inputs"])
        program = self._programs.code(case).replace(f"print(f({names}))", "").split("# NumPy")[0].rstrip()
        save = f"tr.compile(f).save('f', {names})" if case["whole"] else f"tr.trace(f, {names}).save('f')"
        call = f"print(tr.load('f'){'' if case['whole'] else '.run'}({names}))"
        kind, seed = case["damage"], case["damages"][0]
        lines = ["from pathlib import Path", "from fuzzing.archives import damaged"]
        lines += [save, f"Path('f').write_bytes(damaged(Path('f').read_bytes(), {kind!r}, {seed}))", call]
        return "\n".join([program, *lines])
