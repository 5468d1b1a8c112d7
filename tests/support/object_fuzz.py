"""Acts on objects that no polite program does, in the midst of operations: nothing may end the process.

`run` does so many steps. Each makes fresh values, damages objects that machine code reads (slots emptied, filled with
anything, classes changed, tables of plans rewritten, keys whose comparison runs code), runs operations on them, and
takes the damage back. Damage is also done in the midst of operations: by handlers of floating-point errors, finalizers,
signals and another thread. Errors of Python are fine, but for `SystemError`, by which the interpreter tells of built-in
functions that break its rules. A crash ends the process, so campaigns run in children: see `campaign`.
"""

from __future__ import annotations

import contextlib
import gc
import os
import random
import signal
import subprocess
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import tenferro_ad as ad
import tenferro_runtime as tr
from tenferro_ad import EagerTensor
from tenferro_ad._derivative import Derivative
from tenferro_einsum import einsum
from tenferro_tensor import Array, Op, Spec, Tensor, catalog
from tenferro_tensor.calls import Entry, Node, Steps

SHAPES = [(8,), (3, 4), (2, 2), (), (0,), (1, 8)]
SLOTS: dict[type, tuple[str, ...]] = {
    Tensor: ("_data", "spec"),
    EagerTensor: ("value", "spec", "level", "node"),
    Node: ("vjp", "parents", "saved"),
    Derivative: ("site", "steps", "uses"),
    Op: ("params", "symbolic"),
    Spec: ("shape", "dtype", "place", "ndim", "inexact"),
}
"""Classes that machine code or the functions around it read, and slots that are emptied and filled."""


class SubTensor(Tensor):
    __slots__ = ()


class LikeTensor(Array):
    """Laid out as `Tensor`, so that objects of the one become objects of the other."""

    __slots__ = ()


class SubEager(EagerTensor):
    __slots__ = ()


class SubNode(Node):
    __slots__ = ()

    def __hash__(self) -> int:
        _Step.meddle()
        return id(self)


class Key:
    """Equal to nothing, and found in the place of something."""

    def __init__(self, like: Any) -> None:
        self.hash = hash(like)

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        _Step.meddle()
        return False


class Dies:
    """Runs code when it is freed, in a cycle for the collector to find."""

    def __init__(self) -> None:
        self.me = self

    def __del__(self) -> None:
        _Step.meddle()


OPERATORS: list[Callable[[Any, Any], Any]] = [
    lambda x, y: x + y, lambda x, y: x * 2, lambda x, y: 2.5 - x, lambda x, y: x / y, lambda x, y: -x,
    lambda x, y: x @ y, lambda x, y: x**2, lambda x, y: x < y, lambda x, y: tr.exp(x), lambda x, y: tr.log(x),
    lambda x, y: tr.where(x > 0, x, y), lambda x, y: catalog.add(x, y), lambda x, y: catalog.sqrt(x),
    lambda x, y: x[1:],
    lambda x, y: tr.sum(x), lambda x, y: tr.max(x, axis=0), lambda x, y: tr.reshape(x, (-1,)),
    lambda x, y: tr.clip(x, 0.0, y), lambda x, y: float(tr.sum(x)), lambda x, y: repr(x),
    lambda x, y: einsum("...i,...i->...", x, y), lambda x, y: tr.astype(x, "float32"),
]  # fmt: skip
COMPILED = [
    tr.compile(lambda x, y: tr.sin(x) * y + x),
    tr.compile(lambda x, y: (x + y, x * 2)),
    tr.compile(lambda x, y: tr.sum(x * y)),
    tr.compile(lambda x, y: x * 2),
]
ONE = tr.compile(lambda x: x + 1)


def _gradient(x: Any, y: Any) -> Any:
    v = ad.variable(x)
    z = tr.sum(tr.sin(v * y) / (v * v + 2.0) + (-v) * v)
    _Step.meddle(v, z)
    z.backward()
    return v.grad


