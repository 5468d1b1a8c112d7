"""Unitary similarity transformations: Schur and Hessenberg forms.

In reading order: `_rotations` (the equations that their derivatives solve), then `_schur` and `_hessenberg`.
"""
