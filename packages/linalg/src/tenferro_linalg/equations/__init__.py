"""Matrix equations: Sylvester, Lyapunov and Riccati.

In reading order: `_schur_factors` for the factors that a solution shares with its derivatives, `_sylvester` and
`_stein` for the two linear equations, which are closed under differentiation, `_riccati` for the quadratic ones, whose
derivatives solve linear ones.
"""
