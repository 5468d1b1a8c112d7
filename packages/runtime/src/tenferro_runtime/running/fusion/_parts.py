"""Splits a program into parts that can be native functions, and the steps between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from weakref import WeakValueDictionary

from tenferro_runtime.ir._call import PART, call, is_part
from tenferro_runtime.ir._data_sizes import defining, named_in, names_in
from tenferro_runtime.ir._effects import effectful
from tenferro_runtime.ir._program import Equation, Program
from tenferro_runtime.ir._reuse import UPDATES
from tenferro_runtime.ir._sizes import open_sizes
from tenferro_runtime.passes.dead_code import remove_dead_code
from tenferro_runtime.passes.schedule import VIEWS
from tenferro_runtime.running.fusion._bits import rounds_alike
from tenferro_runtime.runtime import FUSION, how_of
from tenferro_tensor import Op, Place, catalog

_PARTS: Final[WeakValueDictionary[Any, Program]] = WeakValueDictionary()
"""Parts by structure and lines of user code: equal parts have one native function."""


def parts(program: Program, has_native_form: Callable[[Program], bool]) -> Program:
    """Replace each run of steps that can be one native function by one step, which calls a program of these steps.

    Steps keep their order, except that a step which needs nothing of the part that is being collected precedes it. A
    part ends before a step that needs a value of another device, for which its other steps need not wait. A view is
    computed both in a part and outside of it, wherever it is read. In a deterministic program, parts consist of
    element-wise steps that round alike in all kernels.

    Args:
        program: the program.
        has_native_form: whether a program has a native form.

    Returns:
        The program with calls of its parts, or the program itself if there are none.
    """
    return program if len(program.equations) < 2 else _Splitting(program, has_native_form).run()


class _Splitting:
    """The equations written so far, and those of the part that is being collected."""

    def __init__(self, program: Program, has_native_form: Callable[[Program], bool]) -> None:
        self.program, self.has_native_form = program, has_native_form
        self.how = how_of(program)._replace(placement=None, compiler=None)
        self.written: list[Equation] = []
        self.shown: set[int] = set()
        """Results of the equations written."""
        self.members: dict[int, Equation] = {}
        """The equations of the part by identity."""
        self.made: set[int] = set()
        """Results of the part."""
        self.place: Place | None = None
        self.read: set[int] = set()
        """Operands of the equations of the part."""
        self.arrived: set[int] = set()
        """Values that come from other devices."""
        self.views: dict[int, Equation] = {}
        """Views that a part may compute again."""
        self.kept = frozenset(program.output_ids)
        self.readers: dict[int, list[int]] = {}
        for eq in program.equations:
            for v in eq.variables:
                self.readers.setdefault(v, []).append(id(eq))

    def run(self) -> Program:
        for eq in self.program.equations:
            place = self._place(eq)
            if place is None:
                if not self.made.isdisjoint((*eq.variables, *defining(self.program, eq))):
                    self._close()
                self._write(eq)
                if len(self._places(eq)) > 1:
                    self.arrived.update(eq.results)
                continue
            if place is not self.place or any(v in self.arrived and v not in self.read for v in eq.variables):
                self._close()
                self.place = place
            self._join(eq)
            if eq.op.primitive in VIEWS:
                self.views[eq.results[0]] = eq
        self._close()
        if not any(is_part(eq) for eq in self.written):
            return self.program
        return remove_dead_code(self.program.with_(equations=tuple(self.written)))

    def _place(self, eq: Equation) -> Place | None:
        """The place of the values of an equation, if it may be a step of a part."""
        p = eq.op.primitive
        if p in (catalog.define_size, catalog.transfer) or effectful(eq.op):
            return None
        if p in UPDATES and eq.operands[0] not in self.made:
            return None  # a single step may write to the memory of its operand
        if self.how.exact and not rounds_alike(self.program, eq):
            return None
        places = self._places(eq)
        return places.pop() if len(places) == 1 else None

    def _places(self, eq: Equation) -> set[Place]:
        specs = self.program.specs
        return {specs[v].place for v in (*eq.variables, *eq.results)}

    def _join(self, eq: Equation) -> None:
        """Add an equation to the part, after the views that it reads."""
        for v in eq.variables:
            if v in self.views and v not in self.made:
                self._join(self.views[v])
        self.members[id(eq)] = eq
        self.made.update(eq.results)
        self.read.update(eq.variables)

    def _write(self, eq: Equation) -> None:
        self.written.append(eq)
        self.shown.update(eq.results)

    def _close(self) -> None:
        """Write the part as one step, followed by its views that are read outside; or its steps, if that is no gain."""
        outputs: list[int] = []
        views: list[Equation] = []
        for eq in reversed(self.members.values()):
            read = [v for v in eq.results if v not in self.shown and self._is_read(v, views)]
            if read and eq.op.primitive in VIEWS:
                views.append(eq)
            else:
                outputs += read
        part = self._program(outputs[::-1])
        if outputs and self.has_native_form(part):
            self._write(Equation(_shared(part), part.input_ids, part.output_ids, part.equations[-1].source))
            for eq in reversed(views):
                self._write(eq)
        else:
            for eq in self.members.values():
                if self.shown.isdisjoint(eq.results):
                    self._write(eq)
        self.members, self.made = {}, set()
        self.read = set()

    def _is_read(self, v: int, views: list[Equation]) -> bool:
        """Whether a result of the part is read outside, by a step, as an output, or by a view that is."""
        return (
            v in self.kept
            or any(reader not in self.members for reader in self.readers.get(v, ()))
            or any(v in view.variables for view in views)
        )

    def _program(self, outputs: list[int]) -> Program:
        """The part as a program."""
        specs, constants = self.program.specs, self.program.constants
        live, equations = set(outputs), list[Equation]()
        for eq in reversed(self.members.values()):
            if not live.isdisjoint(eq.results):
                equations.append(eq)
                live.update(eq.variables)
        equations.reverse()
        made = {v for eq in equations for v in eq.results}
        given = dict.fromkeys([v for eq in equations for v in eq.variables if v not in made])
        names = set().union(
            *[names_in(specs[v].shape) for v in (*given, *made)], *[named_in(eq.op) for eq in equations]
        )
        part = Program(
            tuple([v for v in given if v not in constants]),
            {v: constants[v] for v in given if v in constants},
            tuple(equations),
            tuple(outputs),
            {v: specs[v] for v in (*given, *made)},
            guards=tuple([g for g in self.program.guards if names_in(g.lhs) | names_in(g.rhs) <= names]),
            examples={name: n for name, n in self.program.examples.items() if name in names},
        )
        part.memo[FUSION], part.memo[PART] = self.how, True
        return part


def _shared(part: Program) -> Op:
    """The op that calls a part, or one that is equal to it."""
    key = part.structure, part.guards, how_of(part), tuple([eq.source for eq in part.equations])
    known = _PARTS.setdefault(key, part)
    return call.op(program=known, sizes=open_sizes(known))
