"""`save` and `load`: programs and compiled functions as files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from tenferro_runtime.files._archive import Archive, content_hash, write
from tenferro_runtime.files._decode import Decoder
from tenferro_runtime.files._encode import Encoder, canonical
from tenferro_runtime.files._errors import FileLimits, ProgramFileError
from tenferro_runtime.files._function import SavedFunction, function_parts, require_lawful
from tenferro_runtime.files._trees import decode_tree, encode_tree
from tenferro_runtime.ir._program import Program

FORMAT: Final = "tenferro-program"
VERSION: Final = (1, 0)
"""Readers refuse another major number; a minor number adds what older readers may leave out."""

PROGRAM, ABOUT = "program.json", "about.json"
StrPath = str | os.PathLike[str]


def save(what: Program | SavedFunction, path: StrPath) -> str:
    """Write a program, or a function with its argument structure, to a file; returns its content hash.

    The file is replaced in one step. It holds data only: no code, and nothing that is evaluated when it is read.

    Raises:
        ProgramFileError: a primitive of it has no name that another process could find it by, or metadata that no
            codec writes.
    """
    plain, encoder = _plain(what)
    write(Path(path), {PROGRAM: canonical(plain), ABOUT: canonical(encoder.about)}, encoder.arrays)
    return content_hash(plain)


def hash_of(what: Program | SavedFunction) -> str:
    """SHA-256 of what a program means: equal for equal programs in every process.

    Names of inputs, example sizes and the lines of code that a program came from do not count.
    """
    return content_hash(_plain(what)[0])


def _plain(what: Program | SavedFunction) -> tuple[dict[str, Any], Encoder]:
    encoder = Encoder()
    program = what.program if isinstance(what, SavedFunction) else what
    main = encoder.program(program)
    function = None
    if isinstance(what, SavedFunction):
        arguments, result, fixed = function_parts(what)
        function = {
            "name": what.name,
            "parameters": None if what.parameters is None else list(what.parameters),
            "arguments": encode_tree(encoder.value, arguments),
            "result": encode_tree(encoder.value, result),
            "fixed": [[i, encoder.value(v)] for i, v in sorted(fixed.items())],
        }
    plain = {
        "format": FORMAT,
        "version": list(VERSION),
        "tables": encoder.tables,
        "program": main,
        "function": function,
    }
    return plain, encoder


def load(path: StrPath, *, expected_hash: str | None = None, limits: FileLimits | None = None) -> Any:
    """Read what `save` wrote: a `Program`, or a `SavedFunction` for what a compiled function saved.

    Every spec is inferred again, and the result obeys the law of programs; nothing has run before that is known.
    The program that is read can be run, compiled, differentiated to any order, drawn and saved again.

    Args:
        path: the file.
        expected_hash: the content hash that `save` returned, where the file comes from elsewhere.
        limits: bounds on what is read.

    Raises:
        ProgramFileError: the file is damaged, of a newer version, larger than the limits, has another hash than
            `expected_hash`, or needs a primitive that is not installed; the text says what to install.
        FileNotFoundError: there is no such file.

    >>> import tempfile, os
    >>> import tenferro_runtime as tr
    >>> program = tr.trace(lambda x: 2 * x + 1, tr.ones(3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "line.tenferro")
    ...     saved = program.save(path)
    ...     loaded = tr.load(path, expected_hash=saved)
    >>> loaded.run(tr.arange(3.0))
    (Tensor([1., 3., 5.]),)
    """
    name = os.fspath(path)
    with open(path, "rb") as file:
        try:
            return _read(Archive(file, name, limits or FileLimits()), name, expected_hash, limits or FileLimits())
        except ProgramFileError:
            raise
        except (Exception, RecursionError) as cause:
            # Whatever malformed data makes of the inference of some primitive: it is the file that is wrong.
            raise ProgramFileError(
                f"{name} does not hold a well-formed program: {type(cause).__name__}: {cause}; save the program again",
                path=name,
            ) from cause


def _read(archive: Archive, name: str, expected_hash: str | None, limits: FileLimits) -> Any:
    plain, data = archive.text(PROGRAM)
    if plain["format"] != FORMAT:
        raise ProgramFileError(f"{name} is of the format {plain['format']!r}, not {FORMAT!r}", path=name)
    major, minor = plain["version"]
    if major != VERSION[0]:
        raise ProgramFileError(
            f"{name} has the format version {major}.{minor}, and this tenferro reads {VERSION[0]}.x; "
            f"{'upgrade tenferro-runtime' if major > VERSION[0] else 'read it with an older tenferro-runtime'}",
            path=name,
            version=(major, minor),
        )
    seen = archive.digest(data)
    if expected_hash is not None and seen != expected_hash:
        raise ProgramFileError(
            f"{name} has the content hash {seen}, but {expected_hash} was expected; it is another program: "
            "fetch the right file, or correct the hash",
            path=name,
            hash=seen,
        )
    decoder = Decoder(plain["tables"], archive.text(ABOUT)[0], archive.constant, limits)
    program = decoder.program(plain["program"])
    function = plain["function"]
    if function is None:
        return program
    return _function(decoder, program, function)


def _function(decoder: Decoder, program: Program, data: Any) -> SavedFunction:
    name, parameters = data["name"], data["parameters"]
    if not all(text.__class__ is str for text in (name, *(parameters or ()))):
        raise ValueError(f"a function and its parameters have names, got {name!r:.80} and {parameters!r:.80}")
    fixed = [(index, decoder.value(value)) for index, value in data["fixed"]]
    if any(index.__class__ is not int for index, _ in fixed) or len(dict(fixed)) != len(fixed):
        raise ValueError(
            f"results that are plain numbers are counted by integers, each once, got {data['fixed']!r:.80}"
        )
    function = SavedFunction(
        name,
        None if parameters is None else tuple(parameters),
        program,
        decode_tree(decoder.value, data["arguments"]),
        decode_tree(decoder.value, data["result"]),
        dict(fixed),
    )
    require_lawful(function)
    return function
