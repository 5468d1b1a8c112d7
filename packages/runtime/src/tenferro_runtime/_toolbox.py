"""Fills the methods of programs with what stands above programs."""

from __future__ import annotations

from tenferro_runtime import executing as executing  # says how programs on several devices run
from tenferro_runtime import files, inspection
from tenferro_runtime.ir._tools import Tooled


class Tools:
    """See `Tooled`."""

    save = staticmethod(files.save)
    hash_of = staticmethod(files.hash_of)
    explain = staticmethod(inspection.explain)
    profile = staticmethod(inspection.profile)
    draw = staticmethod(inspection.draw)
    find_nan = staticmethod(inspection.find_nan)


Tooled.tools = Tools()