class _Step:
    """One step of a run; its objects and its chance are its own."""

    now: _Step | None = None

    def __init__(self, seed: int, number: int, say: Callable[[str], None]) -> None:
        self.chance = random.Random(f"{seed}/{number}")
        self.say = say
        self.undo: list[Callable[[], object]] = []
        self.values: list[Any] = []
        self.left = 4
        self.handler: Any = None

    @classmethod
    def meddle(cls, *values: Any) -> None:
        """Do something rude in the midst of something else."""
        step = cls.now
        if step is not None and step.left > 0:
            step.left -= 1
            step.values += values
            step.act()

    def go(self) -> None:
        _Step.now = self
        shape = self.chance.choice(SHAPES)
        self.values = [self.tensor(shape), self.tensor(shape), self.tensor(self.chance.choice(SHAPES))]
        if self.chance.random() < 0.5:
            self.values.append(self.attempt(ad.variable, self.values[0]))
        if self.chance.random() < 0.3:
            self.operate()  # its plans are known
        around: Any = self.chance.choice(
            [contextlib.nullcontext, self.reported, self.signalled, self.beside, self.dying]
        )
        try:
            with around():
                for _ in range(self.chance.randrange(3)):
                    self.act()
                for _ in range(self.chance.randrange(1, 4)):
                    self.operate()
        except KeyboardInterrupt:  # a signal arrived between two operations
            pass
        finally:
            self.disarm()
        _Step.now = None
        for undo in reversed(self.undo):
            with contextlib.suppress(Exception):
                undo()

    def tensor(self, shape: tuple[int, ...]) -> Any:
        raw = np.asarray(np.arange(float(np.prod(shape, dtype=int))).reshape(shape))
        raw = raw.astype(self.chance.choice(["f8", "f8", "f8", "f4", "i8", "c16", "?"]))
        return tr.asarray(raw - 2.0 if raw.dtype.kind in "fc" else raw)

    def attempt(self, call: Callable[..., Any], *args: Any) -> Any:
        try:
            return call(*args)
        except SystemError:
            raise
        except (Exception, KeyboardInterrupt):
            return None

    def operate(self) -> None:
        x, y = self.chance.choice(self.values), self.chance.choice(self.values)
        kind = self.chance.randrange(8)
        if kind == 0:
            found = self.attempt(_gradient, x, y)
        elif kind == 1:
            found = self.attempt(self.chance.choice(COMPILED), x, y)
        elif kind == 2:
            found = self.attempt(ONE, x)
        else:
            found = self.attempt(self.chance.choice(OPERATORS), x, y)
        if isinstance(found, (Tensor, EagerTensor)) and self.chance.random() < 0.3:
            self.values.append(found)

    def anything(self) -> Any:
        return self.chance.choice([
            lambda: None, lambda: 3, lambda: "x", lambda: object(), lambda: (), lambda: (1, 2, 3), list, dict,
            lambda: np.zeros(8), lambda: np.zeros((3, 4), order="F"), lambda: np.zeros(2, object),
            lambda: np.float64(2),
            lambda: np.zeros((2, 2), "f4"), lambda: np.zeros(16)[::2], lambda: np.ma.zeros(8), lambda: len,
            lambda: 2**70,
            lambda: Spec((8,), np.dtype("f8")), lambda: Key("x"), lambda: object.__new__(Tensor), lambda: Tensor,
            lambda: object.__new__(Node), lambda: Entry((0,), len, None), lambda: self.chance.choice(self.values),
        ])()  # fmt: skip

    def objects(self) -> list[Any]:
        """What machine code reads on the way of these values."""
        found: list[Any] = [v for v in self.values if v is not None]
        for value in self.values:
            node = getattr(value, "node", None)
            if isinstance(node, Node):
                found.append(node)
                found += [n for n in getattr(node, "parents", None) or () if isinstance(n, Node)]
        ops = [catalog.add.op(), catalog.mul.op(), catalog.exp.op(), catalog.neg.op(), catalog.div.op()]
        found += [self.chance.choice(ops)]
        vjps = [e.vjp for op in ops for e in list(op.entries.values())[-3:] if isinstance(e, Entry)]
        return found + [v for v in vjps if isinstance(v, Derivative | Steps)]

    def act(self) -> None:
        act = self.chance.choice([self.slot, self.slot, self.slot, self.reclass, self.table, self.array, self.collect])
        with contextlib.suppress(Exception):
            act()

    def slot(self) -> None:
        """Empty or fill a slot."""
        target = self.chance.choice(self.objects())
        cls = next((c for c in SLOTS if isinstance(target, c)), None)
        if cls is None:
            return
        name = self.chance.choice(SLOTS[cls])
        descriptor = getattr(cls, name)
        with contextlib.suppress(AttributeError):
            before = descriptor.__get__(target)
            self.undo.append(lambda: descriptor.__set__(target, before))
        if self.chance.random() < 0.5:
            self.say(f"del {cls.__name__}.{name}")
            descriptor.__delete__(target)
        else:
            value = self.anything()
            self.say(f"{cls.__name__}.{name} = {type(value).__name__}")
            descriptor.__set__(target, value)

    def reclass(self) -> None:
        target = self.chance.choice(self.objects())
        goal = self.chance.choice([SubTensor, LikeTensor, Tensor, SubEager, EagerTensor, SubNode, Node])
        before = target.__class__
        target.__class__ = goal
        self.say(f"{before.__name__} becomes {goal.__name__}")
        self.undo.append(lambda: setattr(target, "__class__", before))

    def table(self) -> None:
        """Rewrite a table of plans."""
        op = self.chance.choice([catalog.add.op(), catalog.mul.op(), catalog.exp.op()])
        table = op.entries
        before = dict(table)
        self.undo.append(lambda: (table.clear(), table.update(before)))
        kind = self.chance.randrange(3)
        self.say(f"table: {('cleared', 'junk', 'keys that run code')[kind]}")
        if kind == 0:
            table.clear()
        elif kind == 1:
            for key in list(table)[-4:]:
                table[key] = self.anything()
        else:
            strange = {Key(key): value for key, value in before.items()}
            table.clear()
            table.update(strange)
            table.update(before)

    def array(self) -> None:
        """Change the description of an array under a spec."""
        raw = self.chance.choice(self.values)._data
        before = raw.shape, raw.dtype
        self.undo.append(lambda: (setattr(raw, "dtype", before[1]), setattr(raw, "shape", before[0])))
        self.say("array changed")
        if self.chance.random() < 0.5:
            raw.shape = self.chance.choice([(-1,), (2, -1), (1, -1), (-1, 4)])
        else:
            raw.dtype = self.chance.choice(["f4", "i8", "u1", ">f8", "c16"])

    def collect(self) -> None:
        self.say("collect")
        gc.collect(self.chance.randrange(3))

    @contextlib.contextmanager
    def reported(self) -> Any:
        """Code runs where NumPy meets a floating-point error."""
        self.say("errors call")
        with np.errstate(all="call", call=lambda *_: self.meddle()):
            yield

    @contextlib.contextmanager
    def dying(self) -> Any:
        """Code runs where memory is freed or collected."""
        self.say("finalizers")
        thresholds = gc.get_threshold()
        for value in self.values:
            with contextlib.suppress(TypeError):
                weakref.finalize(value, self.meddle).atexit = False
        Dies()
        gc.set_threshold(self.chance.choice([1, 5, 20]))
        try:
            yield
            self.values.clear()
            self.values.append(self.tensor((8,)))
        finally:
            gc.set_threshold(*thresholds)

    @contextlib.contextmanager
    def signalled(self) -> Any:
        """Code runs, or interrupts, wherever signals arrive."""
        if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
            yield
            return
        self.say("signals")

        def handle(_: int, frame: Any) -> None:
            self.meddle()
            while frame is not None and frame.f_code is not _Step.attempt.__code__:
                frame = frame.f_back
            if frame is not None and self.chance.random() < 0.5:
                raise KeyboardInterrupt  # in the midst of an operation

        self.handler = signal.signal(signal.SIGALRM, handle)
        signal.setitimer(signal.ITIMER_REAL, 1e-5 * self.chance.randrange(1, 30), 2e-4)
        yield

    def disarm(self) -> None:
        """End the signals."""
        if self.handler is not None:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, self.handler)

    @contextlib.contextmanager
    def beside(self) -> Any:
        """Another thread meddles."""
        self.say("thread")
        interval, done = sys.getswitchinterval(), threading.Event()

        def meddling() -> None:
            while not done.is_set() and self.left > 0:
                self.meddle()

        thread = threading.Thread(target=meddling)
        sys.setswitchinterval(1e-6)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
            sys.setswitchinterval(interval)


