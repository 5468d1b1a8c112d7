"""`save` and `load`: programs and compiled functions as files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from tenferro_runtime.exporting.files._archive import Archive, content_hash, write
from tenferro_runtime.exporting.files._decode import Decoder
from tenferro_runtime.exporting.files._encode import Encoder, canonical
from tenferro_runtime.exporting.files._errors import FileLimits, ProgramFileError
from tenferro_runtime.exporting.files._function import SavedFunction, function_parts, require_lawful
from tenferro_runtime.exporting.files._trees import decode_tree, encode_tree
from tenferro_runtime.ir._program import Program

FORMAT: Final = "tenferro-program"
VERSION: Final = (1, 0)
"""Readers reject another major number; a minor number adds data that older readers may ignore."""

PROGRAM, ABOUT = "program.json", "about.json"
StrPath = str | os.PathLike[str]


def save(what: Program | SavedFunction, path: StrPath) -> str:
    """Write a program, or a function with the structure of its arguments, to a file.

    The file is replaced atomically. It holds data only, and nothing is evaluated when it is read.

    Args:
        what: a `Program` or a `SavedFunction`.
        path: the file.

    Returns:
        The hash of the content.

    Raises:
        ProgramFileError: another process could not find a primitive by name, or no codec encodes its metadata.
    """
    plain, encoder = _plain(what)
    write(Path(path), {PROGRAM: canonical(plain), ABOUT: canonical(encoder.about)}, encoder.arrays)
    return content_hash(plain)


def hash_of(what: Program | SavedFunction) -> str:
    """SHA-256 of the computation: equal for equal programs in every process.

    Names of inputs, example sizes and source lines are ignored.

    Args:
        what: a `Program` or a `SavedFunction`.

    Returns:
        The hash in hexadecimal.
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
    """Read a file that `save` wrote.

    Every spec is inferred again, and the program is checked against the specification before anything runs. The program
    can be run, compiled, differentiated to any order, drawn and saved again.

    Args:
        path: the file.
        expected_hash: the hash that `save` returned, to check the content.
        limits: limits on what is read.

    Returns:
        A `Program`, or a `SavedFunction` for a compiled function.

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
            # Malformed data may raise any error in the inference of a primitive; the file is to blame.
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
        raise ValueError(f"results that are plain numbers have distinct integer positions, got {data['fixed']!r:.80}")
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
