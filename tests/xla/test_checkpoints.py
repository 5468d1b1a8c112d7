"""Checkpoints of sharded arrays: restored on other meshes, whole or not there, and errors that name what is wrong."""

import json
import os
from collections import OrderedDict
from pathlib import Path
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_tensor import Spec
from tenferro_tensor_core import ArgumentError, ShapeError
from tenferro_xla.checkpoints import Checkpoint, CheckpointError, load_sharded, save_sharded
from tenferro_xla.checkpoints import _parts as reading
from tenferro_xla.checkpoints import _save as saving
from tenferro_xla.checkpoints._parts import write_part
from tenferro_xla.mesh import Mesh, P, ShardedArray

EIGHT = Mesh({"data": 8})
SQUARE = Mesh({"x": 2, "y": 2}, jax.devices()[:4])
ONE = Mesh({"data": 1}, jax.devices()[:1])
X = np.arange(16 * 8.0).reshape(16, 8)


def some(dtype: Any) -> np.ndarray:
    return (np.arange(48).reshape(8, 6) * (1 + 1j if np.dtype(dtype).kind == "c" else 1)).astype(dtype)


def test_arrays_go_from_8_devices_to_a_square_and_to_one(tmp_path: Path) -> None:
    save_sharded(tmp_path / "a", {"x": EIGHT.shard(X, P("data")), "step": 7})
    on_four = load_sharded(tmp_path / "a", SQUARE, {"x": P("y", "x"), "step": None})
    assert on_four["step"] == 7
    assert on_four["x"].spec == P("y", "x") and on_four["x"].local_shape == (8, 4)
    np.testing.assert_array_equal(np.asarray(on_four["x"].gather()), X)
    save_sharded(tmp_path / "b", on_four)
    on_one = load_sharded(tmp_path / "b", ONE)
    assert isinstance(on_one["x"], ShardedArray) and on_one["x"].mesh == ONE
    np.testing.assert_array_equal(np.asarray(on_one["x"].gather()), X)
    np.testing.assert_array_equal(np.asarray(load_sharded(tmp_path / "b")["x"]), X)


@pytest.mark.parametrize("spec", [P("x"), P(None, "y"), P(("y", "x")), P()], ids=repr)
def test_each_part_is_written_once(tmp_path: Path, spec: P) -> None:
    save_sharded(tmp_path, SQUARE.shard(X, spec))
    (entry,) = Checkpoint(tmp_path).index.leaves
    covered = np.zeros(X.shape, int)
    for part in entry.parts:
        covered[tuple([slice(a, b) for a, b in part.region])] += 1
    assert (covered == 1).all()
    assert sum(f.stat().st_size for f in (tmp_path / "1").iterdir()) < X.nbytes + 128 * len(entry.parts) + 1
    np.testing.assert_array_equal(np.asarray(load_sharded(tmp_path, EIGHT, P("data")).gather()), X)


@pytest.mark.parametrize(
    "dtype", [np.float32, np.complex128, np.int8, np.bool_, np.float16, ml_dtypes.bfloat16], ids=lambda d: d.__name__
)
def test_every_dtype_comes_back(tmp_path: Path, dtype: Any) -> None:
    x = some(dtype)
    save_sharded(tmp_path, [SQUARE.shard(x, P("x", "y")), tr.asarray(x), x[:0], x[1, 2]])
    Checkpoint(tmp_path).verify()
    for found, want in zip(load_sharded(tmp_path), [x, x, x[:0], x[1, 2]], strict=True):
        assert found.dtype == want.dtype and found.shape == want.shape
        np.testing.assert_array_equal(np.asarray(found), want)
    restored = load_sharded(tmp_path, SQUARE, [P(None, "x"), P("y"), P(), P()])
    np.testing.assert_array_equal(np.asarray(restored[0].gather()), x)


def test_containers_and_numbers_come_back(tmp_path: Path) -> None:
    tree = {"a": [1, (2.5, -0.0)], 3: OrderedDict(b=True, c=None), "z": 1e-320 - 2j}
    save_sharded(tmp_path, tree)
    found = load_sharded(tmp_path, ONE)
    assert found == tree and isinstance(found[3], OrderedDict) and found[3]["b"] is True
    assert str(found["a"][1][1]) == "-0.0"


def test_only_the_files_of_a_region_are_opened(tmp_path: Path) -> None:
    save_sharded(tmp_path, {"x": EIGHT.shard(X, P("data"))})
    for part in Checkpoint(tmp_path).index.leaves[0].parts:
        if part.region[0] not in ((4, 6), (6, 8)):
            (tmp_path / part.file).unlink()
    checkpoint = Checkpoint(tmp_path)
    assert checkpoint.arrays == {"['x']": Spec((16, 8), tr.float64)}
    np.testing.assert_array_equal(np.asarray(checkpoint.read("['x']", (slice(5, 8), slice(2, 3)))), X[5:8, 2:3])
    with pytest.raises(CheckpointError, match=r"lacks the file 1/0\.0\.\w+\.npy; it is damaged or an incomplete copy"):
        checkpoint.read("['x']")
    with pytest.raises(ArgumentError, match="has no array 'y'; it has .'x'."):
        checkpoint.read("y")


