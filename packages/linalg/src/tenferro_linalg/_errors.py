"""Typed errors: derivatives that do not exist or depend on an arbitrary basis, and iterations that do not converge."""

from tenferro_runtime.extension import GradientError, NumericalError


class GaugeError(GradientError):
    """The loss depends on a choice that the decomposition leaves open.

    Singular vectors and eigenvectors are determined up to a phase, and those of equal values up to a rotation among
    themselves. The gradient of a loss that changes with that choice is meaningless. Use the vectors only in
    combinations that do not depend on it (projectors, absolute values, products like ``U @ diag(S) @ Vh``).
    """


class DegenerateError(GradientError):
    """Equal (or zero) values make the derivative undefined, or leave it undetermined by the operands of the rule.

    Raised where the derivative exists only in some directions (the largest of two equal singular values), and where
    it may exist but the cotangents do not determine it (a loss that weights the vectors of equal eigenvalues). In the
    second case a transform, which has the function, computes the limit of derivatives at nearby points instead.
    """


class DefectiveError(GradientError):
    """A matrix has, up to rounding, too few eigenvectors; derivatives require a complete basis."""


class RankError(GradientError):
    """The loss uses a factor that is not differentiable because the matrix loses rank."""


class ConvergenceError(NumericalError):
    """An iteration has not reached its tolerance.

    Raise `maxiter`, loosen the tolerance, provide a preconditioner or a better initial guess, or use ``throw=False`` to
    obtain the last iterate. Another possible cause is a matrix that is singular or not of the kind that the method
    requires (positive definite for `cg`, Hermitian for `minres`).
    """
