"""Programs as files: a documented, versioned format of data without code."""

from tenferro_runtime.files._errors import FileLimits, ProgramFileError
from tenferro_runtime.files._function import SavedFunction
from tenferro_runtime.files._save import hash_of, load, save

__all__ = ["FileLimits", "ProgramFileError", "SavedFunction", "hash_of", "load", "save"]
