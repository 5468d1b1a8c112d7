"""Checkpoints of sharded arrays: written part by part, and restored on any mesh."""

from tenferro_xla.checkpoints._checkpoint import Checkpoint
from tenferro_xla.checkpoints._index import CheckpointError
from tenferro_xla.checkpoints._load import load_sharded
from tenferro_xla.checkpoints._save import save_sharded

__all__ = ["Checkpoint", "CheckpointError", "load_sharded", "save_sharded"]


def __dir__() -> list[str]:
    return __all__.copy()
