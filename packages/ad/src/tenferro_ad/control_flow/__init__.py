"""Derivatives of `cond`, `while_loop` and `scan`, in both modes.

Their metadata are programs, so their derivatives are branches and loops over derivatives of programs, which nest and
can be differentiated again.
"""

from tenferro_ad.control_flow import _budgets, _cond, _scan, _while  # noqa: F401 - imported to register rules
