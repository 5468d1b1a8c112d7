"""Derivatives of `cond`, `while_loop` and `scan`, in both modes.

Their metadata are programs, so their derivatives are branches and loops over derivatives of programs, which nest and
can be differentiated again. Reverse mode stacks the residuals of all steps (`_stacking`), or keeps states according to
a schedule and recomputes the steps between them (`_recomputing`).
"""

from tenferro_ad.control_flow import _cond, _rules  # noqa: F401 - imported to register rules