def run(seed: int, steps: int, only: Iterable[int] | None = None, say: Callable[[str], None] = lambda _: None) -> None:
    """So many steps; a crash ends the process.

    Args:
        seed: of all steps, each of which draws from its own number too.
        steps: how many.
        only: numbers of the steps that are done, by default all.
        say: told each step and each act before it is done.

    Raises:
        SystemError: a built-in function broke the rules of the interpreter.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):  # what machine code needs is made
            _gradient(tr.ones(8), tr.ones(8))
            ONE(tr.ones(8))
        for number in range(steps) if only is None else only:
            say(f"step {number}")
            try:
                _Step(seed, number, say).go()
            except SystemError as error:
                raise SystemError(f"seed {seed}, step {number}: {error}") from error


PLANT = "TENFERRO_TEST_PLANT_CRASH"
"""The variable that names a step after which the process crashes, for the test of the harness."""


def main(seed: int, steps: int, only: list[int] | None) -> None:
    planted = int(os.environ.get(PLANT, "-1"))

    def say(text: str) -> None:
        os.write(2, f"{text}\n".encode())
        if text == f"step {planted}":
            os.kill(os.getpid(), signal.SIGSEGV)

    run(seed, steps, only, say)


def child(seed: int, steps: int, only: Iterable[int] | None = None) -> tuple[int, list[str]]:
    """Exit code of a run in a process of its own, and what it said."""
    command = [sys.executable, "-X", "faulthandler", __file__, str(seed), str(steps), *map(str, only or ())]
    found = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    return found.returncode, found.stderr.splitlines()


def campaign(seeds: Iterable[int], steps: int) -> list[str]:
    """Runs in children; a text for each one that ended in another way than by reaching its end.

    The step at which it ended is tried alone, then with ever more of the steps before it.
    """
    reports = []
    for seed in seeds:
        code, said = child(seed, steps)
        if not code:
            continue
        last = max([int(line.split()[1]) for line in said if line.startswith("step ")], default=0)
        for before in (0, 1, 4, 16, 64, last):
            only = range(max(0, last - before), last + 1)
            again, lines = child(seed, steps, only)
            if again:
                break
        else:
            only, again, lines = range(last + 1), code, said
        tail = "\n  ".join(lines[-40:])
        reports.append(f"seed {seed}, steps {only.start} to {only.stop - 1}: exit code {again}\n  {tail}")
    return reports


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), [int(n) for n in sys.argv[3:]] or None)
