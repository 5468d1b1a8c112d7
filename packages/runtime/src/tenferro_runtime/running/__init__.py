"""Programs on values: rendered for concrete ones, replayed op by op for others."""

from tenferro_runtime.running._execute import call_kernel, run

__all__ = ["call_kernel", "run"]
