"""Handwritten digits read by a matrix product state.

A grey 8x8 image becomes a product state of 64 spins: pixel x in [0, 1] is the spin (cos πx/4, sin πx/4), the pixels in
the order of a snake through the rows. The classifier is a matrix product state with one more leg, the label, in the
middle of the chain:

    A---A--- ... ---A---C---A--- ... ---A---A      A[l, p, r]: a site, p its pixel's spin, l and r the bonds
    |   |           |   |   |           |   |      C[l, c, r]: the label's tensor, c one of the ten digits
    x   x           x   c   x           x   x

Contracted with an image it leaves ten numbers, the scores, whose softmax is the probability of each digit.

1. *Initialisation.* The superposition of all training images, each tied to its label, is compressed into a matrix
   product state, site by site from both edges inward, by truncated singular value decompositions.
2. *Training.* Adam minimises the cross-entropy over mini-batches; its gradients come from eager automatic
   differentiation through `einsum`. A part of the images is shifted by up to a pixel each time it is seen.
3. *Reading the result.* Cut at any bond, the state has a Schmidt spectrum; its entropy says how much one side of the
   image has to tell the other. The figure shows it along the chain, with the training curve and the confusion matrix.

The data are the UCI handwritten digits as bundled with scikit-learn: 1797 images, a stratified quarter held out.

Run it with `python3 dev demo`, or `python examples/digits_mps.py --bond 16 --epochs 40` in an environment with the
packages of the workspace. The idea is that of E. M. Stoudenmire and D. J. Schwab, "Supervised learning with tensor
networks", NeurIPS 29 (2016), and the initialisation follows E. M. Stoudenmire, "Learning relevant features of data
with multi-scale tensor networks", Quantum Sci. Technol. 3, 034003 (2018).
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import tenferro_runtime as tr
from tenferro_ad import value_and_grad
from tenferro_einsum import einsum
from tenferro_linalg import qr, svd, svd_trunc
from tenferro_tensor import Array
from tenferro_tensor_core import ArgumentError, NumericalError

try:
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    from sklearn.datasets import load_digits
    from sklearn.metrics import confusion_matrix
    from sklearn.model_selection import train_test_split
    from threadpoolctl import threadpool_limits
except ModuleNotFoundError as missing:
    raise SystemExit(
        f"digits_mps: the package {missing.name!r} is missing; this example needs scikit-learn, matplotlib and rich: "
        "run it with `python3 dev demo`, which installs them, or `pip install scikit-learn matplotlib rich`"
    ) from missing

SIDE = 8
PIXELS = SIDE * SIDE
MIDDLE = PIXELS // 2
DIGITS = 10
ANGLE = math.pi / 4
SNAKE = np.concatenate([row[:: 1 - 2 * (y % 2)] for y, row in enumerate(np.arange(PIXELS).reshape(SIDE, SIDE))])

State = list[Any]
"""The 65 tensors from left to right, the label's at `MIDDLE`."""


@dataclass(frozen=True)
class Options:
    """What to train, and how.

    Raises:
        ArgumentError: a value is out of range.
    """

    bond: int = field(default=20, metadata={"help": "largest bond dimension of the state"})
    epochs: int = field(default=40, metadata={"help": "passes over the training images"})
    batch: int = field(default=64, metadata={"help": "images per gradient step"})
    lr: float = field(default=1e-3, metadata={"help": "learning rate at the start; it falls to zero as a cosine"})
    seed: int = field(default=0, metadata={"help": "seed of the split, the order of the images and their shifts"})
    threads: int = field(default=1, metadata={"help": "BLAS threads; at these sizes one is the fastest"})
    out: Path = field(default=Path("out/digits_mps.png"), metadata={"help": "the figure: .png, .pdf or .svg"})

    def __post_init__(self) -> None:
        for name, least, most in (
            ("bond", 1, 1024),
            ("epochs", 1, 100_000),
            ("batch", 1, 100_000),
            ("seed", 0, 2**32 - 1),
            ("threads", 1, 1024),
        ):
            if not least <= getattr(self, name) <= most:
                raise ArgumentError(f"--{name} is {getattr(self, name)}; give an integer from {least} to {most}")
        if not (math.isfinite(self.lr) and self.lr > 0):
            raise ArgumentError(f"--lr is {self.lr}; give a positive learning rate, such as 1e-3")
        if self.out.suffix.lower() not in (".png", ".pdf", ".svg"):
            raise ArgumentError(f"--out is {str(self.out)!r}; give a file that ends in .png, .pdf or .svg")


