"""Mutants that mean the same as the original, with the reason: no test can kill them, and no score counts them."""

from typing import Final

EQUIVALENT: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "the lengths agree by construction; `strict` only says so": (("strict=True", "strict=False"),),
    "the tuple has one element": (
        ("primals[0]", "primals[-1]"),
        ("tangents[0]", "tangents[-1]"),
        ("cotangents[0]", "cotangents[-1]"),
        ("outs[0]", "outs[-1]"),
    ),
    "another select hides the element": (
        ("c.select(flat, 1, y - 1)", "c.select(flat, 0, y - 1)"),
        ("c.select(flat, 1, y - 1)", "c.select(flat, 2, y - 1)"),
        ("c.select(c.gt(x, 0), x, 1)", "c.select(c.gt(x, 0), x, 2)"),
        ("safe = c.select(off, 1, r)", "safe = c.select(off, 2, r)"),
        ("c.select(at_zero, 1, x)", "c.select(at_zero, 0, x)"),
        ("shifted(u, 0, -1 if reverse else 1, 0)", "shifted(u, 0, -1 if reverse else 1, -1)"),
    ),
    "the vacated elements are multiplied by zeros": (
        ("a = a * shifted(a, axis, by, 0)", "a = a * shifted(a, axis, by, 1)"),
        ("shifted(x, axis, -_next(reverse), 0)", "shifted(x, axis, -_next(reverse), 1)"),
    ),
    "any index that no element has serves": (
        ("-(2**62)", "+(2**62)"),
        ("-1 - _numbered", "-2 - _numbered"),
        ("-1 - _numbered", "~1 - _numbered"),
    ),
    "any index before all elements serves": (
        ("full(spec, -1)", "full(spec, -2)"),
        ("at.get(total, -1)", "at.get(total, -2)"),
    ),
    "small integers are one object": (("index if i == axis else", "index if i is axis else"),),
    "a power of zero is 1": (("if y in (0, 1) else", "if y in (0, 0) else"),),
    "a conversion to real numbers takes the real part": (("if g.spec.cplx and not", "if not g.spec.cplx and not"),),
    "a threshold of speed or size, which any near number serves": (
        ("SORT_MIN_RATIO: Final = 16", "SORT_MIN_RATIO: Final = 17"),
        ("INLINE_MAX_EQUATIONS: Final = 20_000", "INLINE_MAX_EQUATIONS: Final = 19999"),
    ),
    "the list has one element": (("else entries[0]", "else entries[-1]"),),
    "the order of the groups does not matter": (("descending=False", "descending=True"),),
    "both operands have as many batch axes": (("len(batch[0])", "len(batch[1])"), ("len(batch[0])", "len(batch[-1])")),
    "the identity is the smallest permutation": (("permutation == tuple(range(", "permutation <= tuple(range("),),
    "an empty array has nothing to take": (("if 0 in g.spec.shape:", "if -1 in g.spec.shape:"),),
    "any number that no variable has serves": tuple(
        ("max(self.specs, default=-1)", f"max(self.specs, default={n})") for n in ("-0", "-2", "+1", "~1", "not 1")
    ),
    "rules rewrite equations of one result": (
        ("work.specs[eq.results[0]]", "work.specs[eq.results[-1]]"),
        ("self._made[eq.results[0]]", "self._made[eq.results[-1]]"),
    ),
    "the keys are results of additions, which have one": (
        ("eq.results[0] in stands_for", "eq.results[-1] in stands_for"),
    ),
    "only the cost differs": (
        ("not isinstance(whole, int)", "isinstance(whole, int)"),
        ("not isinstance(whole, int)", "not not isinstance(whole, int)"),
        ("if found.spec.shape == update_spec.shape:", "if not found.spec.shape == update_spec.shape:"),
    ),
    "classes are equal only if they are one": ((".__class__ is int", ".__class__ == int"),),
    "the operation has one operand, and one result": (
        ("x, out = eq.operands[0]", "x, out = eq.operands[ -1]"),
        ("x = before.operands[0]", "x = before.operands[ -1]"),
        ("before.operands[0].__class__ is int", "before.operands[-1].__class__ is int"),
        ("is program.specs[eq.results[0]]", "is program.specs[eq.results[-1]]"),
    ),
    "any number that is not taken serves": (("max(self.specs, default=-1) + 1", "max(self.specs, default=-1) + 2"),),
    "any bound beyond all sizes serves": (("self.limit = 1 << 62", "self.limit = 2 << 62"),),
    "a region without outputs is dead code, which is gone": (("and 0 < len(outputs)", "and -1 < len(outputs)"),),
    "it saves a search whose result is the same": (
        ("count < 2 or same[eq.operands] < 2", "count < 2 and same[eq.operands] < 2"),
        ("((guard.lhs, guard.op, guard.rhs), (guard.rhs, _MIRRORED[guard.op], guard.lhs))", "[]"),
    ),
}
