"""Derivatives of branches and loops: how `cond`, `while_loop` and `scan` are recorded and pushed.

Their metadata are programs, so their derivatives are made of derivatives of programs, and are branches and loops again:
they nest, and are differentiated, like everything else.
"""

from tenferro_ad.control_flow import _budgets, _cond, _scan, _while  # noqa: F401 - they register themselves
