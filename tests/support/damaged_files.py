"""Damages program files: bytes as a disk or a network does, and descriptions as a dishonest writer does."""

import copy
import hashlib
import io
import json
import random
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tenferro_runtime.exporting.files import _archive

Path = tuple[Any, ...]
JUNK: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 7, 40, 64, 65, 1000, 2**31, 2**63, 2**70, -(2**70), "", "x", "*", "list",
    "tuple", "dict", "none", "float64", "bool", "object", "cpu:0", "host", "add", "call", "0x1.8p+1", "nan", "inf",
    "==", "os:path", [], [0], [1, 2], [[0]], {}, {"float": "nan"}, {"dim": 0}, {"program": 0}, {"spec": 0},
    {"set": [1, 1]}, {"slice": [0, 1]}, {"float": "0x"}, {"dtype": "O"}, {"dtype": 3}, {"complex": ["1", "2", "3"]},
    {"what": 1},
)  # fmt: skip


class Damage:
    """One damaged copy of a file.

    Attributes:
        data: its bytes.
        what: what was done to it.
        sealed: whether the writer made it on purpose, with the right hash at its end.
    """

    def __init__(self, data: bytes, seed: int) -> None:
        self.rng = random.Random(seed)
        kinds: list[Callable[[bytes], bytes]] = [self._bytes, self._resealed, self._constants, *[self._texts] * 6]
        kind = self.rng.choice(kinds)
        self.sealed = kind != self._bytes
        self.notes: list[str] = []
        self.data = kind(data)

    @property
    def what(self) -> str:
        return "; ".join(self.notes)

    def _bytes(self, data: bytes) -> bytes:
        rng, at = self.rng, self.rng.randrange(len(data))
        size = rng.choice([1, 2, 8, 64, 1000])
        made = {
            "flip": lambda: data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :],
            "cut": lambda: data[:at],
            "cut in front": lambda: data[at:],
            "drop": lambda: data[:at] + data[at + size :],
            "double": lambda: data[: at + size] + data[at:],
            "zero": lambda: data[:at] + bytes(len(data[at : at + size])) + data[at + size :],
            "noise": lambda: data[:at] + rng.randbytes(size) + data[at + size :],
            "append": lambda: data + rng.randbytes(size),
        }
        name = rng.choice(list(made))
        self.notes.append(f"{name} {size} at {at} of {len(data)}")
        return made[name]()

    def _resealed(self, data: bytes) -> bytes:
        """Damage inside of the container, and the hash of what is left."""
        inner = self._bytes(data[:-64])
        return inner + hashlib.sha256(inner).hexdigest().encode()

    def _constants(self, data: bytes) -> bytes:
        texts, members = _members(data)
        names = [n for n in members if n.startswith("constants/")]
        if not names:
            return self._texts(data)
        name = self.rng.choice(names)
        array = np.load(io.BytesIO(members[name]))
        made: dict[str, Callable[[], Any]] = {
            "other numbers": lambda: array + np.asarray(1).astype(array.dtype),
            "other shape": lambda: array[None],
            "less": lambda: array.reshape(-1)[:-1],
            "other dtype": lambda: array.astype("int8"),
            "column-major": lambda: np.asfortranarray(np.ones((2, 3))),
            "big-endian": lambda: array.astype(array.dtype.newbyteorder(">")),
            "no constant": lambda: None,
        }
        what = self.rng.choice(list(made))
        self.notes.append(f"{name}: {what}")
        buffer = io.BytesIO()
        changed = made[what]()
        if changed is not None:
            np.save(buffer, changed)
        members[name] = buffer.getvalue() if changed is not None else self._bytes(members[name])
        return _sealed(texts, members)

    def _texts(self, data: bytes) -> bytes:
        texts, members = _members(data)
        for _ in range(self.rng.choice([1, 1, 1, 2, 5])):
            self._change(texts)
        return _sealed(texts, members)

    def _change(self, whole: dict[str, Any]) -> None:
        rng = self.rng
        paths = [p for p in places(whole) if len(p) > 1]
        focus = rng.choice(["function", "tables", "program.json", "about.json", None])
        path = rng.choice([p for p in paths if focus in p] or paths)
        *outer, last = path
        target = whole
        for key in outer:
            target = target[key]
        made: dict[str, Callable[[], None]] = {
            "junk": lambda: target.__setitem__(last, copy.deepcopy(rng.choice(JUNK))),
            "graft": lambda: target.__setitem__(last, copy.deepcopy(_at(whole, rng.choice(paths)))),
            "delete": lambda: target.__delitem__(last),
            "wrap": lambda: target.__setitem__(last, [target[last]]),
            "deep": lambda: target.__setitem__(last, _deep(rng.choice([3, 70, 300]), target[last])),
            "add": lambda: target.insert(last, copy.deepcopy(rng.choice(JUNK))) if isinstance(target, list) else None,
            "double": lambda: target.insert(last, copy.deepcopy(target[last])) if isinstance(target, list) else None,
            "swap": lambda: target.reverse() if isinstance(target, list) else None,
            "number": lambda: target.__setitem__(last, _near(target[last], rng)),
            "text": lambda: target.__setitem__(last, f"{target[last]}{rng.choice(['', 'x', chr(0), 'é', ':'])}"),
            "rename": lambda: (
                target.__setitem__(str(rng.choice(JUNK)), target[last]) if isinstance(target, dict) else None
            ),
        }
        what = rng.choice(list(made))
        self.notes.append(f"{what} at {path}")
        made[what]()


def places(data: Any, path: Path = ()) -> Iterator[Path]:
    """Paths of all values in plain data."""
    yield path
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield from places(value, (*path, key))


def _at(data: Any, path: Path) -> Any:
    for key in path:
        data = data[key]
    return data


def _near(value: Any, rng: random.Random) -> Any:
    return value + rng.choice([-1, 1, 2, -value]) if isinstance(value, int) else rng.randrange(-2, 9)


def _deep(depth: int, value: Any) -> Any:
    for _ in range(depth):
        value = [value]
    return value


def _members(data: bytes) -> tuple[dict[str, Any], dict[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {n: archive.read(n) for n in archive.namelist()}
    return {n: json.loads(members.pop(n)) for n in list(members) if n.endswith(".json")}, members


def _sealed(texts: dict[str, Any], members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, plain in texts.items():
            archive.writestr(name, json.dumps(plain, sort_keys=True, separators=(",", ":")))
        for name, content in members.items():
            archive.writestr(name, content)
        archive.comment = _archive.SEAL + b"0" * 64
    inner = buffer.getvalue()[:-64]
    return inner + hashlib.sha256(inner).hexdigest().encode()
