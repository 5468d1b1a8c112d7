"""A pullback program as the function that nodes call: unwraps concrete values, runs kernels, wraps the results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenferro_ad._apply import Site
from tenferro_runtime.extension import Program, render
from tenferro_runtime.passes import remove_dead_code
from tenferro_runtime.rendering import aliases, raw_steps
from tenferro_tensor import HOST, SCALARS, Tensor
from tenferro_tensor import dispatch as _select
from tenferro_tensor._shortcuts import Pulling, shortcuts

Pull = Callable[[Any, Any], "tuple[Any, ...]"]


def pull_code(
    site: Site,
    program: Program,
    places: tuple[int, ...],
    save: tuple[int, ...],
    mask: tuple[bool, ...],
    fallback: Pull,
    *,
    literal: bool = False,
) -> Pull:
    """Write the function.

    Args:
        site: the op and its circumstances.
        program: the pullback: of the cotangents in `mask` and the saved values, to the cotangents at `places`.
        places: positions among ``site.need`` of the program's outputs; the others are zero.
        save: positions of the saved values.
        mask: which cotangents are there; a pullback of an op of one output takes it bare.
        fallback: the rule itself, for saved Python scalars among values that are not concrete.
        literal: saved Python scalars stand in the program as literals, and are no inputs of it.
    """
    count = len(site.given)
    gs = [f"g{k}" for k, there in enumerate(mask) if there]
    saved = [f"s{k}" for k in range(len(save))]
    scalars = {f"s{k}": site.specs[i].dtype for k, i in enumerate(save) if i < count and site.given[i] in SCALARS}
    arrays = [name for name in (*gs, *saved) if name not in scalars]
    inputs = arrays if literal else [*gs, *saved]
    names: dict[str, Any] = {
        "__name__": "tenferro_ad.rendered",  # not user code: traced equations name the line behind it
        "Tensor": Tensor,
        "new": object.__new__,
        "select": _select,
    }
    lines = [f"def pull({'g' if site.many else 'g0'}, saved):"]
    if site.many:
        lines.append(f"    {', '.join(f'g{k}' for k in range(len(mask)))}, = g")
    if saved:
        lines.append(f"    {', '.join(saved)}, = saved")
    if not inputs == [*gs, *saved] or not scalars or all(s.place is HOST for s in site.outs):
        test = " is ".join(["Tensor", *[f"{a}.__class__" for a in arrays]])
        lines.append(f"    if {test} and not select.open_scopes:")
        lines += ["    " + line for line in _raw_lines(site, program, places, inputs, scalars, names)]
    if scalars and not literal:
        names["fallback"] = fallback
        lines.append(f"    return fallback({'g' if site.many else 'g0'}, saved)")
    else:
        names["values"] = render(program, "value")
        found = [f"c[{places.index(k)}]" if k in places else "None" for k in range(len(site.need))]
        lines.append(f"    c = values({', '.join(inputs)})")
        lines.append(f"    return ({', '.join(found)},)")
    exec(compile("\n".join(lines), f"<pullback of {site.op.primitive.name}>", "exec"), names)
    pull: Any = names["pull"]
    pull.op = site.op
    offered = shortcuts()
    if offered is None or site.many or inputs != arrays:
        return pull  # type: ignore[no-any-return]
    described = _described(site, program, places, ["g0", *saved], set(arrays))
    return pull if described is None else offered.pull(described, pull)


def _raw_lines(
    site: Site,
    program: Program,
    places: tuple[int, ...],
    arguments: list[str],
    scalars: dict[str, Any],
    names: dict[str, Any],
) -> list[str]:
    """Run the program on raw arrays; an output that is an input is passed on as it is."""
    by_id = dict(zip(program.input_ids, arguments))
    same = {k: by_id[v] for k, v in zip(places, program.output_ids) if v in by_id and by_id[v] not in scalars}
    made = [k for k in places if k not in same]
    found = [f"c{k}" if k in made else same.get(k, "None") for k in range(len(site.need))]
    lines = []
    if made:
        text = {v: name if name in scalars else f"{name}._data" for v, name in by_id.items()}
        for name, dtype in scalars.items():
            if name in arguments:
                names[f"type_{name}"] = {"float64": float, "complex128": complex}.get(dtype.name, dtype.type)
                lines.append(f"    {name} = type_{name}({name})")
        outputs = {v: k for k, v in zip(places, program.output_ids) if k in made}
        lines += ["    " + line for line in _steps(program, text, names, set(outputs))]
        for k, v in zip(places, program.output_ids):
            if k in made:
                names[f"spec{k}"] = site.given[site.need[k]]
                lines.append(f"    c{k} = new(Tensor); c{k}._data = {text[v]}; c{k}.spec = spec{k}")
    lines.append(f"    return ({', '.join(found)},)")
    return lines


def _steps(program: Program, text: dict[int, str], names: dict[str, Any], wanted: set[int]) -> list[str]:
    """The kernel calls of a program that its wanted outputs need; `text` says what its variables are called."""
    names.update((f"k{v}", c._data) for v, c in program.constants.items())
    text.update((v, f"k{v}") for v in program.constants)
    every = program.output_ids
    program = program.with_(output_ids=tuple([v for v in every if v in wanted]))
    steps, alias = aliases(raw_steps(remove_dead_code(program)))
    lines = []
    for n, step in enumerate(steps):
        names[f"f{n}"] = step.function
        operands = [text[v] if isinstance(v, int) else _literal(v.value, names) for v in step.operands]
        for v in step.results:
            text[v] = f"v{v}"
        comma = "," if step.many else ""
        lines.append(f"{', '.join(f'v{v}' for v in step.results)}{comma} = f{n}({', '.join(operands)})")
    text.update((v, text[a]) for v, a in alias.items() if a in text)
    return lines


def _described(
    site: Site, program: Program, places: tuple[int, ...], operands: list[str], tensors: set[str]
) -> Pulling | None:
    """The same over numbered registers; ``None`` where a kernel has several results."""
    at = dict(zip(program.input_ids, [k for k, name in enumerate(operands) if name in tensors]))
    given = {k: at[v] for k, v in zip(places, program.output_ids) if v in at}
    wanted = [v for k, v in zip(places, program.output_ids) if k not in given]
    kept = remove_dead_code(program.with_(output_ids=tuple(wanted)))
    steps, alias = aliases(raw_steps(kept))
    if any(step.many for step in steps):
        return None
    constants = [(len(operands) + k, c._data) for k, c in enumerate(kept.constants.values())]
    at.update(zip(kept.constants, [register for register, _ in constants]))
    for step in steps:
        for v in step.operands:
            if not isinstance(v, int):
                constants.append((len(operands) + len(constants), v.value))
    literals = iter(constants[len(kept.constants) :])
    first = len(operands) + len(constants)
    calls = []
    for n, step in enumerate(steps):
        registers = tuple([at[v] if isinstance(v, int) else next(literals)[0] for v in step.operands])
        at[step.results[0]] = first + n
        calls.append((step.function, registers, first + n))
    at.update((v, at[a]) for v, a in alias.items() if a in at)
    found = dict(zip(places, program.output_ids))
    outs: list[int | tuple[int, Any] | None] = [
        given[k] if k in given else (at[found[k]], site.given[site.need[k]]) if k in found else None
        for k in range(len(site.need))
    ]
    return Pulling(tuple([name in tensors for name in operands[1:]]), tuple(constants), tuple(calls), tuple(outs))


def _literal(value: Any, names: dict[str, Any]) -> str:
    name = f"l{len(names)}"
    names[name] = value
    return name
