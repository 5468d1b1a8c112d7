"""Which files may be loaded as machine code: those that nobody but this user and root could have written.

A file is trusted only if it is regular, belongs to this user or root, and is not writable by anybody else. The same
holds for the owner and mode of every folder on its path, or somebody could replace the file. A folder like ``/tmp``,
whose sticky bit protects the entries of each user, may be on the path, but may not hold the files itself.
"""

import os
import stat
from pathlib import Path

POSIX = os.name == "posix"
"""On other systems, the folders of a user are private by default, and modes carry no information."""

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_OPEN = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""Does not follow links and does not block on pipes."""


def distrust(folder: Path) -> str | None:
    """Why files in `folder`, an absolute path without links, may not be loaded; None if they may."""
    if not POSIX:
        return None
    try:
        for part in (folder, *folder.parents):
            seen = os.lstat(part)
            if not stat.S_ISDIR(seen.st_mode):
                return f"{part} is not a folder"
            if seen.st_uid not in _owners():
                return f"{part} belongs to another user (uid {seen.st_uid})"
            shared = seen.st_mode & _OTHERS_WRITE
            if shared and not (seen.st_mode & stat.S_ISVTX and part != folder):
                return f"others may write to {part} (mode {stat.S_IMODE(seen.st_mode):04o}; chmod go-w mends it)"
    except OSError as reason:
        return f"{folder} cannot be examined: {reason.strerror}"
    return None


def private_folder(folder: Path) -> Path:
    """Create `folder` and its missing parents, for this user only, and return its path without links.

    Raises:
        OSError: it cannot be created.
    """
    folder = folder.absolute()
    for part in reversed((folder, *folder.parents)):
        if not part.exists():
            part.mkdir(mode=0o700, exist_ok=True)
    return folder.resolve(strict=True)


def trusted_bytes(path: Path) -> bytes | None:
    """Contents of a trusted file, whose access time is updated; None if there is none. The caller checks its folder."""
    try:
        with open(os.open(path, _OPEN), "rb") as file:
            seen = os.fstat(file.fileno())
            if POSIX and not (
                stat.S_ISREG(seen.st_mode) and seen.st_uid in _owners() and not seen.st_mode & _OTHERS_WRITE
            ):
                return None
            data = file.read()
    except OSError:
        return None
    try:
        os.utime(path)
    except OSError:
        pass  # root's file, or deleted meanwhile; its age does not matter
    return data


def _owners() -> tuple[int, int]:
    return os.geteuid(), 0
