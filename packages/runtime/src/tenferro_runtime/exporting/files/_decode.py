"""Decodes plain data to a program: the inverse of `_encode`, which trusts nothing.

Every index must refer to an earlier entry, every spec is inferred again, and nothing in the file is evaluated as code.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Final

from tenferro_runtime.exporting.files._encode import TABLES
from tenferro_runtime.exporting.files._errors import FileLimits, ProgramFileError
from tenferro_runtime.exporting.files._trees import decode_tree
from tenferro_runtime.exporting.files._vocabulary import Vocabulary
from tenferro_runtime.ir._program import Equation, Literal, Program
from tenferro_runtime.ir._spec_check import check_program
from tenferro_tensor import REGISTRY, SCALARS, ComputeDevice, MemorySpace, Op, Place, Spec, Tensor
from tenferro_tensor_core import Dim, DimLike, Guard, dim, dim_max, dim_min, dtype, floordiv

_ATOMS: Final[dict[str, Callable[..., DimLike]]] = {"floordiv": floordiv, "min": dim_min, "max": dim_max}
_MAX_TERMS: Final = 10_000
"""Largest number of terms of a product of sizes."""


class Decoder:
    """Decodes the tables of a file.

    Args:
        tables: the entries of each table.
        about: user lines, names, example sizes, distributions of extensions.
        constant: returns the constant with a given index, spec and hash.
        limits: bounds.
    """

    def __init__(
        self, tables: Any, about: Any, constant: Callable[[int, Spec, str], Tensor], limits: FileLimits
    ) -> None:
        self._about, self._constant, self._limits = about, constant, limits
        self._vocabulary = Vocabulary(_bringers(about.get("extensions", {})))
        self._examples: dict[str, int] = {}
        for entry, part in zip(tables["programs"], about["programs"], strict=True):
            self._examples.update(_examples(entry, part))
        self._equations = 0
        self._read: dict[str, list[Any]] = {name: [] for name in TABLES}
        order: dict[str, Callable[[Any], Any]] = {
            "places": self._place,
            "primitives": lambda entry: self._vocabulary.find(*_texts(entry, 3)),
        }
        for name, make in order.items():
            self._read[name] = [make(entry) for entry in tables[name]]
        # Entries refer to each other and are decoded on first use; references only to earlier entries exclude cycles.
        self._plain = tables
        self._makers: dict[str, Callable[[Any], Any]] = {
            "atoms": self._atom,
            "dims": self._dim,
            "specs": self._spec,
            "ops": self._op,
            "programs": self._program,
        }
        self._made: dict[tuple[str, int], Any] = {}
        self._open: list[tuple[str, int]] = []

    def program(self, index: Any) -> Program:
        """The program with a given index, checked against the specification."""
        program: Program = self._get("programs", index)
        return program

    def spec(self, index: Any) -> Spec:
        """The spec with a given index."""
        spec: Spec = self._get("specs", index)
        return spec

    def _get(self, table: str, index: Any) -> Any:
        entries = self._plain[table]
        if index.__class__ is not int or not 0 <= index < len(entries):
            raise ValueError(f"there is no entry {index!r} in the table of {table}, which has {len(entries)}")
        key = (table, index)
        if key not in self._made:
            if key in self._open or len(self._open) > 8 * self._limits.nesting:
                raise ValueError(f"entry {index} of the table of {table} is nested too deeply, or in itself")
            self._open.append(key)
            try:
                self._made[key] = self._makers[table](entries[index])
            finally:
                self._open.pop()
        return self._made[key]

    def value(self, data: Any) -> Any:
        """A metadata value."""
        if data.__class__ is list:
            return tuple([self.value(v) for v in data])
        if data.__class__ is not dict:
            if data is not None and data.__class__ not in (bool, int, str):
                raise ValueError(f"{data!r} is no metadata value")
            return data
        ((kind, inner),) = data.items()
        if kind == "float":
            return float.fromhex(inner)
        if kind == "complex":
            return complex(*[float.fromhex(part) for part in inner])
        if kind == "slice":
            return slice(*[self.value(v) for v in inner])
        if kind == "set":
            return frozenset([self.value(v) for v in inner])
        make = {
            "dtype": lambda name: dtype(str(name)),
            "dim": lambda i: self._get("dims", i),
            "program": self.program,
            "spec": self.spec,
            "tree": lambda tree: decode_tree(self.value, tree),
            "place": lambda i: _entry(self._read["places"], i),
            "device": ComputeDevice,
            "memory": MemorySpace,
        }
        return make[kind](inner)

    def _place(self, entry: Any) -> Place:
        memory, device = entry
        return Place(MemorySpace(memory), None if device is None else ComputeDevice(device))

    def _spec(self, entry: Any) -> Spec:
        shape, name, place = entry
        return Spec(tuple([self._size(d) for d in shape]), dtype(str(name)), _entry(self._read["places"], place))

    def _size(self, data: Any) -> DimLike:
        if data.__class__ is list:
            (index,) = data
            found: Dim = self._get("dims", index)
            return found
        return _integer(data)

    def _dim(self, entry: Any) -> DimLike:
        total: DimLike = 0
        for coefficient, atoms in entry:
            parts: list[DimLike] = [self._get("atoms", a) for a in atoms]
            # A malicious file may use sums as atoms, whose product would grow without bound.
            if prod([len(d.terms) for d in parts if isinstance(d, Dim)]) > _MAX_TERMS:
                raise ValueError("a size has too many terms")
            total = total + prod([_integer(coefficient), *parts])
        return total

    def _atom(self, entry: Any) -> DimLike:
        kind, *args = entry
        if kind == "var":
            name, low, high = args
            return dim(name, min=_integer(low), max=None if high is None else _integer(high))
        return _ATOMS[kind](*[self._size(d) for d in args])

    def _op(self, entry: Any) -> Op:
        index, data = entry
        primitive = _entry(self._read["primitives"], index)
        params = {name: self.value(value) for name, value in data.items()}
        codec = REGISTRY.find("codec", primitive)
        op: Op = primitive.op(**(params if codec is None else codec.decode(params)))
        return op

    def _program(self, entry: Any) -> Program:
        position = self._open[-1][1]
        about = self._about["programs"][position]
        specs: dict[int, Spec] = {}
        for index in entry["inputs"]:
            specs[len(specs)] = self.spec(index)
        inputs = tuple(specs)
        constants: dict[int, Tensor] = {}
        for index in entry["constants"]:
            spec, digest = _entry(self._plain["constants"], index)
            c = self._constant(index, self.spec(spec), str(digest))
            constants[len(specs)] = c
            specs[len(specs)] = c.spec
        self._equations += len(entry["equations"])
        if self._equations > self._limits.equations:
            raise ProgramFileError(
                f"the program has more than {self._limits.equations} equations; if you trust the file, "
                "raise FileLimits.equations",
                limit=self._limits.equations,
            )
        equations = []
        for (op, operands, results), line in zip(entry["equations"], about["lines"], strict=True):
            first = len(specs)
            specs.update({first + i: self.spec(index) for i, index in enumerate(results)})
            made = tuple(range(first, len(specs)))
            equations.append(
                Equation(self._get("ops", op), tuple([self._operand(v) for v in operands]), made, self._source(line))
            )
        guards = [
            Guard(self._size(a), _comparison(op), self._size(b), self._source(line) or "")
            for (a, op, b), line in zip(entry["guards"], about["guards"], strict=True)
        ]
        examples = _examples(entry, about)
        names = {int(v): str(name) for v, name in about["names"].items()}
        outputs = tuple([_integer(v) for v in entry["outputs"]])

        def written(examples: dict[str, int]) -> Program:
            parts = inputs, constants, tuple(equations), outputs, specs
            return Program(*parts, names=names, guards=tuple(guards), examples=examples)

        # A nested program uses the sizes of the outer one, which holds the examples.
        check_program(written({**self._examples, **examples}))
        return written(examples)

    def _operand(self, data: Any) -> int | Literal:
        if data.__class__ is list:
            (inner,) = data
            value: Any = self.value(inner)
            if type(value) not in SCALARS:
                raise ValueError(f"{value!r} is not a Python scalar")
            return Literal(value)
        return _integer(data)

    def _source(self, line: Any) -> str | None:
        return None if line is None else str(_entry(self._about["sources"], line))


def _entry(table: list[Any], index: Any) -> Any:
    if index.__class__ is not int or not 0 <= index < len(table):
        raise ValueError(f"there is no entry {index!r} in a table of {len(table)}")
    return table[index]


def _examples(entry: Any, about: Any) -> dict[str, int]:
    """Example sizes in the order of the program's sizes."""
    return {str(name): _integer(n) for name, n in zip(entry["sizes"], about["examples"], strict=True)}


def _bringers(data: Any) -> dict[str, list[str]]:
    """Distribution and version of each extension, as far as recorded."""
    return {str(name): _texts(found, 2) for name, found in data.items() if found is not None}


def _integer(data: Any) -> int:
    if data.__class__ is not int:
        raise ValueError(f"{data!r} should be an integer")
    return int(data)


def _comparison(data: Any) -> str:
    if data not in ("==", "!=", "<", "<=", ">", ">="):
        raise ValueError(f"{data!r} is no comparison")
    return str(data)


def _texts(entry: Any, count: int) -> list[Any]:
    if len(entry) != count or any(t is not None and t.__class__ is not str for t in entry):
        raise ValueError(f"{entry!r} should be {count} texts")
    return list(entry)
