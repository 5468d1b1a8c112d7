"""The code of programs, imported as a whole and in one order.

Its modules import each other across packages. Threads that use it for the first time at once would meet halfway if each
began at another module; so whatever needs a part of it imports this module first, for which the others wait.
"""

from tenferro_runtime import (  # noqa: F401
    batching,
    callbacks,
    compiling,
    control_flow,
    costs,
    equations,
    ir,
    passes,
    running,
    runtime,
    tracing,
)
from tenferro_runtime.lowering import native, rolling  # noqa: F401
from tenferro_runtime.running import fusion, rendering  # noqa: F401
from tenferro_runtime.tracing import effects, elementwise, expanding  # noqa: F401
