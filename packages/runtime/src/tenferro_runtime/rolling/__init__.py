"""Loops that Python has written out, found in recorded programs and recorded as loops.

`_periods` finds stretches of equations that repeat, `_flow` says whether values go through them as through a loop,
`_rows` knows which values are slices of one array, `_body` writes the body of the loop and `_moving` what is somewhere
else in each iteration, `_loop` writes the loop around it, and `_roll` finds and writes all loops of a program.
"""

from tenferro_runtime.rolling._roll import is_rolled, roll

__all__ = ["is_rolled", "roll"]
