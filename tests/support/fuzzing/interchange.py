"""Arrays in and out: NumPy's protocol, DLPack, pickles and copies, for every layout, dtype and argument."""

import copy
import pickle
import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from fuzzing.area import WITH, WITHOUT, Area, Case, Mismatch
from fuzzing.comparing import near
from fuzzing.reference import expected
from fuzzing.values import ALL, array, literal, operand, shape_of, smaller

INTO = ("tr.asarray(x)", "tr.from_dlpack(x)", "tr.asarray(x, copy=True)",
        "tr.reshape(tr.asarray(x.tolist(), dtype=x.dtype), x.shape)",
        "tr.asarray(memoryview(x))", "tr.asarray(x, copy=False)", "tr.from_dlpack(x, copy=True)",
        "tr.asarray(tr.asarray(x))", "tr.from_dlpack(tr.asarray(x))", "tr.asarray(x.view(np.ndarray))")  # fmt: skip
ACROSS = ("t", "t", "t[::-1] if t.ndim else t", "tr.permute_dims(t, tuple(range(t.ndim))[::-1])", "t[..., None]",
          "tr.broadcast_to(t, (2, *t.shape))", "tr.real(t)", "t + 0 if t.dtype.kind != 'b' else t")  # fmt: skip
OUT = ("np.asarray(t)", "np.from_dlpack(t)", "t.numpy()", "np.array(t)", "np.array(t, copy=True)",
       "pickle.loads(pickle.dumps(t))", "copy.copy(t)", "copy.deepcopy(t)", "np.asarray(t, dtype=t.dtype)",
       "np.array(t.tolist(), t.dtype).reshape(t.shape)", "np.from_dlpack(t, copy=True)",
       "np.from_dlpack(t, device='cpu')", "np.stack([t, t])[0]", "np.array([t])[0]")  # fmt: skip
ODD = ("tr.asarray(x.astype('float16'))", "tr.asarray(x.astype('>f8'))", "tr.asarray(x.astype(object))",
       "tr.from_dlpack(object())", "tr.from_dlpack(None)", "t.__dlpack__(max_version=5)",
       "t.__dlpack__(dl_device=(2, 0))", "t.__dlpack__(copy='x')", "tr.asarray(x.astype('datetime64[s]'))",
       "tr.asarray('text')", "tr.asarray([[1], [2, 3]])", "tr.asarray(np.ma.masked_array([1.0], [True]))",
       "tr.asarray(np.zeros(2, 'i4,f8'))", "tr.asarray({1: 2})", "tr.asarray(x, dtype='float16')",
       "tr.asarray(x, device='gpu:9')", "tr.asarray([1, 'a'])", "tr.asarray(10**30)", "float(tr.asarray(x))",
       "int(tr.asarray(x))", "bool(tr.asarray(x))", "len(tr.asarray(x))", "hash(tr.asarray(x))",
       "tr.asarray(x).__index__()", "list(tr.asarray(x))", "np.add(tr.asarray(x), 1)",
       "t.__dlpack__(max_version=(0, 5))", "t.__dlpack__(max_version=(9, 9))", "tr.asarray(np.float16(1))")  # fmt: skip
"""Mostly nonsense: an error of the library, or one of the kind that the NumPy array raises in its place."""

PLAIN_ERRORS = (TypeError, ValueError, BufferError, IndexError, OverflowError)


class Interchange(Area):
    """One array into the library, perhaps through a view, and out again."""

    name = "interchange"
    machines = (WITH, WITHOUT)

    def draw(self, rng: random.Random) -> Case:
        x = operand(rng, ALL, shape_of(rng, 0, 4), "special", plain=0.15)
        if rng.random() < 0.15:
            return {"operand": x, "odd": rng.choice(ODD)}
        return {"operand": x, "into": rng.choice(INTO), "across": rng.choice(ACROSS), "out": rng.choice(OUT)}

    def run(self, case: Case) -> None:
        import tenferro_runtime as tr

        x = array(case["operand"])
        scope: dict[str, Any] = {"tr": tr, "np": np, "copy": copy, "pickle": pickle, "x": x}
        if "odd" in case:
            self._odd(case["odd"], scope | {"t": tr.asarray(x)})
            return
        before = x.tobytes()
        t = expected(eval, case["into"], scope)
        if isinstance(t, Exception):
            self._refused(t, case["into"], "dlpack" in case["into"] or "copy=False" in case["into"]
                          or "memoryview" in case["into"] or "tolist" in case["into"])  # fmt: skip
            return
        near(t, x, case["into"])
        across = eval(case["across"], scope | {"t": t})
        want = eval(case["across"].replace("tr.", "np."), scope | {"t": x})
        near(across, want, case["across"])
        out = expected(eval, case["out"], scope | {"t": across})
        if isinstance(out, Exception):
            self._refused(out, case["out"], "dlpack" in case["out"])
            return
        near(out if hasattr(out, "level") else tr.asarray(out), want, case["out"])
        if x.tobytes() != before:
            raise Mismatch("the array that was given has changed")

    def _refused(self, error: Exception, text: str, may: bool) -> None:
        if not may or not isinstance(error, (TypeError, ValueError, BufferError)):
            raise Mismatch(f"{text}: seen {type(error).__name__}: {error}") from error

    def _odd(self, text: str, scope: dict[str, Any]) -> None:
        from tenferro_tensor_core import TenferroError

        got = expected(eval, text, scope)
        if isinstance(got, Exception) and not isinstance(got, (TenferroError, *PLAIN_ERRORS)):
            raise Mismatch(f"{text}: a raw {type(got).__name__}: {got}") from got

    def subject(self, case: Case) -> str:
        return " ".join(case.get(k, "") for k in ("odd", "into", "out"))

    def shrink(self, case: Case) -> Iterator[Case]:
        if case.get("across", "t") != "t":
            yield case | {"across": "t"}
        yield from (case | {"operand": x} for x in smaller(case["operand"]))
        x = case["operand"]
        for axis, n in enumerate(x["shape"]):
            yield case | {"operand": x | {"shape": x["shape"][:axis] + x["shape"][axis + 1 :]}}
            if n > 1:
                yield case | {"operand": x | {"shape": [*x["shape"][:axis], n // 2, *x["shape"][axis + 1 :]]}}

    def code(self, case: Case) -> str:
        lines = ["import copy, pickle", "import numpy as np", "import tenferro_runtime as tr"]
        lines += [f"x = {literal(case['operand'])}"]
        if "odd" in case:
            return "\n".join([*lines, "t = tr.asarray(x)", f"print({case['odd']})"])
        return "\n".join([*lines, f"t = {case['into']}", f"t = {case['across']}", f"print({case['out']})"])