@dataclass(frozen=True)
class Digits:
    """Images as an array [n, 8, 8] of numbers in [0, 1], with their labels."""

    images: np.ndarray[Any, Any]
    labels: np.ndarray[Any, Any]

    def __len__(self) -> int:
        return len(self.labels)


def load(seed: int) -> tuple[Digits, Digits]:
    """The training images, and the quarter that is held out."""
    images, labels = load_digits(return_X_y=True)
    seen, unseen, of_seen, of_unseen = train_test_split(
        images.reshape(-1, SIDE, SIDE) / 16, labels, test_size=0.25, stratify=labels, random_state=seed
    )
    return Digits(seen, of_seen), Digits(unseen, of_unseen)


def batches(digits: Digits, size: int, rng: np.random.Generator) -> Iterator[Digits]:
    """One epoch in random order, half of the images moved by up to a pixel in each direction."""
    padded = np.pad(digits.images, ((0, 0), (1, 1), (1, 1)))
    pixel = np.arange(SIDE)
    for chosen in np.split(rng.permutation(len(digits)), range(size, len(digits), size)):
        move = 1 + rng.integers(-1, 2, (2, len(chosen))) * (rng.random(len(chosen)) < 0.5)
        y, x = move[:, :, None] + pixel
        yield Digits(padded[chosen[:, None, None], y[:, :, None], x[:, None, :]], digits.labels[chosen])


# The model ------------------------------------------------------------------------------------------------------------


def spins(images: np.ndarray[Any, Any]) -> State:
    """Images as product states: a tensor [n, 2] for each pixel along the snake."""
    angle = ANGLE * tr.asarray(images.reshape(-1, PIXELS).T[SNAKE])
    return list(tr.unstack(tr.stack([tr.cos(angle), tr.sin(angle)], axis=-1)))


def scores(state: State, pixels: State) -> Any:
    """Contract the state with a batch of images, from both edges inward; the label's leg is left: [n, 10].

    `optimize=False` contracts from left to right: the site first, which is one large matrix product for the whole
    batch, then the pixel, a weighted sum. The other order has no more operations, but many small products.
    """
    left = right = tr.ones((pixels[0].shape[0], 1))
    for site, pixel in zip(state[:MIDDLE], pixels[:MIDDLE]):
        left = einsum("nl,lpr,np->nr", left, site, pixel, optimize=False)
    for site, pixel in zip(state[:MIDDLE:-1], pixels[: MIDDLE - 1 : -1]):
        right = einsum("nr,lpr,np->nl", right, site, pixel, optimize=False)
    return einsum("nl,lcr,nr->nc", left, state[MIDDLE], right)


def cross_entropy(state: State, pixels: State, target: Array) -> Any:
    """Mean negative log-probability of the right digits."""
    return -tr.mean(tr.sum(target * tr.log_softmax(scores(state, pixels), axis=-1), axis=-1))


def read(state: State, digits: Digits) -> np.ndarray[Any, Any]:
    """The digit that the state takes each image for."""
    return np.asarray(tr.argmax(scores(state, spins(digits.images)), axis=-1))


def accuracy(state: State, digits: Digits) -> float:
    """Share of the images that are read right."""
    return float(np.mean(read(state, digits) == digits.labels))


# Initialisation -------------------------------------------------------------------------------------------------------


