"""`ObjectCache`: compiled objects on disk, shared by the processes of one user.

An entry is loaded as machine code, so it is valid only if `_trust` confirms that nobody else could have written it, and
if its key and checksum match. Any other file counts as absent and is replaced.
"""

import contextlib
import hashlib
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from tenferro_tensor.device_model._trust import distrust, private_folder, trusted_bytes
from tenferro_tensor_core.forks import importing

MAX_BYTES = 256 << 20
"""Default bound of the folder in bytes; the least recently used entries are deleted first."""

LOCK_TIMEOUT_SECONDS = 10.0
"""Seconds to wait for another process that compiles the same kernel; after that, both compile it."""

PRUNE_INTERVAL_SECONDS = 86400.0
"""Seconds after a pruning during which a new process checks the folder's size only once it has written much itself."""

_PRUNED = "pruned"
_MAGIC = b"tenferro-object-1"
_STRIPES = 64
_KEY = re.compile(r"[\w-]+")  # a file name without a path


class ObjectCache:
    """Bytes by key in one folder: atomic writes, verified reads, bounded size, one writer per key.

    Args:
        folder: the folder.
        bound: largest total size in bytes.

    >>> import tempfile
    >>> cache = ObjectCache(Path(tempfile.mkdtemp()) / "objects")
    >>> cache.put("ab12", b"code")
    >>> cache.get("ab12"), cache.get("ff00")
    (b'code', None)
    """

    def __init__(self, folder: Path, bound: int = MAX_BYTES) -> None:
        self.folder: Path = folder
        self.bound: int = bound
        self.refused: str | None = None
        """Why the cache is disabled, or None."""
        self._written: int | None = None
        try:
            self.folder = private_folder(folder)
        except OSError as reason:
            self.refused = f"{folder} cannot be made: {reason.strerror}"
        else:
            self.refused = distrust(self.folder)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.obj"

    def get(self, key: str) -> bytes | None:
        """Read an entry.

        Args:
            key: the key.

        Returns:
            The bytes; None if there are none, they are damaged, or others could have written them.
        """
        if self.refused is not None or not _KEY.fullmatch(key) or distrust(self.folder) is not None:
            return None
        data = trusted_bytes(self._path(key))
        if data is None:
            return None
        payload = data[len(self._entry(key, b"")) :]
        return payload if data == self._entry(key, payload) else None

    def has(self, key: str) -> bool:
        """Whether there is an entry, which `get` may still reject.

        Args:
            key: the key.

        Returns:
            True if there is a file.
        """
        return self.refused is None and self._path(key).exists()

    @staticmethod
    def _entry(key: str, payload: bytes) -> bytes:
        """The contents of a file: a magic text, the key, a checksum of key and payload, the payload."""
        checksum = hashlib.sha256(key.encode() + payload).hexdigest()
        return b"\n".join((_MAGIC, key.encode(), checksum.encode(), payload))

    def put(self, key: str, payload: bytes) -> None:
        """Write an entry; on a full disk or in a read-only folder nothing is written.

        Args:
            key: the key.
            payload: the bytes.
        """
        if self.refused is not None:
            return
        try:
            with importing():
                import tempfile
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
        if self._written is None:  # first write of this process; a large folder is slow to scan
            self._written = self.bound if self._is_due() else 0
        self._written += len(payload)
        if self._written >= self.bound // 8:
            self._written = 0
            with contextlib.suppress(OSError):
                self.prune()

    def _is_due(self) -> bool:
        try:
            return (self.folder / _PRUNED).stat().st_mtime < time.time() - PRUNE_INTERVAL_SECONDS
        except OSError:
            return True

    def prune(self) -> None:
        """Delete the least recently used entries until the bound holds, and files of crashed writers."""
        entries = []
        with contextlib.suppress(OSError):
            (self.folder / _PRUNED).touch()
        for path in self.folder.iterdir():
            with contextlib.suppress(OSError):
                seen = path.lstat()
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
        if self.refused is None:
            for path in self.folder.glob("*.obj"):
                with contextlib.suppress(OSError):
                    path.unlink()

    @contextlib.contextmanager
    def writing(self, key: str) -> Iterator[None]:
        """Lock a key against other processes that would create the same entry; gives up after `LOCK_TIMEOUT_SECONDS`.

        Args:
            key: the key.

        Returns:
            A context manager.
        """
        if self.refused is not None:
            yield
            return
        stripe = int(hashlib.sha256(key.encode()).hexdigest()[:4], 16) % _STRIPES
        try:
            file = open(os.open(self.folder / f"{stripe:02}.lock", os.O_RDWR | os.O_CREAT, 0o600), "ab")
        except OSError:
            yield
            return
        with file:
            deadline = time.monotonic() + LOCK_TIMEOUT_SECONDS
            while not _lock(file) and time.monotonic() < deadline:
                time.sleep(0.002)
            yield  # closing the file releases the lock, and so does a crash


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
