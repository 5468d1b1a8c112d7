"""Handwritten digits read by a matrix product state, trained by several processes at the same time.

The classifier is that of `digits_mps.py` with all bonds equal, so that a loop goes through the 32 sites on either side
of the label. Each process has a share of the devices of a mesh with one axis, ``data``:

- every batch of images is split along it, each process makes only its own part of the batch;
- the state is replicated; each batch has `PARTS` parts with a gradient of their own, whose mean is one exchange of data
  between the devices, where XLA would else exchange what it adds up at every site;
- Adam's moments are split along the sites, so that each device keeps and updates a share of them.

After every `--every` steps state and moments are written as a checkpoint, each process its part. A run goes on from the
checkpoint that it finds, with any number of processes: the batches depend on the number of the step only, so training
takes the same course, but for rounding.

    python -m tenferro_xla.launch -n 4 examples/digits_on_processes.py --checkpoint out/digits --steps 200

Without the launcher it runs in one process. When a process is lost, the others end with an error; start it again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tenferro_runtime as tr
from tenferro_ad import value_and_grad
from tenferro_einsum import einsum
from tenferro_xla import distributed
from tenferro_xla.checkpoints import load_sharded, save_sharded
from tenferro_xla.mesh import Mesh, P, ShardedArray, compile_on

SIDE = 8
HALF = SIDE * SIDE // 2
DIGITS = 10
SNAKE = np.concatenate([row[:: 1 - 2 * (y % 2)] for y, row in enumerate(np.arange(SIDE * SIDE).reshape(SIDE, SIDE))])
RATE, DECAY = 3e-3, (0.9, 0.99)
PARTS = 8

Images = np.ndarray[Any, Any]
State = dict[str, Any]


def load(path: Path | None) -> tuple[Images, Images]:
    """Images [n, 64] along the snake and labels, from a ``.npz`` file, or those of scikit-learn."""
    if path is not None:
        with np.load(path) as file:
            return file["images"], file["labels"]
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    return images[:, SNAKE] / 16, labels


def initial_state(bond: int) -> State:
    """Sites that hand the bond on whatever the pixel, with a little noise."""
    rng = np.random.default_rng(0)
    through = np.eye(bond)[:, None, :] * np.array([1.0, 0.4])[:, None]
    sites = {side: through + 0.01 * rng.standard_normal((HALF, bond, 2, bond)) for side in ("left", "right")}
    return {**sites, "label": 0.3 * rng.standard_normal((bond, DIGITS, bond))}


def scores(state: State, images: Any) -> Any:
    """Contract the state with a batch of images, from both edges inward; the label's leg is left: [n, 10]."""
    angle = np.pi / 4 * tr.permute_dims(images, (1, 0))
    spins = tr.stack([tr.cos(angle), tr.sin(angle)], axis=-1)

    def absorb(edge: Any, site: tuple[Any, Any]) -> tuple[Any, None]:
        return einsum("nl,lpr,np->nr", edge, *site, optimize=False), None

    edge = tr.ones((images.shape[0], state["label"].shape[0])) / state["label"].shape[0]
    left, _ = tr.scan(absorb, edge, (state["left"], spins[:HALF]))
    right, _ = tr.scan(absorb, edge, (state["right"], spins[: HALF - 1 : -1]))
    return einsum("nl,lcr,nr->nc", left, state["label"], right)


def loss(state: State, images: Any, target: Any) -> Any:
    """Mean negative log-probability of the right digits."""
    return -tr.mean(tr.sum(target * tr.log_softmax(scores(state, images), axis=-1), axis=-1))


def update(training: State, number: Any, images: Any, target: Any) -> tuple[Any, State]:
    """The loss, and state and moments after one step of Adam."""
    parts = [tr.reshape(x, (PARTS, -1, x.shape[1])) for x in (images, target)]
    values, gradients = tr.vmap(value_and_grad(loss), in_axes=(None, 0, 0))(training["state"], *parts)
    gradient = {k: tr.mean(g, axis=0) for k, g in gradients.items()}
    a, b = DECAY
    rate = RATE * tr.sqrt(1 - b**number) / (1 - a**number)
    mean = {k: a * m + (1 - a) * gradient[k] for k, m in training["mean"].items()}
    square = {k: b * v + (1 - b) * gradient[k] ** 2 for k, v in training["square"].items()}
    state = {k: x - rate * mean[k] / (tr.sqrt(square[k]) + 1e-6) for k, x in training["state"].items()}
    return tr.mean(values), {"state": state, "mean": mean, "square": square}


SPECS = {"state": P(), "mean": P("data"), "square": P("data")}
"""How what is trained is split."""


def train(
    mesh: Mesh, images: Images, labels: Images, folder: Path, *, steps: int, every: int, batch: int, bond: int
) -> tuple[int, float]:
    """Train from the checkpoint in a folder, or from the beginning; the number of steps done, and the last loss."""
    done, value = 0, np.nan
    if (folder / "index.json").exists():
        saved = load_sharded(folder, mesh, {"training": SPECS, "step": None})
        training, done = saved["training"], saved["step"]
    else:
        state = initial_state(bond)
        zeros = {k: np.zeros_like(x) for k, x in state.items()}
        training = {"state": state, "mean": zeros, "square": zeros}
    advance = compile_on(mesh, update, (SPECS, P(), P("data"), P("data")), (P(), SPECS))
    for step in range(done + 1, steps + 1):
        chosen = np.random.default_rng(step).integers(0, len(labels), batch)
        part = lambda index, chosen=chosen: images[chosen[index[0]]]
        target = lambda index, chosen=chosen: np.eye(DIGITS)[labels[chosen[index[0]]]]
        x = ShardedArray.from_callback(mesh, (batch, images.shape[1]), P("data"), part)
        y = ShardedArray.from_callback(mesh, (batch, DIGITS), P("data"), target)
        found, training = advance(training, np.float64(step), x, y)
        if step % every == 0 or step == steps:
            save_sharded(folder, {"training": training, "step": step})
            value = float(found.gather())
            if distributed.process_index() == 0:
                print(f"step {step}: loss {value:.4f}, saved", flush=True)
    return steps, value


def main(argv: Sequence[str] | None = None) -> int:
    """Train on all devices of all processes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--checkpoint", type=Path, default=Path("out/digits"), help="folder to go on from")
    parser.add_argument("--steps", type=int, default=200, help="steps in all, those of the checkpoint included")
    parser.add_argument("--every", type=int, default=50, help="steps between checkpoints")
    parser.add_argument("--batch", type=int, default=64, help="images of a step, a multiple of 8")
    parser.add_argument("--bond", type=int, default=8, help="bond dimension, a multiple of the number of devices")
    parser.add_argument("--images", type=Path, help=".npz file with images [n, 64] and labels")
    given = parser.parse_args(argv)
    if distributed.launched():
        distributed.initialize()
    import jax

    mesh = Mesh({"data": jax.device_count()})
    images, labels = load(given.images)
    options = {"steps": given.steps, "every": given.every, "batch": given.batch, "bond": given.bond}
    train(mesh, images, labels, given.checkpoint, **options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