def compressed(pixels: State, bond: int) -> tuple[State, Array]:
    """Compress the superposition of product states site by site, keeping the strongest Schmidt vectors.

    What has been absorbed so far is a matrix of images by bond. A pixel more doubles the bond, and a truncated
    singular value decomposition U S Vh brings it back: Vh is the new site, an isometry, and U S goes on.

    Returns:
        The sites [outer bond, pixel, inner bond] from the edge inward, and the images in the basis of the last bond.
    """
    sites = []
    images = tr.ones((pixels[0].shape[0], 1))
    for pixel in pixels:
        grown = einsum("nl,np->nlp", images, pixel)
        n, outer, _ = grown.shape
        _, _, basis = svd_trunc(tr.reshape(grown, (n, 2 * outer)), min(bond, n, 2 * outer))
        site = tr.reshape(basis, (-1, outer, 2))
        sites.append(tr.permute_dims(site, (1, 2, 0)))
        images = einsum("nlp,rlp->nr", grown, site)
    return sites, images


def initial_state(digits: Digits, bond: int) -> State:
    """The superposition of all training images, each tied to its label, as a matrix product state."""
    pixels = spins(digits.images)
    left, on_left = compressed(pixels[:MIDDLE], bond)
    right, on_right = compressed(pixels[: MIDDLE - 1 : -1], bond)
    label = einsum("nl,nc,nr->lcr", on_left, one_hot(digits.labels), on_right)
    state = [*left, label, *[tr.permute_dims(site, (2, 1, 0)) for site in reversed(right)]]
    state[MIDDLE] = label * (4 / tr.std(scores(state, pixels)))  # scores of a size that softmax can tell apart
    return state


def one_hot(labels: np.ndarray[Any, Any]) -> Array:
    """Labels as rows of the unit matrix."""
    return tr.asarray(np.eye(DIGITS)[labels])  # type: ignore[no-any-return]


# Training -------------------------------------------------------------------------------------------------------------


class Adam:
    """Gradient descent with running moments (D. P. Kingma and J. Ba, ICLR 2015)."""

    def __init__(self, state: State, decay: tuple[float, float] = (0.9, 0.99)) -> None:
        self.decay = decay
        self.steps = 0
        self.mean = [tr.zeros_like(site) for site in state]
        self.square = [tr.zeros_like(site) for site in state]

    def step(self, state: State, gradient: State, rate: float) -> State:
        """The state after one step against the gradient."""
        self.steps += 1
        a, b = self.decay
        # Both moments start at zero and are too small by these factors.
        rate *= math.sqrt(1 - b**self.steps) / (1 - a**self.steps)
        self.mean = [a * m + (1 - a) * g for m, g in zip(self.mean, gradient)]
        self.square = [b * v + (1 - b) * (g * g) for v, g in zip(self.square, gradient)]
        return [x - rate * m / (tr.sqrt(v) + 1e-8) for x, m, v in zip(state, self.mean, self.square)]


@dataclass
class History:
    """The course of training: the loss of each epoch; the accuracies before the first epoch and after each."""

    loss: list[float] = field(default_factory=list)
    seen: list[float] = field(default_factory=list)
    unseen: list[float] = field(default_factory=list)

    def note(self, state: State, train: Digits, test: Digits) -> None:
        """Measure the state on the images it is trained on and on those it has not seen."""
        self.seen.append(accuracy(state, train))
        self.unseen.append(accuracy(state, test))


