"""Which page of the reference describes which public name: the modules that define the names are grouped by subject."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Page:
    """A page of the reference.

    Attributes:
        title: its title.
        sentence: what the names are for, in Markdown.
        sections: by title, the modules or names whose definitions belong there. `tenferro_fft` stands for all modules
            below it that no longer entry names.
    """

    title: str
    sentence: str
    sections: dict[str, tuple[str, ...]]


def _functions(names: str) -> tuple[str, ...]:
    return tuple(f"tenferro_tensor.functions.{name}" for name in names.split())


def _runtime(names: str) -> tuple[str, ...]:
    return tuple(f"tenferro_runtime.{name}" for name in names.split())


def _linalg(names: str) -> tuple[str, ...]:
    return tuple(f"tenferro_linalg.{name}" for name in names.split())


MODULES: Final = (
    "tenferro_runtime",
    "tenferro_runtime.nn",
    "tenferro_runtime.random",
    "tenferro_runtime.special",
    "tenferro_ad",
    "tenferro_ad.checkpoint_policies",
    "tenferro_ad.adapters.jax",
    "tenferro_ad.adapters.quimb",
    "tenferro_einsum",
    "tenferro_linalg",
    "tenferro_linalg.providers",
    "tenferro_fft",
    "tenferro_fft.providers",
    "tenferro_tensor",
    "tenferro_tensor.checking",
    "tenferro_tensor.conformance",
    "tenferro_tensor_core",
    "tenferro_runtime.extension",
    "tenferro_cpu",
    "tenferro_gpu",
    "tenferro_xla",
    "tenferro_xla.mesh",
    "tenferro_xla.distributed",
    "tenferro_xla.checkpoints",
)
"""The public modules for users and for authors of extensions; an object is described under its name in the first."""

ERRORS: Final = "errors"
"""The page of all exceptions, wherever they are defined."""

PAGES: Final[dict[str, Page]] = {
    "tensors": Page(
        "Tensors",
        "The three kinds of arrays: concrete, recorded for derivatives, and traced into a program.",
        {"": ("tenferro_tensor._tensor", "tenferro_tensor._array", "tenferro_ad._eager", *_runtime("tracing._traced"))},
    ),
    "creation": Page(
        "Creation",
        "Arrays from values, shapes, ranges and other libraries.",
        {
            "From values and shapes": _functions("creation numpy_forms.array numpy_forms.identity"),
            "Ranges and sequences": _functions("ranges"),
            "Grids and diagonals": _functions("diagonals index_grids"),
        },
    ),
    "elementwise": Page(
        "Element-wise functions",
        "Functions of each element alone; operands broadcast, and dtypes promote as in NumPy.",
        {
            "Arithmetic": _functions("arithmetic"),
            "Exponentials, logarithms and trigonometry": _functions("analytic elementwise"),
            "Comparison and logic": _functions("comparison closeness predicates"),
            "Complex numbers": _functions("parts"),
            "Integers and bits": (*_functions("bits binary packing"), *_runtime("functions.integers")),
        },
    ),
    "reductions": Page(
        "Reductions",
        "Functions that combine elements along axes.",
        {
            "Sums, products, extremes": _functions("reductions"),
            "Means, variances and quantiles": _functions("statistics averages quantiles"),
            "Cumulative": _functions("scans numpy_forms.cumsum numpy_forms.cumprod"),
            "Without NaN": _functions("nan_reductions"),
        },
    ),
    "manipulation": Page(
        "Manipulation",
        "Functions that change shapes, and that join, split, repeat or edit arrays.",
        {
            "Shape and order of axes": _functions("manipulation orientation numpy_forms.transpose"),
            "Joining and splitting": _functions("joining stacking"),
            "Editing": _functions("editing"),
            "Parts of fixed and of symbolic size": _functions("windows truncation"),
        },
    ),
    "indexing": Page(
        "Indexing and searching",
        "Reading elements by index or condition, and finding where they are.",
        {
            "Reading and choosing": _functions("reading selecting"),
            "Writing": _functions("writing"),
            "Searching and counting": _functions("searching counting"),
            "Flat indices": _functions("flat_indices"),
        },
    ),
    "sorting-and-sets": Page(
        "Sorting and sets",
        "Orders of elements, and sets of distinct values.",
        {"Sorting": _functions("sorting ordering numpy_forms.sort_complex"), "Sets": _functions("sets set_operations")},
    ),
    "signals-and-polynomials": Page(
        "Signals, histograms and polynomials",
        "Convolution, interpolation, differences and integrals of samples, windows, histograms and polynomials.",
        {
            "Signals and windows": _functions("signals tapers"),
            "Interpolation, differences and integrals": _functions("interpolation differences"),
            "Histograms": _functions("histograms"),
            "Polynomials": (*_functions("polynomials"), *_runtime("functions.fitting")),
        },
    ),
    "linear-algebra": Page(
        "Linear algebra",
        "Products, decompositions, equations and functions of matrices; leading axes are batches. See the guides on "
        "[linear algebra](../linear-algebra.md), [functions of matrices](../matrix-functions.md) and "
        "[iterations](../iterative-linear-algebra.md).",
        {
            "Products": (
                *_functions(
                    "linear_algebra numpy_forms.dot numpy_forms.inner numpy_forms.matvec "
                    "numpy_forms.vdot numpy_forms.vecmat"
                ),
                *_linalg("_products _compositions"),
            ),
            "Norms and determinants": _linalg("_norms _det _condition"),
            "Equations": _linalg("_solve _pinv factors"),
            "Factors": _linalg("_cholesky _qr similarity"),
            "Eigenvalues and singular values": _linalg("_eig _eigh _svd _spectral _tridiagonal"),
            "Truncation": _linalg("truncation"),
            "Functions of matrices": _linalg("functions"),
            "Matrix equations": _linalg("equations"),
            "Iterations": _linalg("krylov"),
            "Structured matrices": _linalg("structured"),
            "Devices of your own": _linalg("providers _array_provider"),
        },
    ),
    "sparse": Page(
        "Sparse arrays",
        "Arrays of which few entries are stored, and sparse derivatives; see "
        "[sparse derivatives](../sparse-derivatives.md).",
        {"": (*_linalg("sparse"), "tenferro_ad.sparse")},
    ),
    "einsum": Page(
        "Einsum",
        "Contractions of tensor networks, their plans and orders; see [contractions](../einsum.md).",
        {"": ("tenferro_einsum",)},
    ),
    "fourier": Page(
        "Fourier transforms",
        "Fourier, cosine, sine and Hankel transforms, and convolution; see [Fourier transforms](../fourier.md).",
        {
            "Transforms": ("tenferro_fft",),
            "Cosines and sines": ("tenferro_fft._cosines",),
            "Frequencies and lengths": ("tenferro_fft._frequencies", "tenferro_fft._lengths"),
            "Threads": ("tenferro_fft._workers",),
            "Devices of your own": ("tenferro_fft.providers",),
        },
    ),
    "random": Page(
        "Random numbers",
        "Random numbers as functions of a key, `tr.random`; see [random numbers](../random-numbers.md).",
        {"": _runtime("random")},
    ),
    "special-functions": Page(
        "Special functions",
        "Functions of mathematical physics and statistics, `tr.special`; see "
        "[special functions](../special-functions.md).",
        {
            "Gamma and beta functions": _runtime(
                "special special._gamma special._beta special._digamma special._incomplete_beta "
                "special._incomplete_gamma special._zeta"
            ),
            "Error functions, exponentials and logarithms": _runtime(
                "special._error_functions special._exponential_integrals special._elementary "
                "special._removable special._logistic special._lambert special._information"
            ),
            "Bessel, Airy and Struve functions": _runtime(
                "special._airy special._bessel special._bessel_integer special._bessel_slopes "
                "special._bessel_spherical special._struve"
            ),
            "Elliptic and hypergeometric functions": _runtime(
                "special._elliptic special._carlson special._hypergeometric"
            ),
            "Orthogonal polynomials and spherical harmonics": _runtime(
                "special._legendre special._polynomials special._polynomials_scaled"
            ),
            "Distributions": _runtime("special._distributions special._normal special._owens special._student"),
        },
    ),
    "neural-networks": Page(
        "Neural-network functions", "Activations and normalizations, `tr.nn`.", {"": _runtime("nn")}
    ),
    "control-flow": Page(
        "Control flow and batches",
        "Branches, loops, maps and callbacks that programs record; see [branches and loops](../control-flow.md) and "
        "[batches](../batching.md).",
        {
            "Branches and loops": _runtime("control_flow"),
            "Batches": _runtime("batching functions.lanewise"),
            "Callbacks": _runtime("callbacks"),
        },
    ),
    "trees": Page("Trees of arrays", "Nested containers of arrays; see [trees](../trees.md).", {"": _runtime("trees")}),
    "programs": Page(
        "Compilation and programs",
        "Tracing, compiling, inspecting and saving programs; see [what compiled functions notice]"
        "(../compiled-functions.md) and [looking into programs](../debugging.md).",
        {
            "Compile and trace": _runtime("compiling ir runtime"),
            "Look into programs": _runtime("inspection reports progress"),
            "Files and libraries": _runtime("exporting.files exporting"),
            "Execution plans": _runtime("placement"),
        },
    ),
    "derivatives": Page(
        "Derivatives",
        "Gradients, Jacobians, Hessians and Taylor coefficients, from `tenferro_ad`.",
        {
            "Transforms": ("tenferro_ad", *_functions("parts.stop_gradient")),
            "High order": ("tenferro_ad.power_series",),
            "Checkpoints": ("tenferro_ad._checkpoint", "tenferro_ad._saving", "tenferro_ad.checkpoint_policies"),
            "Rules and checks": (
                "tenferro_ad._custom",
                "tenferro_ad._checking",
                "tenferro_ad.compiler_checks",
                "tenferro_ad.primitive_checks",
            ),
            "In other libraries": ("tenferro_ad.adapters",),
        },
    ),
    "implicit": Page(
        "Implicit derivatives",
        "Derivatives of roots, fixed points and linear solves; see [implicit derivatives](../implicit-derivatives.md).",
        {"": ("tenferro_ad.implicit",)},
    ),
    "devices": Page(
        "Placement and devices",
        "Where data live and where work runs; see [placement](../placement.md) and "
        "[device runtimes](../device-runtimes.md).",
        {
            "Places and scopes": (
                "tenferro_tensor._place",
                "tenferro_tensor._fallback",
                "tenferro_tensor._synchronize",
                "tenferro_tensor.dispatch",
                "tenferro_tensor.transfers",
                *_functions("placement"),
            ),
            "Backends": ("tenferro_tensor.backends", "tenferro_tensor._accelerator", "tenferro_tensor._host_kernel"),
            "Device runtimes": ("tenferro_tensor.device_runtimes",),
            "Checks": ("tenferro_tensor.conformance", "tenferro_tensor.checking"),
        },
    ),
    "dtypes-and-sizes": Page(
        "Dtypes, sizes and constants",
        "Dtypes and their promotion, symbolic sizes, layouts, and constants; see [sizes](../sizes.md).",
        {
            "Dtypes": (
                *_functions("dtypes"),
                "tenferro_tensor_core._dtypes",
                "tenferro_tensor_core._promotion",
                "tenferro_tensor_core._limits",
                "tenferro_tensor_core._key_of",
            ),
            "Shapes and specs": ("tenferro_tensor.promotion", "tenferro_tensor._spec"),
            "Symbolic sizes": ("tenferro_tensor_core",),
            "Layouts and host arrays": (
                "tenferro_tensor_core._host",
                "tenferro_tensor_core._layout",
                "tenferro_tensor_core._dlpack",
            ),
            "The namespace": _runtime("_namespace"),
        },
    ),
    ERRORS: Page("Errors", "Every exception; [what each means and what to do](../errors.md) has examples.", {"": ()}),
    "extension": Page(
        "Extension door",
        "What an operation family imports, from `tenferro_runtime.extension`; see [extending](../extending.md).",
        {
            "": (
                *_runtime(
                    "extension _caches _rules passes running.rendering tracing "
                    "ir._call ir._spec_check ir._program.Equation ir._program.Literal "
                    "trees._tree.flatten trees._tree.unflatten"
                ),
                "tenferro_tensor",
            )
        },
    ),
    "cpu": Page(
        "CPU", "The backend of the CPU: memory, threads and pools, from `tenferro_cpu`.", {"": ("tenferro_cpu",)}
    ),
    "gpu": Page(
        "GPU", "The backends of CUDA and ROCm, from `tenferro_gpu`; see [GPUs](../gpu.md).", {"": ("tenferro_gpu",)}
    ),
    "xla": Page(
        "XLA",
        "Whole programs by XLA, on one device or a mesh of them; see [programs by XLA](../xla.md) and "
        "[meshes](../meshes.md).",
        {
            "Programs by XLA": ("tenferro_xla",),
            "Meshes": ("tenferro_xla.mesh",),
            "Several processes": ("tenferro_xla.distributed",),
            "Checkpoints": ("tenferro_xla.checkpoints",),
        },
    ),
}
"""The pages by file name, in the order in which the site shows them."""

_CORE, _TYPE = "dtypes-and-sizes", "Dtypes"

VALUES: Final[dict[str, tuple[str, str, str]]] = {
    **{
        name: (_CORE, _TYPE, f"{bits}-bit {kind}")
        for kind, word, widths in (
            ("signed integers", "int", (8, 16, 32, 64)),
            ("unsigned integers", "uint", (8, 16, 32, 64)),
            ("floating-point numbers", "float", (16, 32, 64)),
            ("complex numbers", "complex", (64, 128)),
        )
        for bits in widths
        for name in (f"tenferro_runtime.{word}{bits}", f"tenferro_tensor_core.{word}{bits}")
    },
    "tenferro_runtime.bool": (_CORE, _TYPE, "booleans"),
    "tenferro_tensor_core.bool_": (_CORE, _TYPE, "booleans"),
    **{
        f"tenferro_runtime.{name}": (_CORE, _TYPE, "an abstract dtype of NumPy, for `tr.issubdtype`")
        for name in (
            "complexfloating",
            "floating",
            "generic",
            "inexact",
            "integer",
            "number",
            "signedinteger",
            "unsignedinteger",
        )
    },
    "tenferro_runtime.e": (_CORE, "The namespace", "Euler's number, 2.718..."),
    "tenferro_runtime.euler_gamma": (_CORE, "The namespace", "Euler's constant, 0.577..."),
    "tenferro_runtime.dtype": (_CORE, "The namespace", "NumPy's class of dtypes"),
    "tenferro_runtime.inf": (_CORE, "The namespace", "positive infinity"),
    "tenferro_runtime.r_": (
        "manipulation",
        "Joining and splitting",
        "`r_[x, 0, 1:5]` joins the parts of a key, as NumPy's",
    ),
    "tenferro_runtime.c_": ("manipulation", "Joining and splitting", "`c_[x, y]` joins vectors as columns, as NumPy's"),
    "tenferro_runtime.nan": (_CORE, "The namespace", "not a number"),
    "tenferro_runtime.newaxis": (_CORE, "The namespace", "`None`: a new axis in an index"),
    "tenferro_runtime.pi": (_CORE, "The namespace", "π, 3.141..."),
    "tenferro_runtime.__array_api_version__": (_CORE, "The namespace", "the version of the Array API standard"),
    "tenferro_runtime.nn": ("neural-networks", "", "this page"),
    "tenferro_runtime.random": ("random", "", "this page"),
    "tenferro_runtime.special": ("special-functions", "Gamma and beta functions", "this page"),
    "tenferro_ad.checkpoint_policies": ("derivatives", "Checkpoints", "the policies below"),
    "tenferro_ad.checkpoint_policies.Policy": ("derivatives", "Checkpoints", "the type of a policy"),
    "tenferro_tensor.catalog": ("extension", "", "[the primitives](primitives.md)"),
    "tenferro_runtime.extension.catalog": ("extension", "", "[the primitives](primitives.md)"),
    "tenferro_tensor.next_level": ("extension", "", "the level of a new trace, above all others"),
    "tenferro_runtime.extension.next_level": ("extension", "", "the level of a new trace, above all others"),
    **dict.fromkeys(
        ("tenferro_tensor.HOST", "tenferro_runtime.extension.HOST"),
        ("devices", "Places and scopes", "the place of arrays in main memory"),
    ),
    **dict.fromkeys(
        ("tenferro_tensor.REGISTRY", "tenferro_runtime.extension.REGISTRY"),
        ("extension", "", "the registry of this process"),
    ),
    "tenferro_tensor_core.DIM_MEMO": (_CORE, "Symbolic sizes", "the cache of sums and products of symbolic sizes"),
    "tenferro_tensor.MAX_AXES": (_CORE, "Shapes and specs", "the largest number of axes of an array"),
    "tenferro_tensor.SCALARS": ("extension", "", "the types of Python's scalars that operations take"),
    "tenferro_runtime.extension.Rule": ("extension", "", "a rule of a primitive: any of the classes on this page"),
    "tenferro_tensor_core.DTYPES": (_CORE, _TYPE, "all dtypes of arrays"),
    "tenferro_tensor_core.DType": (_CORE, _TYPE, "NumPy's `dtype`, the type of dtypes"),
    "tenferro_tensor_core.HostArray": (_CORE, "Layouts and host arrays", "NumPy's `ndarray`"),
    "tenferro_tensor_core.Scalar": (_CORE, _TYPE, "the type of Python's scalars"),
    "tenferro_tensor_core.DimLike": (_CORE, "Symbolic sizes", "an integer or a symbolic size"),
    "tenferro_runtime.extension.DimLike": (_CORE, "Symbolic sizes", "an integer or a symbolic size"),
}
"""Public values that are no function or class: page, section, description."""
