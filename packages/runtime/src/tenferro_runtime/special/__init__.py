"""Special functions, under the names of ``scipy.special`` and ``jax.scipy.special``.

All have derivatives of every order by every real parameter, unless their documentation says otherwise. Most values
are computed by SciPy, which the extra ``tenferro-runtime[special]`` brings.
"""

from typing import TYPE_CHECKING

from tenferro_tensor_core.deferred import deferred

if TYPE_CHECKING:
    from tenferro_runtime.special._airy import (
        AiryResult,
        airy,
        airye,
    )
    from tenferro_runtime.special._bessel import (
        hankel1,
        hankel2,
        iv,
        ive,
        jn,
        jv,
        kv,
        kve,
        yv,
    )
    from tenferro_runtime.special._bessel_integer import (
        bessel_jn,
        i0,
        i0e,
        i1,
        i1e,
        j0,
        j1,
        k0,
        k0e,
        k1,
        k1e,
        kn,
        y0,
        y1,
        yn,
    )
    from tenferro_runtime.special._bessel_spherical import (
        spherical_in,
        spherical_jn,
        spherical_kn,
        spherical_yn,
    )
    from tenferro_runtime.special._carlson import (
        elliprc,
        elliprd,
        elliprf,
        elliprg,
        elliprj,
    )
    from tenferro_runtime.special._elliptic import (
        EllipjResult,
        ellipe,
        ellipeinc,
        ellipj,
        ellipk,
        ellipkinc,
        ellipkm1,
    )
    from tenferro_runtime.special._gamma import (
        digamma,
        gamma,
        psi,
    )
    from tenferro_runtime.special._hypergeometric import (
        hyp0f1,
        hyp1f1,
        hyp2f1,
        hyperu,
    )
    from tenferro_runtime.special._lambert import (
        lambertw,
        wrightomega,
    )
    from tenferro_runtime.special._legendre import (
        lpmv,
        sph_harm_y,
        sph_legendre_p,
    )
    from tenferro_runtime.special._owens import (
        owens_t,
    )
    from tenferro_runtime.special._polynomials import (
        eval_chebyt,
        eval_chebyu,
        eval_gegenbauer,
        eval_genlaguerre,
        eval_hermite,
        eval_hermitenorm,
        eval_jacobi,
        eval_laguerre,
        eval_legendre,
    )
    from tenferro_runtime.special._struve import (
        bei,
        beip,
        ber,
        berp,
        kei,
        keip,
        ker,
        kerp,
        modstruve,
        struve,
    )

__all__ = [
    "AiryResult",
    "EllipjResult",
    "airy",
    "airye",
    "bei",
    "beip",
    "ber",
    "berp",
    "bessel_jn",
    "digamma",
    "ellipe",
    "ellipeinc",
    "ellipj",
    "ellipk",
    "ellipkinc",
    "ellipkm1",
    "elliprc",
    "elliprd",
    "elliprf",
    "elliprg",
    "elliprj",
    "eval_chebyt",
    "eval_chebyu",
    "eval_gegenbauer",
    "eval_genlaguerre",
    "eval_hermite",
    "eval_hermitenorm",
    "eval_jacobi",
    "eval_laguerre",
    "eval_legendre",
    "gamma",
    "hankel1",
    "hankel2",
    "hyp0f1",
    "hyp1f1",
    "hyp2f1",
    "hyperu",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "iv",
    "ive",
    "j0",
    "j1",
    "jn",
    "jv",
    "k0",
    "k0e",
    "k1",
    "k1e",
    "kei",
    "keip",
    "ker",
    "kerp",
    "kn",
    "kv",
    "kve",
    "lambertw",
    "lpmv",
    "modstruve",
    "owens_t",
    "psi",
    "sph_harm_y",
    "sph_legendre_p",
    "spherical_in",
    "spherical_jn",
    "spherical_kn",
    "spherical_yn",
    "struve",
    "wrightomega",
    "y0",
    "y1",
    "yn",
    "yv",
]

if not TYPE_CHECKING:
    __getattr__ = deferred(
        __name__,
        {
            "_airy": "AiryResult airy airye",
            "_bessel": "hankel1 hankel2 iv ive jn jv kv kve yv",
            "_bessel_integer": "bessel_jn i0 i0e i1 i1e j0 j1 k0 k0e k1 k1e kn y0 y1 yn",
            "_bessel_spherical": "spherical_in spherical_jn spherical_kn spherical_yn",
            "_carlson": "elliprc elliprd elliprf elliprg elliprj",
            "_elliptic": "EllipjResult ellipe ellipeinc ellipj ellipk ellipkinc ellipkm1",
            "_gamma": "digamma gamma psi",
            "_hypergeometric": "hyp0f1 hyp1f1 hyp2f1 hyperu",
            "_lambert": "lambertw wrightomega",
            "_legendre": "lpmv sph_harm_y sph_legendre_p",
            "_owens": "owens_t",
            "_polynomials": (
                "eval_chebyt eval_chebyu eval_gegenbauer eval_genlaguerre eval_hermite eval_hermitenorm "
                "eval_jacobi eval_laguerre eval_legendre"
            ),
            "_struve": "bei beip ber berp kei keip ker kerp modstruve struve",
        },
    )
