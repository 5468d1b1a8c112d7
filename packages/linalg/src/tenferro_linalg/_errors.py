"""Typed errors: derivatives that do not exist or depend on an arbitrary basis, and iterations that do not end."""

from tenferro_runtime.extension import GradientError, NumericalError


class GaugeError(GradientError):
    """The loss depends on a choice that the decomposition leaves open.

    Singular and eigenvectors are determined up to a phase, and those of equal values up to a rotation among
    themselves. The gradient of a loss that changes with that choice has no meaning. Use the vectors only in
    combinations that do not depend on it (projectors, absolute values, products like ``U @ diag(S) @ Vh``).
    """


class DegenerateError(GradientError):
    """Equal (or zero) values make the derivative undefined, or undeterminable from what the rule can see.

    Raised where the derivative exists only in some directions (the largest of two equal singular values), and where
    it may exist but the cotangents do not determine it (a loss that weights the vectors of equal eigenvalues). In the
    second case a transform, which has the function, takes the limit of derivatives beside the point instead.
    """


class DefectiveError(GradientError):
    """A matrix has, up to rounding, fewer eigenvectors than eigenvalues, and derivatives need all of them."""


class RankError(GradientError):
    """A factor is not differentiable where the matrix loses rank, and the loss uses it there."""


class ConvergenceError(NumericalError):
    """An iteration has not reached its tolerance.

    Raise `maxiter`, loosen the tolerance, give a preconditioner or a better start, or take the last iterate with
    ``throw=False``. A matrix that is singular, or not of the kind that the method needs (positive definite for `cg`,
    Hermitian for `minres`), is the other reason.
    """
