"""Cases of the area `sizes` as Python text: the function, what is made of it, and a script that shows a failure."""

import re
from typing import Any

from fuzzing.area import Case

SMOOTH = ("grad", "vjp", "jvp")
"""Ways that differentiate."""

WAYS = ("value", *SMOOTH, "lanes")
"""What is compiled: the function, a derivative of it, or its batch over a new leading axis of all data."""

OPTIONS = {"compiled": "", "deterministic": "deterministic=True", "donated": "donate={donated}"}
"""Options of `compile` by form."""


def data_of(case: Case) -> list[str]:
    """Names of the arguments that are data and not indices."""
    return [x["name"] for x in case["inputs"] if x["kind"] == "data"]


def donated(case: Case) -> tuple[int, ...]:
    """Positions of the data."""
    return tuple([k for k, x in enumerate(case["inputs"]) if x["kind"] == "data"])


def function_text(case: Case, every: bool = False) -> str:
    """The definition of `f`; with `every`, all lines are outputs."""
    text = [f"def f({', '.join([x['name'] for x in case['inputs']])}):"]
    for line in case["lines"]:
        text.append(f"    {line['name']} = {line['text']}")
        text += [f"    {line['name']}{line['after']}"] * bool(line["after"])
    more = [line["name"] for line in case["lines"] if every and line["kind"] == "f"]
    return "\n".join([*text, f"    return {', '.join([*case['outputs'], *more])},"]) + "\n"


def way_text(case: Case) -> str:
    """The definition of `g`, which is compiled, by `f`."""
    names, data = [x["name"] for x in case["inputs"]], data_of(case)
    every, some = ", ".join(names), ", ".join(data)
    inner = f"lambda {some}: f({every})"
    axes = ", ".join(["0" if name in data else "None" for name in names])
    tangents = ", ".join([f"{name} * 0.5 + 1.0" for name in data])
    body = {
        "value": f"return f({every})",
        "grad": f"return grad(lambda {some}: sum(tr.sum(tr.sin(y) * 0.7) for y in f({every})), "
        f"{tuple(range(len(data)))})({some})",
        "vjp": f"ys, pull = vjp({inner}, {some})\n    return pull(tuple([y * 0.5 + 1.0 for y in ys]))",
        "jvp": f"return jvp({inner}, ({some},), ({tangents},))[1]",
        "lanes": f"return tr.vmap(f, in_axes=({axes},))({every})",
    }
    return f"def g({every}):\n    {body[case['way']]}\n"


def scope() -> dict[str, Any]:
    """The names of texts."""
    import tenferro_ad as ad
    import tenferro_runtime

    return {"tr": tenferro_runtime, "grad": ad.grad, "vjp": ad.vjp, "jvp": ad.jvp}


def script(case: Case) -> str:
    """A program that prints what each form gives at each size, after what is expected."""
    text = ["import numpy as np", "import tenferro_runtime as tr"]
    text += ["from tenferro_ad import grad, jvp, vjp"] * (case["way"] in SMOOTH)
    text += ["from tenferro_runtime import fusion", "", function_text(case), way_text(case), "def arguments(n, m):"]
    text += ["    x = np.random.default_rng(0)"]
    batch = "2, " if case["way"] == "lanes" else ""
    for x in case["inputs"]:
        extents, seed = "".join([f"{d}, " for d in x["shape"]]), x["seed"]
        values = {
            "data": f"x.standard_normal(({batch}{extents})).astype({case['dtype']!r}), copy=True",
            "indices": f"({seed} + 3 * np.arange({x['shape'][0] if x['shape'] else 0})) % max(1, min(n, 7))",
            "below n": f"np.int64({seed} % max(1, min(n, 6)))",
            "below m": f"np.int64({seed} % max(1, min(m, 6)))",
            "number": f"np.int64({seed} % 5)",
        }
        text.append(f"    {x['name']} = tr.asarray({values[x['kind']]})")
    text += [f"    return {', '.join([x['name'] for x in case['inputs']])},", ""]
    text += ["def show(what, call, s):", "    try:", "        print(s, what, *call(*arguments(*s)))"]
    text += ["    except Exception as error:", "        print(s, what, type(error).__name__, error)", ""]
    text.append(f"sizes = {[tuple(s) for s in case['sizes']]}")
    for form in case["forms"]:
        options = OPTIONS[form].format(donated=donated(case))
        text += [f"c = tr.compile(g{', ' if options else ''}{options})", "for stage in ('step by step', 'native'):"]
        text += ["    for s in [*sizes, sizes[0]]:", "        show('expected', g, s)"]
        text += [f"        show(f'{form}, {{stage}}', c, s)", "    fusion.wait()"]
    if case["extra"] == "xla":
        text += ["c = tr.compile(f, backend='xla')", "for s in sizes:", "    show('expected', g, s)"]
        text += ["    show('xla', c, s)"]
    return "\n".join(text)


def renamed(line: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    """A line with another name in it."""
    return line | {k: re.sub(rf"\b{old}\b", new, line[k]) for k in ("text", "after")}


def names_in(line: dict[str, Any]) -> set[str]:
    """The values that a line uses."""
    return set(re.findall(r"\bv\d+\b", line["text"] + line["after"]))


def live(case: Case) -> Case:
    """Without lines and arguments that no output needs; one argument with data stays."""
    needed, lines = set(case["outputs"]), []
    for line in reversed(case["lines"]):
        if line["name"] in needed:
            needed |= names_in(line)
            lines.insert(0, line)
    kept = [x for x in case["inputs"] if x["name"] in needed]
    if not any(x["kind"] == "data" for x in kept):
        kept = [next(x for x in case["inputs"] if x["kind"] == "data"), *kept]
    return case | {"lines": lines, "inputs": kept}
