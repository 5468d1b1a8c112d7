"""Relations as text, in indices of the value and of the argument."""

from __future__ import annotations

from tenferro_ad.sparse._relation import Relation
from tenferro_runtime.extension import IndexForm, IndexMap

LETTERS = "ijklmnopqrstuvw"


def shown(relation: Relation) -> str:
    """One line for each index map."""
    lines = [_line(m) for m in relation.maps]
    if relation.later:
        lines.append(f"and {len(relation.later)} part(s) known only for numeric sizes")
    return "\n".join(lines) or "no dependence"


def _line(m: IndexMap) -> str:
    names = LETTERS if len(m.extents) <= len(LETTERS) else [f"i{k}" for k in range(len(m.extents))]
    left, right = (", ".join(_form(f, names) for f in forms) for forms in (m.output, m.operand))
    ranges = [f"0 <= {names[k]} < {n}" for k, n in enumerate(m.extents)]
    ranges += [f"{_form(f, names)} >= 0" for f in m.where]
    return f"out[{left}] <- in[{right}]" + (f" for {', '.join(ranges)}" if ranges else "")


def _form(form: IndexForm, names: str | list[str]) -> str:
    text = ""
    for k, step in form.terms:
        number = step if isinstance(step, int) else None
        sign = "-" if number is not None and number < 0 else "+"
        size = names[k] if number in (1, -1) else f"{abs(number) if number is not None else f'({step})'}*{names[k]}"
        text += f" {sign} {size}" if text else (f"-{size}" if sign == "-" else size)
    if not text:
        return str(form.offset)
    if isinstance(form.offset, int):
        return text + (f" {'+' if form.offset > 0 else '-'} {abs(form.offset)}" if form.offset else "")
    return f"{text} + {form.offset}"
