"""Program files: a documented, versioned format that holds data and no code."""

from tenferro_runtime.exporting.files._errors import FileLimits, ProgramFileError
from tenferro_runtime.exporting.files._function import SavedFunction
from tenferro_runtime.exporting.files._save import hash_of, load, save
from tenferro_runtime.exporting.files._trees import decode_tree, encode_tree

__all__ = ["FileLimits", "ProgramFileError", "SavedFunction", "decode_tree", "encode_tree", "hash_of", "load", "save"]


def __dir__() -> list[str]:
    return __all__.copy()
