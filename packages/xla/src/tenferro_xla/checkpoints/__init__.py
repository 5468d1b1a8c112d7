"""Checkpoints of arrays that are split over meshes: written part by part, restored on any other mesh."""

from tenferro_xla.checkpoints._checkpoint import Checkpoint
from tenferro_xla.checkpoints._index import CheckpointError
from tenferro_xla.checkpoints._load import load_sharded
from tenferro_xla.checkpoints._save import save_sharded

__all__ = ["Checkpoint", "CheckpointError", "load_sharded", "save_sharded"]
