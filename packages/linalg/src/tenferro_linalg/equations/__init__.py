"""Matrix equations: Sylvester, Lyapunov and Riccati.

In reading order: `_schur_factors` (factors shared by a solution and its derivatives), `_sylvester` and `_stein` (the
two linear equations, closed under differentiation), `_riccati` (the quadratic ones, whose derivatives solve linear
ones).
"""
