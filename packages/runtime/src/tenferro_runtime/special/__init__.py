"""Special functions, under the names of ``scipy.special`` and ``jax.scipy.special``.

All have derivatives of every order with respect to every real parameter, unless their documentation says otherwise.
SciPy computes most values; the extra ``tenferro-runtime[special]`` installs it.
"""

# ruff: noqa: F403 - the modules' `__all__` lists the names

from typing import TYPE_CHECKING, Final

from tenferro_tensor_core.deferred import deferred

if TYPE_CHECKING:
    from tenferro_runtime.special._airy import *
    from tenferro_runtime.special._bessel import *
    from tenferro_runtime.special._bessel_integer import *
    from tenferro_runtime.special._bessel_slopes import *
    from tenferro_runtime.special._bessel_spherical import *
    from tenferro_runtime.special._beta import *
    from tenferro_runtime.special._carlson import *
    from tenferro_runtime.special._digamma import *
    from tenferro_runtime.special._distributions import *
    from tenferro_runtime.special._elementary import *
    from tenferro_runtime.special._elliptic import *
    from tenferro_runtime.special._error_functions import *
    from tenferro_runtime.special._exponential_integrals import *
    from tenferro_runtime.special._gamma import *
    from tenferro_runtime.special._hypergeometric import *
    from tenferro_runtime.special._incomplete_beta import *
    from tenferro_runtime.special._incomplete_gamma import *
    from tenferro_runtime.special._information import *
    from tenferro_runtime.special._lambert import *
    from tenferro_runtime.special._legendre import *
    from tenferro_runtime.special._logistic import *
    from tenferro_runtime.special._normal import *
    from tenferro_runtime.special._owens import *
    from tenferro_runtime.special._polynomials import *
    from tenferro_runtime.special._polynomials_scaled import *
    from tenferro_runtime.special._removable import *
    from tenferro_runtime.special._struve import *
    from tenferro_runtime.special._student import *
    from tenferro_runtime.special._zeta import *

NAMES: Final = {
    "_airy": "AiryResult airy airye",
    "_bessel": "hankel1 hankel2 iv ive jn jv kv kve yv",
    "_bessel_integer": "bessel_jn i0 i0e i1 i1e j0 j1 k0 k0e k1 k1e kn y0 y1 yn",
    "_bessel_slopes": "h1vp h2vp ivp jvp kvp yvp",
    "_bessel_spherical": "spherical_in spherical_jn spherical_kn spherical_yn",
    "_beta": "beta betaln binom comb",
    "_carlson": "elliprc elliprd elliprf elliprg elliprj",
    "_digamma": "digamma polygamma psi",
    "_distributions": "bdtri fdtri nbdtri pdtri perm voigt_profile",
    "_elementary": "boxcox boxcox1p cbrt cosm1 exp10 exp2 expm1 inv_boxcox inv_boxcox1p log1p powm1",
    "_elliptic": "EllipjResult ellipe ellipeinc ellipj ellipk ellipkinc ellipkm1",
    "_error_functions": "FresnelResult dawsn erf erfc erfcinv erfcx erfi erfinv fresnel wofz",
    "_exponential_integrals": "ShichiResult SiciResult exp1 expi expn shichi sici spence",
    "_gamma": "bernoulli factorial gamma gammaln gammasgn loggamma multigammaln poch rgamma",
    "_hypergeometric": "hyp0f1 hyp1f1 hyp2f1 hyperu",
    "_incomplete_beta": "bdtr bdtrc betainc betaincc betainccinv betaincinv fdtr fdtrc nbdtr nbdtrc",
    "_incomplete_gamma": ("chdtr chdtrc chdtri gammainc gammaincc gammainccinv gammaincinv gdtr gdtrc pdtr pdtrc"),
    "_information": "entr huber kl_div pseudo_huber rel_entr xlog1py xlogy",
    "_lambert": "lambertw wrightomega",
    "_legendre": "lpmv sph_harm_y sph_legendre_p",
    "_logistic": "expit log_expit log_softmax logaddexp logit logsumexp softmax softplus",
    "_normal": "log_ndtr ndtr ndtri ndtri_exp",
    "_owens": "owens_t",
    "_polynomials": (
        "eval_chebyt eval_chebyu eval_gegenbauer eval_genlaguerre "
        "eval_hermite eval_hermitenorm eval_jacobi eval_laguerre eval_legendre"
    ),
    "_polynomials_scaled": "eval_chebyc eval_chebys eval_sh_chebyt eval_sh_chebyu eval_sh_legendre",
    "_removable": "exprel sinc",
    "_struve": "bei beip ber berp kei keip ker kerp modstruve struve",
    "_student": "stdtr stdtrit",
    "_zeta": "zeta",
}
"""The modules, and the names that they export."""

if not TYPE_CHECKING:  # for type checkers, which follow star imports
    __getattr__ = deferred(__name__, NAMES)
    __all__ = sorted(" ".join(NAMES.values()).split())
    __dir__ = __all__.copy
