"""Encodes a program as plain data: numbers, strings, lists and dictionaries that JSON can hold.

Repeated items are stored once in a table and referred to by index. Entries refer only to earlier entries. `_decode` is
the inverse; docs/files.md specifies both.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

import numpy as np

from tenferro_runtime.exporting.files._errors import ProgramFileError
from tenferro_runtime.exporting.files._trees import encode_tree
from tenferro_runtime.exporting.files._vocabulary import brought, identify
from tenferro_runtime.ir._effects import CALLBACKS
from tenferro_runtime.ir._program import Equation, Literal, Program
from tenferro_runtime.trees._tree import TreeDef
from tenferro_tensor import REGISTRY, ComputeDevice, MemorySpace, Op, Place, Spec, Tensor
from tenferro_tensor_core import Atom, Dim, DimLike

TABLES: Final = ("atoms", "dims", "places", "specs", "primitives", "ops", "constants", "programs")
_PLAIN: Final = (bool, int, str, type(None))


class Encoder:
    """Encodes programs into tables.

    Attributes:
        tables: the entries of each table, plain data.
        arrays: elements of the constants, in order.
        about: data that do not affect the meaning of a program: user lines, names of inputs, example sizes, and the
            distributions of its extensions.
    """

    def __init__(self) -> None:
        self.tables: dict[str, list[Any]] = {name: [] for name in TABLES}
        self.arrays: list[np.ndarray[Any, Any]] = []
        self.about: dict[str, Any] = {"sources": [], "programs": [], "extensions": {}}
        self._known: dict[Any, int] = {}
        self._alive: list[Any] = []

    def program(self, program: Program) -> int:
        """Index of a program; nested programs come first."""
        return self._once("programs", program, lambda: self._program(program))

    def _program(self, program: Program) -> dict[str, Any]:
        number = {v: i for i, v in enumerate((*program.input_ids, *program.constants))}
        equations = [self._equation(program, eq, number) for eq in program.equations]
        body = {
            "inputs": [self.spec(s) for s in program.inputs],
            "constants": [self.constant(c) for c in program.constants.values()],
            "equations": equations,
            "outputs": [number[v] for v in program.output_ids],
            "guards": [[self.size(g.lhs), g.op, self.size(g.rhs)] for g in program.guards],
            "sizes": list(program.examples),
        }
        self.about["programs"].append(
            {
                "names": {str(number[v]): name for v, name in program.names.items() if v in number},
                "examples": list(program.examples.values()),
                "lines": [self._source(eq.where) for eq in program.equations],
                "guards": [self._source(g.where) for g in program.guards],
            }
        )
        return body

    def _equation(self, program: Program, eq: Equation, number: dict[int, int]) -> list[Any]:
        try:
            op = self.op(eq.op)
        except ProgramFileError as error:
            if eq.where and not getattr(error, "__notes__", ()):
                error.add_note(f"in {program.show(eq)}")
            raise
        operands = [[self.value(v.value)] if isinstance(v, Literal) else number[v] for v in eq.operands]
        for v in eq.results:
            number[v] = len(number)
        return [op, operands, [self.spec(program.specs[v]) for v in eq.results]]

    def op(self, op: Op) -> int:
        """Index of an op: its primitive and metadata, encoded by the codec of the primitive if it has one."""

        def made() -> list[Any]:
            p = op.primitive
            if p in CALLBACKS:
                raise ProgramFileError(
                    f"{p.name} calls a Python function, {next(iter(op.params.values()))!r}, which cannot be written to "
                    "a file; leave it out of functions that are saved",
                    primitive=p.name,
                )
            index = self._once("primitives", p, lambda: identify(p))
            if p.extension is not None:
                self._note_extension(p.extension)
            codec = REGISTRY.find("codec", p)
            params = dict(op.params) if codec is None else codec.encode(dict(op.params))
            if not isinstance(params, dict) or not all(isinstance(name, str) for name in params):
                raise ProgramFileError(
                    f"the codec of {p.name} encoded its metadata as {params!r:.80}; let encode return a dictionary of "
                    "names to plain values",
                    primitive=p.name,
                )
            try:
                return [index, {name: self.value(value) for name, value in sorted(params.items())}]
            except TypeError as cause:
                raise ProgramFileError(
                    f"the metadata of {p.name} cannot be written to a file: {cause}; register a codec for the "
                    "primitive, Registry.codec(primitive, encode, decode)",
                    primitive=p.name,
                ) from cause

        return self._once("ops", op, made)

    def _note_extension(self, extension: str) -> None:
        known = self.about["extensions"]
        if extension not in known:
            known[extension] = brought(extension)

    def value(self, value: Any) -> Any:
        """A metadata value: itself, a list for a tuple, or a dictionary whose single key names its kind."""
        if value.__class__ in _PLAIN:
            return value
        if value.__class__ is tuple:
            return [self.value(v) for v in value]
        if value.__class__ is float:
            return {"float": value.hex()}
        if value.__class__ is complex:
            return {"complex": [value.real.hex(), value.imag.hex()]}
        if isinstance(value, np.dtype):
            return {"dtype": value.name}
        if isinstance(value, Dim):
            return {"dim": self.dim(value)}
        if isinstance(value, Program):
            return {"program": self.program(value)}
        if isinstance(value, Spec):
            return {"spec": self.spec(value)}
        if isinstance(value, TreeDef):
            return {"tree": encode_tree(self.value, value)}
        if isinstance(value, Place):
            return {"place": self._place(value)}
        if isinstance(value, ComputeDevice):
            return {"device": str(value)}
        if isinstance(value, MemorySpace):
            return {"memory": str(value)}
        if value.__class__ is slice:
            return {"slice": [self.value(v) for v in (value.start, value.stop, value.step)]}
        if value.__class__ is frozenset:
            return {"set": sorted((self.value(v) for v in value), key=canonical)}
        raise TypeError(f"a {type(value).__name__}, {value!r:.60}, has no form in a file")

    def spec(self, spec: Spec) -> int:
        """Index of a spec."""
        return self._once(
            "specs", spec, lambda: [[self.size(d) for d in spec.shape], spec.dtype.name, self._place(spec.place)]
        )

    def _place(self, place: Place) -> int:
        device = place.compute_device
        return self._once("places", place, lambda: [str(place.memory_space), None if device is None else str(device)])

    def size(self, d: DimLike) -> Any:
        """A size: a number, or ``[index]`` for a symbolic one."""
        return [self.dim(d)] if isinstance(d, Dim) else int(d)

    def dim(self, d: Dim) -> int:
        """Index of a symbolic size: the terms of its polynomial, ``[coefficient, [atoms]]``."""
        return self._once("dims", d, lambda: [[c, [self._atom(a) for a in monomial]] for monomial, c in d.terms])

    def _atom(self, atom: Atom) -> int:
        def made() -> list[Any]:
            if atom.kind == "var":
                return ["var", atom.name, atom.lower, atom.upper]
            return [atom.kind, *[self.size(d) for d in atom.args]]

        return self._once("atoms", atom, made)

    def constant(self, c: Tensor) -> int:
        """Index of a constant: its spec and the hash of its elements."""
        array = np.asarray(c._concrete(), order="C")
        digest = hash_elements(array)
        key = (digest, c.spec)
        if ("constants", key) not in self._known:
            self.arrays.append(array)
        return self._once("constants", key, lambda: [self.spec(c.spec), digest])

    def _source(self, where: str) -> int | None:
        if not where:
            return None
        known = self._known.get(("sources", where))
        if known is None:
            known = self._known["sources", where] = len(self.about["sources"])
            self.about["sources"].append(where)
        return known

    def _once(self, table: str, key: Any, make: Any) -> int:
        found = self._known.get((table, key))
        if found is None:
            entry = make()
            found = self._known[table, key] = len(self.tables[table])
            self.tables[table].append(entry)
            self._alive.append(key)  # objects must stay alive, because keys are identities
        return found


def canonical(data: Any) -> str:
    """The canonical JSON text of plain data: sorted keys, no spaces, ASCII."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)


def stored(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array as stored in ``.npy`` files: bfloat16 as its bits."""
    return array.view(np.uint16) if array.dtype.kind == "V" else array


def hash_elements(array: np.ndarray[Any, Any]) -> str:
    """SHA-256 of the elements of an array in row-major order, little-endian."""
    array = stored(array)
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return hashlib.sha256(little.tobytes()).hexdigest()
