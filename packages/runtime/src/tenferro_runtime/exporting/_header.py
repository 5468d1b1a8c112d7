"""The header of a library: declarations that C and C++ read, with the shapes of arrays as comments."""

from __future__ import annotations

from collections.abc import Sequence

from tenferro_runtime.exporting._description import NO_MEMORY, ArrayArgument, Described

_TYPES = {
    "bool": "uint8_t", "float16": "uint16_t", "bfloat16": "uint16_t", "float32": "float", "float64": "double",
    "complex64": "float", "complex128": "double",
}  # fmt: skip


def header(guard: str, functions: Sequence[Described]) -> str:
    """The text of the header.

    Args:
        guard: a name for the include guard.
        functions: the functions of the library.
    """
    lines = [
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        "#include <stdint.h>",
        "",
        "/* Arrays are row-major and contiguous; complex numbers are pairs of a real and an imaginary part. Results",
        " * alias no other memory. float16 and bfloat16 are passed as their bits.",
        " *",
        f" * Built for the vector level {functions[0].level} ({functions[0].processor}).",
        " *",
        " * A function returns 0, or a code whose text its _error function returns. It checks the processor and the",
        " * conditions on sizes that are listed for it, before it touches any array. It does not check that pointers",
        " * refer to arrays of the shapes that are listed, nor elements of arrays: those that serve as indices are",
        " * moved to the nearest one inside of the array, as in the program. */",
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
    ]
    for f in functions:
        lines += _declaration(f)
    return "\n".join([*lines, "#ifdef __cplusplus", "}", "#endif", "", "#endif", ""])


def _declaration(f: Described) -> list[str]:
    shown = [f"{a.name}: {a.dtype}[{', '.join(map(str, a.shape))}]" for a in (*f.inputs, *f.outputs)]
    arguments = [f"int64_t {size}" for size in f.sizes]
    arguments += [f"const {_type(a)} *{a.name}" for a in f.inputs] + [f"{_type(a)} *{a.name}" for a in f.outputs]
    codes = ["there is no memory for temporaries", *f.codes]
    texts = [f" * {code}: {text}".replace("*/", "* /") for code, text in enumerate(codes, NO_MEMORY)]
    return [
        f"/* {'; '.join(shown)}",
        *texts,
        " */",
        f"int {f.name}({', '.join(arguments) or 'void'});",
        f"const char *{f.name}_error(int code);",
        f"void {f.name}_extents(const int64_t *sizes, int64_t *extents);",
        f"extern const char {f.name}_description[];",
        "",
    ]


def _type(a: ArrayArgument) -> str:
    return _TYPES.get(a.dtype, f"{a.dtype}_t")
