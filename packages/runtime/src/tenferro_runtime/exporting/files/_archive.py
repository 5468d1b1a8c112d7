"""The file container: a zip of JSON and ``.npy`` whose comment ends with a hash of all preceding bytes.

The zip format has fields that readers ignore, so only the hash detects every changed byte.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np

from tenferro_runtime.exporting.files._encode import canonical, hash_elements, stored
from tenferro_runtime.exporting.files._errors import FileLimits, ProgramFileError
from tenferro_tensor import HOST, Spec, Tensor, tensor

SEAL: Final = b"tenferro program, sha256 "
_DIGEST: Final = 64
_STAMP: Final = (1980, 1, 1, 0, 0, 0)
"""The date of all members, so that equal programs make equal files."""


def write(path: Path, texts: dict[str, str], arrays: Sequence[np.ndarray[Any, Any]]) -> None:
    """Write a file atomically: readers see the old file or the new one."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in texts.items():
            archive.writestr(_member(name, zipfile.ZIP_DEFLATED), text)
        for i, array in enumerate(arrays):
            with archive.open(_member(constant_name(i), zipfile.ZIP_STORED), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, stored(array), version=(1, 0), allow_pickle=False)
        archive.comment = SEAL + b"0" * _DIGEST
    data = buffer.getvalue()[:-_DIGEST]
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, f"no folder {path.parent} to write a program into; make it first", path)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.write(hashlib.sha256(data).hexdigest().encode())
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _member(name: str, compression: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _STAMP)
    info.compress_type, info.create_system, info.external_attr = compression, 3, 0o600 << 16
    return info


def constant_name(index: int) -> str:
    """Name of the member that holds a constant."""
    return f"constants/{index}.npy"


class Archive:
    """An open program file with a valid hash.

    Raises:
        ProgramFileError: it is not a program file, or a byte has changed.
    """

    def __init__(self, file: BinaryIO, name: str, limits: FileLimits) -> None:
        self._name, self._limits, self._constants = name, limits, 0
        if not _sealed(file):
            raise ProgramFileError(
                f"{name} is not a program file, or it is damaged: its bytes do not have the hash at its end; "
                "save the program again, or fetch another copy",
                path=name,
            )
        self._zip = zipfile.ZipFile(file)

    def text(self, member: str) -> Any:
        """The parsed data of a JSON member, and its bytes."""
        # Nothing is unpacked beyond the size that the member states.
        if self._zip.getinfo(member).file_size > self._limits.text:
            raise ProgramFileError(
                f"{member} of {self._name} unpacks to more than {self._limits.text} bytes; if you trust the "
                "file, raise FileLimits.text",
                limit=self._limits.text,
            )
        with self._zip.open(member) as opened:
            data = opened.read()
        return json.loads(data, parse_float=_no_float, parse_constant=_no_float), data

    def constant(self, index: int, spec: Spec, digest: str) -> Tensor:
        """Read a constant, and check its spec and hash."""
        size = int(spec.size) * spec.dtype.itemsize  # type: ignore[arg-type]
        self._constants += size
        if self._constants > self._limits.constants:
            raise ProgramFileError(
                f"the constants of {self._name} are more than {self._limits.constants} bytes; if you trust the file, "
                "raise FileLimits.constants",
                limit=self._limits.constants,
            )
        with self._zip.open(constant_name(index)) as member:
            version = np.lib.format.read_magic(member)
            if version != (1, 0):
                raise ValueError(f"constant {index} has the .npy version {version}")
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(member)
            if (shape, fortran, dtype) != (spec.shape, False, stored(np.empty(0, spec.dtype)).dtype):
                raise ValueError(f"constant {index} is {dtype}{list(shape)}, but the program has {spec!r}")
            data = member.read(size + 1)
        if len(data) != size:
            raise ValueError(f"constant {index} does not have the length of its spec")
        array = np.frombuffer(data, spec.dtype).reshape(shape).copy()
        if hash_elements(array) != digest:
            raise ValueError(f"constant {index} does not have the hash in the program")
        if spec.place is not HOST:
            return tensor(array, device=spec.place.device)
        return Tensor.wrap(array if shape else array[()], spec)

    @staticmethod
    def digest(data: bytes) -> str:
        """SHA-256 of bytes, in hexadecimal."""
        return hashlib.sha256(data).hexdigest()


def content_hash(plain: Any) -> str:
    """SHA-256 of the canonical text of plain data."""
    return Archive.digest(canonical(plain).encode())


def _sealed(file: BinaryIO) -> bool:
    size = file.seek(0, os.SEEK_END)
    left = size - _DIGEST
    if left < len(SEAL):
        return False
    file.seek(left - len(SEAL))
    if file.read(len(SEAL)) != SEAL:
        return False
    stated = file.read(_DIGEST)
    file.seek(0)
    running = hashlib.sha256()
    while left:
        block = file.read(min(left, 2**20))
        if not block:
            return False
        running.update(block)
        left -= len(block)
    return running.hexdigest().encode() == stated


def _no_float(text: str) -> Any:
    raise ValueError(f"{text} is not a number of a program file")
