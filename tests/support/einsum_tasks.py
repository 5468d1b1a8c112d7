"""Tasks that fail, for the tests of contractions on workers; other processes import them from here."""

import os
from pathlib import Path
from typing import Any

from tenferro_einsum._jobs import Job, work


def dying_once(mark: str, job: Job, numbers: Any, arrays: Any) -> Any:
    """End the process the first time that the task with slice 0 runs."""
    if 0 in numbers and not Path(mark).exists():
        Path(mark).write_text("died")
        os._exit(1)
    return work(job, numbers, arrays)


def failing(job: Job, numbers: Any, arrays: Any) -> Any:
    """Fail as often as it is called."""
    raise OSError("the disk is full")
