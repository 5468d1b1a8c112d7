"""The disk cache of this user's compiled kernels."""

import os
from functools import cache
from pathlib import Path

from tenferro_tensor._libraries import library
from tenferro_tensor.device_model._object_cache import ObjectCache

FOLDER = "TENFERRO_CACHE_DIR"
"""Environment variable that names the folder; the default is the system's cache folder of the user."""


def user_folder(kind: str) -> Path:
    """The folder of this user's compiled kernels for a kind of device; the variable `FOLDER` overrides it.

    Raises:
        ModuleNotFoundError: the variable is not set, and platformdirs is not installed.
    """
    chosen = os.environ.get(FOLDER)
    if chosen:
        return Path(chosen) / kind
    home = library("platformdirs").user_cache_dir("tenferro", appauthor=False)  # the extras with compilers bring it
    return Path(home) / kind


@cache
def user_cache(kind: str, part: str = "") -> ObjectCache | None:
    """The cache of compiled kernels of a kind of device on disk.

    Args:
        kind: kind of device.
        part: subfolder.

    Returns:
        The cache; None, with one line in the log, if nothing can be stored.
    """
    try:
        found = ObjectCache(user_folder(kind) / part)
        why = found.refused
    except ModuleNotFoundError:
        why = f"platformdirs, which knows the folder for it, is not installed (or name a folder in {FOLDER})"
    if why is None:
        return found
    import logging

    logging.getLogger("tenferro").warning(
        "compiled kernels are not kept on disk, so that every process compiles its own: %s", why
    )
    return None
