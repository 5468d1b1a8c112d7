"""`ObjectCache`: compiled objects on disk, shared by the processes of one user.

An entry is loaded as machine code, so it is trusted only in a folder that nobody else can write to, and only if its
own key and checksum agree. Anything else counts as absent and is replaced.
"""

import contextlib
import hashlib
import os
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from tenferro_tensor._libraries import library

BOUND = 256 << 20
"""Bytes that the folder may hold; the entries used longest ago go first."""

PATIENCE = 10.0
"""Seconds to wait for another process that compiles the same kernel; then both do."""

REST = 86400.0
"""Seconds for which new processes do not look at the size of the folder until they have written much themselves."""

_PRUNED = "pruned"
_MAGIC = b"tenferro-object-1"
_STRIPES = 64


def user_folder(kind: str) -> Path:
    """Where this user's compiled kernels for a kind of device are kept; ``TENFERRO_CACHE_DIR`` names another place."""
    chosen = os.environ.get("TENFERRO_CACHE_DIR")
    if chosen:
        return Path(chosen) / kind
    home = library("platformdirs").user_cache_dir("tenferro", appauthor=False)  # comes with extras, as compilers do
    return Path(home) / kind


class ObjectCache:
    """Bytes by key in one folder: atomic writes, checked reads, bounded size, one writer per key.

    >>> import tempfile
    >>> cache = ObjectCache(Path(tempfile.mkdtemp()) / "objects")
    >>> cache.put("ab12", b"code")
    >>> cache.get("ab12"), cache.get("ff00")
    (b'code', None)
    """

    def __init__(self, folder: Path, bound: int = BOUND) -> None:
        self.folder, self.bound = folder, bound
        self.usable = self._prepare()
        self._written: int | None = None

    def _prepare(self) -> bool:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if os.name != "posix":
                return True  # per-user folders are private there
            seen = self.folder.stat()
            mine = seen.st_uid == os.geteuid()
            return mine and not stat.S_IMODE(seen.st_mode) & 0o022 and os.access(self.folder, os.W_OK)
        except OSError:
            return False

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.obj"

    def get(self, key: str) -> bytes | None:
        """The bytes stored under `key`; None where there are none or they are damaged or another's."""
        if not self.usable:
            return None
        path = self._path(key)
        try:
            data = path.read_bytes()
            os.utime(path)  # age is time since last use
        except OSError:
            return None
        payload = data[len(self._entry(key, b"")) :]
        return payload if data == self._entry(key, payload) else None

    def has(self, key: str) -> bool:
        """Whether something is stored under `key`; what it is worth, `get` will tell."""
        return self.usable and self._path(key).exists()

    @staticmethod
    def _entry(key: str, payload: bytes) -> bytes:
        """What a file holds: a mark, the key, a checksum of both key and payload, the payload."""
        checksum = hashlib.sha256(key.encode() + payload).hexdigest()
        return b"\n".join((_MAGIC, key.encode(), checksum.encode(), payload))

    def put(self, key: str, payload: bytes) -> None:
        """Store `payload`; a full disk or a folder gone read-only costs the entry, never the program."""
        if not self.usable:
            return
        try:
            handle, name = tempfile.mkstemp(dir=self.folder, suffix=".new")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(self._entry(key, payload))
                os.replace(name, self._path(key))
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(name)
                raise
        except OSError:
            return
        if self._written is None:  # the first write of a process: looking at a large folder takes long
            self._written = self.bound if self._is_due() else 0
        self._written += len(payload)
        if self._written >= self.bound // 8:
            self._written = 0
            with contextlib.suppress(OSError):
                self.prune()

    def _is_due(self) -> bool:
        try:
            return (self.folder / _PRUNED).stat().st_mtime < time.time() - REST
        except OSError:
            return True

    def prune(self) -> None:
        """Delete the entries used longest ago until the folder keeps its bound, and what dead writers left."""
        entries = []
        with contextlib.suppress(OSError):
            (self.folder / _PRUNED).touch()
        for path in self.folder.iterdir():
            with contextlib.suppress(OSError):
                seen = path.stat()
                if path.suffix == ".new" and seen.st_mtime < time.time() - 3600:
                    path.unlink()
                elif path.suffix == ".obj":
                    entries.append((seen.st_mtime, seen.st_size, path))
        excess = sum(size for _, size, _ in entries) - self.bound
        for _, size, path in sorted(entries):
            if excess <= 0:
                break
            with contextlib.suppress(OSError):
                path.unlink()
                excess -= size

    def clear(self) -> None:
        """Delete every entry."""
        if self.usable:
            for path in self.folder.glob("*.obj"):
                with contextlib.suppress(OSError):
                    path.unlink()

    @contextlib.contextmanager
    def writing(self, key: str) -> Iterator[None]:
        """Hold off other processes that would make the same entry; gives up after `PATIENCE` seconds."""
        if not self.usable:
            yield
            return
        stripe = int(hashlib.sha256(key.encode()).hexdigest()[:4], 16) % _STRIPES
        try:
            file = open(self.folder / f"{stripe:02}.lock", "ab")
        except OSError:
            yield
            return
        with file:
            deadline = time.monotonic() + PATIENCE
            while not _lock(file) and time.monotonic() < deadline:
                time.sleep(0.002)
            yield  # closing the file frees the lock, a crash too


def _lock(file: IO[bytes]) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
