"""Unitary similarity transformations: Schur and Hessenberg forms.

In reading order: `_rotations` for what their derivatives solve, then `_schur` and `_hessenberg`.
"""
