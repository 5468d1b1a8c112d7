"""Effects: steps that do something besides computing, and where they take place."""

from tenferro_runtime.effects._recording import Attempt, ambient, apply_here, run_or_record

__all__ = ["Attempt", "ambient", "apply_here", "run_or_record"]
