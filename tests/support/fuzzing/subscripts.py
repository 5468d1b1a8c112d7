"""einsum strings: hyper-edges, diagonals, traces, ellipses, extents 0 and 1, mixed dtypes, against NumPy."""

import random
from collections.abc import Iterator

import numpy as np

from fuzzing.area import ALWAYS, WITH, WITHOUT, Area, Case
from fuzzing.comparing import bitwise, near
from fuzzing.reference import expected
from fuzzing.values import INEXACT, array, literal, operand, smaller

WAYS = ("eager", "recorded", "compiled", "deterministic", "optimised")
_SHARES = (45, 20, 17, 15, 3)


def _inputs(rng: random.Random) -> tuple[str, list[list[int]]]:
    """Subscripts and the shapes that they mean."""
    labels = rng.sample("abcdefgh", rng.randint(1, 6))
    extent = {x: rng.choice((0, 1, 1, 2, 2, 3, 3, 4, 5) if rng.random() < 0.3 else (1, 2, 3, 4)) for x in labels}
    terms = ["".join(rng.choices(labels, k=rng.randint(0, 4))) for _ in range(rng.randint(1, 4))]
    dots = [rng.choice((1, 2, 3)) for _ in range(rng.randint(0, 2))] if rng.random() < 0.25 else []
    shapes: list[list[int]] = []
    for k, term in enumerate(terms):
        shape = [extent[x] for x in term]
        if dots and (rng.random() < 0.7 or k == 0):
            own = dots[rng.randint(0, len(dots)) :]
            at = rng.randint(0, len(term))
            terms[k] = term[:at] + "..." + term[at:]
            shape[at:at] = [1 if rng.random() < 0.2 else d for d in own]
        shapes.append(shape)
    if rng.random() < 0.15 and not dots:
        return ",".join(terms), shapes  # implicit output
    used = sorted({x for t in terms for x in t if x != "."})
    out = "".join(rng.sample(used, rng.randint(0, min(len(used), 4)))) if used else ""
    if dots:
        at = rng.randint(0, len(out))
        out = out[:at] + "..." + out[at:]
    return f"{','.join(terms)}->{out}", shapes


class Subscripts(Area):
    """One contraction."""

    name = "einsum"
    machines = (WITH, WITHOUT, ALWAYS)
    share = 2.0

    def draw(self, rng: random.Random) -> Case:
        text, shapes = _inputs(rng)
        dtype = rng.choice(("float64", "float64", "float32", "complex128", "complex64", "int64", "int32", "bool"))
        operands = []
        for shape in shapes:
            own = dtype if rng.random() < 0.85 else rng.choice(INEXACT)
            operands.append(operand(rng, (own,), tuple(shape), "small" if dtype == "bool" else "plain"))
        return {"text": text, "operands": operands, "way": rng.choices(WAYS, _SHARES)[0]}

    def run(self, case: Case) -> None:
        import tenferro_runtime as tr
        from tenferro_einsum import einsum

        text, way = case["text"], case["way"]
        raws = [array(x) for x in case["operands"]]
        if all(x.dtype.kind == "b" for x in raws):
            raws = [x.astype("int64") for x in raws]  # NumPy sums booleans by `or`
        # NumPy sums in the order of the loops; the definition is compared in the widest dtype
        wide = [x.astype("complex128" if x.dtype.kind == "c" else "float64" if x.dtype.kind == "f" else x.dtype)
                for x in raws]  # fmt: skip
        want = expected(np.einsum, text, *wide)
        if isinstance(want, Exception):
            return
        with np.errstate(all="ignore"):
            scale = np.einsum(text, *[np.abs(x).astype("float64") for x in raws])
            want = np.asarray(want).astype(np.result_type(*[x.dtype for x in raws]))
        args = [tr.asarray(x) for x in raws]
        if way == "recorded":
            from tenferro_ad import variable

            got = einsum(text, *[variable(x) if x.spec.inexact else x for x in args])
        elif way in ("compiled", "deterministic"):
            run = tr.compile(lambda *xs: einsum(text, *xs), deterministic=way == "deterministic" or None)
            got = run(*args)
            if way == "deterministic":
                bitwise(got, einsum(text, *args), f"deterministic against eager `{text}`")
        elif way == "optimised" and len(args) > 1:
            got = einsum(text, *args, optimize="optimal")
        else:
            got = einsum(text, *args)
        rtol = 40.0 if not any(x.dtype.name in ("float32", "complex64") for x in raws) else 10.0
        if want.dtype.itemsize > 8 or want.dtype == "float64":
            narrow = [x for x in raws if x.dtype.name in ("float32", "complex64")]
            rtol *= 1e8 if len(narrow) > 1 else 1.0  # products of narrow operands may be rounded to theirs
        near(got, want, f"`{way}: {text}`", rtol, [np.broadcast_to(np.real(scale), want.shape)])

    def shrink(self, case: Case) -> Iterator[Case]:
        operands = case["operands"]
        left, arrow, right = case["text"].partition("->")
        terms = left.split(",")
        for k in range(len(terms)):
            rest = terms[:k] + terms[k + 1 :]
            have = set("".join(rest))
            if rest:
                out = "".join(x for x in right if x in have or x == ".") if "..." in "".join(rest) else "".join(
                    x for x in right if x in have)  # fmt: skip
                yield case | {"text": ",".join(rest) + arrow + out, "operands": operands[:k] + operands[k + 1 :]}
        for label in sorted(set(left) - set(",.")):
            if "." not in left:  # remove a label everywhere
                cut = [y | {"shape": [d for d, x in zip(y["shape"], t) if x != label]} for y, t in zip(operands, terms)]
                yield case | {"text": case["text"].replace(label, ""), "operands": cut}
        for k, x in enumerate(operands):
            for y in smaller(x):
                yield case | {"operands": [*operands[:k], y, *operands[k + 1 :]]}
        for n in sorted({d for x in operands for d in x["shape"]}):
            if n > 1:
                yield case | {
                    "operands": [y | {"shape": [n - 1 if d == n else d for d in y["shape"]]} for y in operands]
                }
        if case["way"] != "eager":
            yield case | {"way": "eager"}

    def code(self, case: Case) -> str:
        text = case["text"]
        xs = ", ".join(f"tr.asarray({literal(x)})" for x in case["operands"])
        lines = ["import numpy as np", "import tenferro_runtime as tr", "from tenferro_einsum import einsum"]
        lines += [f"xs = [{xs}]"]
        calls = {
            "recorded": f"from tenferro_ad import variable\nprint(einsum({text!r}, *[variable(x) for x in xs]))",
            "compiled": f"print(tr.compile(lambda *xs: einsum({text!r}, *xs))(*xs))",
            "deterministic": f"print(tr.compile(lambda *xs: einsum({text!r}, *xs), deterministic=True)(*xs))",
            "optimised": f"print(einsum({text!r}, *xs, optimize='optimal'))",
        }
        lines += [calls.get(case["way"], f"print(einsum({text!r}, *xs))")]
        return "\n".join([*lines, f"print(np.einsum({text!r}, *[x.numpy() for x in xs]))"])