def test_a_new_checkpoint_replaces_the_old_one_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that fails at any part, or right before the index, leaves the old one; the next writer cleans up."""
    save_sharded(tmp_path, {"x": EIGHT.shard(X, P("data"))})
    write, written = write_part, list[Path]()

    def full_at_the_third(path: Path, array: np.ndarray) -> int:
        written.append(path)
        if len(written) == 3:
            raise OSError(28, "No space left on device")
        return write(path, array)

    monkeypatch.setattr(saving, "write_part", full_at_the_third)
    text = r"writing the parts of the checkpoint .* failed in process 0: .*No space left on device; the prev"
    with pytest.raises(CheckpointError, match=text):
        save_sharded(tmp_path, {"x": EIGHT.shard(-X, P("data"))})
    np.testing.assert_array_equal(np.asarray(load_sharded(tmp_path)["x"]), X)
    monkeypatch.setattr(saving, "write_part", write)
    save_sharded(tmp_path, {"x": SQUARE.shard(-X, P("x"))})
    np.testing.assert_array_equal(np.asarray(load_sharded(tmp_path)["x"]), -X)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["2", "index.json"]
    assert len([*(tmp_path / "2").iterdir()]) == 2


def test_what_is_expected_is_compared(tmp_path: Path) -> None:
    save_sharded(tmp_path, {"x": SQUARE.shard(X, P("x")), "n": 1})
    like = {"x": Spec((16, 8), tr.float64), "n": 0}
    assert load_sharded(tmp_path, SQUARE, like=like)["n"] == 1
    for other, text in (
        ({"x": X[:8], "n": 0}, r"\['x'\] of the checkpoint .* is float64\(16, 8\), expected float64\(8, 8\)"),
        ({"x": X.astype(np.float32), "n": 0}, r"\['x'\] of .* is float64\(16, 8\), expected float32\(16, 8\)"),
        ({"x": X, "n": X}, r"\['n'\] of the checkpoint .* is 1, expected ndarray"),
        ({"x": X}, "holds .*, expected"),
    ):
        with pytest.raises(CheckpointError, match=text):
            load_sharded(tmp_path, SQUARE, like=other)
    with pytest.raises(ArgumentError, match="does not fit the checkpoint"):
        load_sharded(tmp_path, SQUARE, [P()])
    with pytest.raises(ShapeError, match="not divisible by the"):
        load_sharded(tmp_path, Mesh({"data": 3}, jax.devices()[:3]), P("data"))
    with pytest.raises(ArgumentError, match=r"got a str at \['s'\]"):
        save_sharded(tmp_path, {"s": "text"})


def test_damage_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="holds no checkpoint: it has no index.json"):
        load_sharded(tmp_path)
    save_sharded(tmp_path, {"x": EIGHT.shard(X, P("data"))})
    file = tmp_path / Checkpoint(tmp_path).index.leaves[0].parts[3].file
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    with pytest.raises(CheckpointError, match=r"npy is truncated: it has \d+ bytes"):
        load_sharded(tmp_path)
    file.write_bytes(whole[:-1] + b"\x01")
    with pytest.raises(CheckpointError, match="is damaged: its checksum is"):
        Checkpoint(tmp_path).verify()
    with file.open("wb") as other:
        np.save(other, X[:2].astype(np.float32))
    with pytest.raises(CheckpointError, match=r"has float32 elements of shape \(2, 8\), but the index .* lists"):
        load_sharded(tmp_path)
    file.write_bytes(b"no array")
    with pytest.raises(CheckpointError, match="is not a part of a checkpoint"):
        load_sharded(tmp_path)
    index = json.loads((tmp_path / "index.json").read_text())
    for change, text in (({"version": [2, 0]}, "of version"), ({"leaves": []}, "0 leaves"), ({"tree": "+"}, "index")):
        (tmp_path / "index.json").write_text(json.dumps(index | change))
        with pytest.raises(CheckpointError, match=text):
            load_sharded(tmp_path)


@pytest.mark.parametrize("dtype", [np.float64, ml_dtypes.bfloat16, np.bool_], ids=lambda d: d.__name__)
@pytest.mark.parametrize("spec", [P("x", "y"), P(None, "y"), P()], ids=repr)
def test_a_flipped_bit_is_never_loaded(tmp_path: Path, spec: P, dtype: Any) -> None:
    """By whole parts, whose elements may be apart in memory, or by pieces of them."""
    save_sharded(tmp_path, {"x": SQUARE.shard(some(dtype), spec)})
    part = Checkpoint(tmp_path).index.leaves[0].parts[-1]
    file = tmp_path / part.file
    whole = bytearray(file.read_bytes())
    whole[-1] ^= 1
    file.write_bytes(whole)
    checkpoint, last = Checkpoint(tmp_path), tuple([slice(b - 1, b) for _, b in part.region])
    first = tuple([slice(a, a + 1) for a, _ in part.region])
    for load in (
        lambda: load_sharded(tmp_path),
        lambda: load_sharded(tmp_path, ONE),
        lambda: load_sharded(tmp_path, SQUARE, P("y", "x")),
        lambda: load_sharded(tmp_path, EIGHT, P("data")),
        lambda: checkpoint.read("['x']", last),
        lambda: checkpoint.read("['x']", first),  # elsewhere in the same file
        checkpoint.verify,
    ):
        with pytest.raises(CheckpointError, match=rf"{file.name} is damaged: its checksum is"):
            load()
    whole[-1] ^= 1
    file.write_bytes(whole)
    np.testing.assert_array_equal(np.asarray(checkpoint.read("['x']")), some(dtype))


def test_a_file_is_compared_once_for_all_its_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_sharded(tmp_path, X)
    compared, compare = list[str](), reading.require_checksum
    monkeypatch.setattr(
        reading, "require_checksum", lambda f, part, x: (compared.append(part.file), compare(f, part, x))
    )
    np.testing.assert_array_equal(np.asarray(load_sharded(tmp_path, EIGHT, P("data")).gather()), X)
    assert len(compared) == 1


def test_checksums_of_elements_apart_are_those_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "CHUNK_BYTES", 100)
    for x in (X, X[:, ::2], X[::-1], X.T, X[:0], X[:, :0], X[2, 3], X[:, None, 1::3]):
        assert reading.checksum(x) == reading.checksum(x.copy(order="C"))


def renamed(folder: Path, name: str) -> None:
    """Let the index name another file as its first part."""
    index = json.loads((folder / "index.json").read_text())
    index["leaves"][0]["parts"][0][0] = name
    (folder / "index.json").write_text(json.dumps(index))


def test_files_outside_the_folder_are_refused(tmp_path: Path) -> None:
    folder, secret = tmp_path / "a", tmp_path / "secret.npy"
    save_sharded(folder, {"x": X})
    name = Checkpoint(folder).index.leaves[0].parts[0].file
    secret.write_bytes((folder / name).read_bytes())
    for other in ("../secret.npy", str(secret), "1/../../secret.npy", "..\\secret.npy", "C:\\secret.npy", "", "a\0b"):
        renamed(folder, other)
        with pytest.raises(CheckpointError, match="is not a checkpoint index .*names the file .* outside the folder"):
            load_sharded(folder)
    for link, target in (("1/link.npy", secret), ("up", tmp_path)):
        (folder / link).symlink_to(target)
        renamed(folder, link if link.endswith("npy") else f"{link}/secret.npy")
        with pytest.raises(CheckpointError, match="is a link out of the folder of the checkpoint, or no file"):
            load_sharded(folder)
    (folder / "1" / "inside.npy").symlink_to(folder / name)
    renamed(folder, "1/inside.npy")
    np.testing.assert_array_equal(np.asarray(load_sharded(folder)["x"]), X)
    (tmp_path / "b").symlink_to(folder)  # the folder itself may be a link
    np.testing.assert_array_equal(np.asarray(load_sharded(tmp_path / "b")["x"]), X)
    renamed(folder, "1")
    with pytest.raises(CheckpointError, match="or no file"):
        load_sharded(folder)
    os.mkfifo(folder / "1" / "pipe.npy")
    renamed(folder, "1/pipe.npy")
    with pytest.raises(CheckpointError, match="or no file"):
        load_sharded(folder)


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([[[0, 8], [0, 8]], [[4, 12], [0, 8]]], "part 1 overlaps an earlier part"),
        ([[[0, 16], [0, 9]]], "is not a part of an array of shape"),
        ([[[-1, 16], [0, 8]]], "is not a part of an array of shape"),
        ([[[3, 2], [0, 8]]], "is not a part of an array of shape"),
        ([[[0, 16]]], "is not a part of an array of shape"),
    ],
    ids=["overlap", "beyond", "negative", "backwards", "axes"],
)
def test_regions_of_parts_fit_their_array(tmp_path: Path, parts: list[Any], text: str) -> None:
    save_sharded(tmp_path, {"x": X})
    index = json.loads((tmp_path / "index.json").read_text())
    file, _, crc = index["leaves"][0]["parts"][0]
    index["leaves"][0]["parts"] = [[file, region, crc] for region in parts]
    (tmp_path / "index.json").write_text(json.dumps(index))
    with pytest.raises(CheckpointError, match=text):
        load_sharded(tmp_path)


@pytest.mark.parametrize(
    "text", [b"\xff\xfe", b"[" * 100_000, b'{"format": {}}', b"[]"], ids=["utf", "deep", "no", "list"]
)
def test_indices_that_are_none_are_named(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "index.json").write_bytes(text)
    with pytest.raises(CheckpointError, match="is not a checkpoint index that this version can read"):
        load_sharded(tmp_path)
