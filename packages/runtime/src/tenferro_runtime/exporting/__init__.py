"""Libraries for use without Python: `_export` writes a header, an object file and a shared library; `_header` is the
text of the header, `_description` the embedded description of a library, and `_library` loads one."""

from tenferro_runtime.exporting._export import export_library
from tenferro_runtime.exporting._library import LibraryFunction, load_library

__all__ = ["LibraryFunction", "export_library", "load_library"]


def __dir__() -> list[str]:
    return __all__.copy()