def fit(state: State, train: Digits, test: Digits, options: Options, console: Console) -> tuple[State, History]:
    """Train the state, with a progress bar."""
    rng = np.random.default_rng(options.seed)
    adam = Adam(state)
    slope = value_and_grad(cross_entropy)
    history = History()
    history.note(state, train, test)
    steps = math.ceil(len(train) / options.batch)
    columns = (
        TextColumn("epoch"),
        MofNCompleteColumn(),
        BarColumn(bar_width=24),
        TextColumn("loss {task.fields[loss]:.4f}  train {task.fields[seen]:.2%}  test {task.fields[unseen]:.2%}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task(
            "", total=options.epochs, loss=math.nan, seen=history.seen[-1], unseen=history.unseen[-1]
        )
        for epoch in range(options.epochs):
            losses = []
            for step, batch in enumerate(batches(train, options.batch, rng)):
                loss, gradient = slope(state, spins(batch.images), one_hot(batch.labels))
                done = (epoch + step / steps) / options.epochs
                state = adam.step(state, gradient, options.lr * (1 + math.cos(math.pi * done)) / 2)
                losses.append(float(loss))
                if not math.isfinite(losses[-1]):
                    raise NumericalError(
                        f"the loss became {losses[-1]} in epoch {epoch + 1} with --lr {options.lr}; "
                        "give a smaller learning rate"
                    )
                progress.update(bar, completed=epoch, loss=losses[-1])
            history.loss.append(float(np.mean(losses)))
            history.note(state, train, test)
            progress.update(
                bar, completed=epoch + 1, loss=history.loss[-1], seen=history.seen[-1], unseen=history.unseen[-1]
            )
    return state, history


# Reading the result ---------------------------------------------------------------------------------------------------


def entropies(state: State) -> np.ndarray[Any, Any]:
    """Entanglement entropy, in nats, at each of the 64 bonds of the 65 tensors.

    A sweep of QR decompositions from the right makes every tensor but the first an isometry; a sweep of singular
    value decompositions from the left then meets the Schmidt spectrum s of every bond: S = -sum p log p, p = s²/|s|².
    """
    chain = list(state)
    for i in range(len(chain) - 1, 0, -1):
        l, p, r = chain[i].shape
        q, upper = qr(tr.reshape(chain[i], (l, p * r)).mT)
        chain[i] = tr.reshape(q.mT, (-1, p, r))
        chain[i - 1] = einsum("lpr,kr->lpk", chain[i - 1], upper)
        chain[i - 1] = chain[i - 1] / tr.sqrt(tr.sum(chain[i - 1] * chain[i - 1]))
    found = []
    for i in range(len(chain) - 1):
        l, p, r = chain[i].shape
        _, s, vh = svd(tr.reshape(chain[i], (l * p, r)), full_matrices=False)
        weight = s * s / tr.sum(s * s)
        found.append(-float(tr.sum(weight * tr.log(tr.clip(weight, min=1e-300)))))
        chain[i + 1] = einsum("k,kl,lpr->kpr", s, vh, chain[i + 1])
    return np.array(found)


def draw(path: Path, history: History, before: State, after: State, test: Digits) -> None:
    """Training curve, confusion matrix, entropies along the chain, and digits that were misread."""
    taken = read(after, test)
    figure = Figure(figsize=(12, 8), layout="constrained")
    columns: Any = figure.subfigures(1, 2, width_ratios=(3, 2))
    upper, lower = columns[0].subplots(2, 1)
    draw_training(upper, history)
    draw_entropies(lower, entropies(before), entropies(after))
    table, gallery = columns[1].subfigures(2, 1, height_ratios=(3, 2))
    draw_confusion(table.subplots(), test.labels, taken)
    draw_misread(gallery, test, taken)
    figure.savefig(path, dpi=150)


def draw_training(axes: Any, history: History) -> None:
    """Loss on the left scale, accuracies on the right one."""
    epochs = np.arange(len(history.seen))
    loss = axes.semilogy(epochs[1:], history.loss, color="black", label="loss, images shifted at random")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set(title="Training", xlabel="epoch", ylabel="cross-entropy", xlim=(0, epochs[-1]))
    other = axes.twinx()
    seen = other.plot(epochs, 100 * np.array(history.seen), color="tab:blue", label="accuracy, training images")
    unseen = other.plot(epochs, 100 * np.array(history.unseen), color="tab:orange", label="accuracy, held-out images")
    other.set(ylabel="accuracy / %", ylim=(100 * min(history.seen + history.unseen) - 1, 100.3))
    other.legend(handles=[*loss, *seen, *unseen], loc="center right")


def draw_confusion(axes: Any, labels: np.ndarray[Any, Any], taken: np.ndarray[Any, Any]) -> None:
    """How often each digit (row) was taken for each other (column)."""
    table = confusion_matrix(labels, taken, labels=range(DIGITS))
    axes.imshow(np.log1p(table), cmap="Blues")
    for (y, x), count in np.ndenumerate(table):
        if count:
            axes.text(x, y, count, ha="center", va="center", color="white" if y == x else "tab:red")
    right = np.trace(table)
    axes.set(title=f"Held out: {right} of {len(labels)} right ({right / len(labels):.1%})", xlabel="read as")
    axes.set(ylabel="digit", xticks=range(DIGITS), yticks=range(DIGITS))


def draw_entropies(axes: Any, before: np.ndarray[Any, Any], after: np.ndarray[Any, Any]) -> None:
    """Entropy at each bond, before and after training."""
    bonds = np.arange(1, len(after) + 1)
    axes.plot(bonds, before, color="tab:gray", label="initial")
    axes.plot(bonds, after, color="tab:green", label="trained")
    axes.fill_between(bonds, after, color="tab:green", alpha=0.15)
    axes.axvline(MIDDLE + 0.5, color="black", linestyle=":", linewidth=1)
    axes.annotate("label", (MIDDLE + 0.5, 1), (4, -4), xycoords=("data", "axes fraction"), textcoords="offset points",
                  va="top")  # fmt: skip
    axes.set(title="Entanglement along the snake", xlabel="bond", ylabel="entropy / nats", xlim=(1, bonds[-1]))
    axes.set(xticks=range(0, PIXELS + 1, SIDE), ylim=(0, None))
    axes.legend(loc="lower right", bbox_to_anchor=(0.48, 0), frameon=False)


def draw_misread(panel: Any, test: Digits, taken: np.ndarray[Any, Any]) -> None:
    """Up to eight of the images that were misread."""
    wrong = np.flatnonzero(taken != test.labels)
    panel.suptitle(f"{len(wrong)} misread" + (", 8 of them:" if len(wrong) > 8 else ""))
    for axes in panel.subplots(2, 4).flat:
        axes.axis("off")
    for axes, i in zip(panel.axes, wrong):
        axes.imshow(test.images[i], cmap="gray_r")
        axes.set_title(f"{test.labels[i]} read as {taken[i]}", fontsize=9)


# The program ----------------------------------------------------------------------------------------------------------


def options_of(argv: Sequence[str] | None) -> Options:
    """Options from the command line; a bad one ends the program with status 2 and says what to give instead."""
    parser = argparse.ArgumentParser(
        prog="digits_mps",
        description="Train a matrix product state to read handwritten digits.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    for name, item in Options.__dataclass_fields__.items():
        kind = type(item.default) if isinstance(item.default, (int, float)) else Path
        parser.add_argument(f"--{name}", type=kind, default=item.default, help=item.metadata["help"])
    parser.add_argument("--quick", action="store_true", help="a small state and three epochs, to see that it works")
    given = vars(parser.parse_args(argv))
    if given.pop("quick"):
        given |= {"bond": min(given["bond"], 8), "epochs": min(given["epochs"], 3)}
    try:
        options = Options(**given)
        require_writable(options.out)
        return options
    except ArgumentError as error:
        parser.error(str(error))


def require_writable(path: Path) -> None:
    """Open the file, in a new folder if need be: better to fail now than after the work.

    Raises:
        ArgumentError: it cannot be written.
    """
    try:
        path.parent.mkdir(exist_ok=True)
        path.open("ab").close()
    except OSError as cause:
        raise ArgumentError(f"--out is {str(path)!r}, which cannot be written: {cause.strerror}") from cause


def main(argv: Sequence[str] | None = None) -> int:
    """Train, report and draw."""
    options = options_of(argv)
    console = Console()
    start = time.perf_counter()
    # A step that overflows shows in the loss, which is checked.
    with threadpool_limits(options.threads), np.errstate(over="ignore", invalid="ignore"):
        train, test = load(options.seed)
        before = initial_state(train, options.bond)
        numbers = sum(site.size for site in before)
        console.print(
            f"{len(train)} images to train on, {len(test)} held out; {numbers} numbers in {len(before)} tensors"
        )
        try:
            after, history = fit(before, train, test, options, console)
        except NumericalError as error:
            print(f"digits_mps: {error}", file=sys.stderr)
            return 1
        draw(options.out, history, before, after, test)
    console.print(
        f"held-out accuracy {history.unseen[-1]:.2%} after {time.perf_counter() - start:.1f} s, "
        f"{history.unseen[0]:.2%} before training; figure in {options.out}",
        soft_wrap=True,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
