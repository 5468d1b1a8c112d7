"""Lines of the user's code, ``folder/file.py:12``, as reports show them."""

from linecache import getline
from pathlib import PurePath


def brief(line: str) -> str:
    """A source line without the folder of its file."""
    return PurePath(line).name or "unknown"


def code_at(line: str) -> str:
    """The text of a source line; empty if the file does not exist."""
    path, _, number = line.rpartition(":")
    return getline(path, int(number)).strip() if number.isdigit() else ""
