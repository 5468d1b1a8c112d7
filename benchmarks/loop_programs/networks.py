"""Neural networks: convolution and pooling by windows, recurrent cells, attention in blocks."""

from typing import Any

import numpy as np

from loop_programs.record import Arguments, Namespace, programs

TAPS = 3
BLOCK = 16


def windows(xp: Namespace, image: Any, filters: Any, bias: Any) -> Any:
    """A convolution with ReLU, one output place after the other, each from its window of the image."""
    height, width = image.shape[0] - TAPS + 1, image.shape[1] - TAPS + 1
    out = xp.zeros((height, width, filters.shape[3]))

    def place(i: Any, j: Any, out: Any) -> Any:
        window = xp.dynamic_slice(image, (i, j, 0), (TAPS, TAPS, image.shape[2]))
        value = xp.sum(window[:, :, :, None] * filters, axis=(0, 1, 2)) + bias
        return out.at[i, j, :].set(xp.maximum(value, 0.0))

    def row(i: Any, out: Any) -> Any:
        return xp.fori_loop(0, width, lambda j, out: place(i, j, out), out)

    return xp.fori_loop(0, height, row, out)


def windows_numpy(image: Any, filters: Any, bias: Any) -> Any:
    height, width = image.shape[0] - TAPS + 1, image.shape[1] - TAPS + 1
    out = np.empty((height, width, filters.shape[3]))
    for i in range(height):
        for j in range(width):
            out[i, j] = np.tensordot(image[i : i + TAPS, j : j + TAPS], filters, 3) + bias
    return np.maximum(out, 0.0)


def pooled(xp: Namespace, image: Any) -> Any:
    """The maximum of every two by two places, one output row after the other."""
    height, width, channels = image.shape[0] // 2, image.shape[1] // 2, image.shape[2]

    def row(_: Any, i: Any) -> Any:
        pair = xp.dynamic_slice(image, (2 * i, 0, 0), (2, image.shape[1], channels))
        return None, xp.max(xp.reshape(pair, (2, width, 2, channels)), axis=(0, 2))

    return xp.scan(row, None, xp.arange(height))[1]


def pooled_numpy(image: Any) -> Any:
    height, width, channels = image.shape[0] // 2, image.shape[1] // 2, image.shape[2]
    out = np.empty((height, width, channels))
    for i in range(height):
        out[i] = image[2 * i : 2 * i + 2].reshape(2, width, 2, channels).max(axis=(0, 2))
    return out


def layer(xp: Any, x: Any, w: Any) -> Any:
    """A convolution of a batch by one product for each tap, ReLU, and pooling by strided slices."""
    height, width = x.shape[1] - TAPS + 1, x.shape[2] - TAPS + 1
    y = sum(x[:, i : i + height, j : j + width] @ w[i, j] for i in range(TAPS) for j in range(TAPS))
    top = xp.maximum(y[:, ::2, ::2], y[:, 1::2, ::2])
    return xp.maximum(xp.maximum(top, xp.maximum(y[:, ::2, 1::2], y[:, 1::2, 1::2])), 0.0)


def convolutional(xp: Namespace, x: Any, w1: Any, w2: Any, w3: Any) -> Any:
    """Two convolutions with pooling, a dense layer, and the logarithms of the probabilities of classes."""
    y = layer(xp, layer(xp, x, w1), w2)
    logits = xp.reshape(y, (x.shape[0], w3.shape[0])) @ w3
    return logits - xp.logsumexp(logits, axis=1, keepdims=True)


def convolutional_numpy(x: Any, w1: Any, w2: Any, w3: Any) -> Any:
    logits = layer(np, layer(np, x, w1), w2).reshape(len(x), -1) @ w3
    most = logits.max(axis=1, keepdims=True)
    return logits - most - np.log(np.exp(logits - most).sum(axis=1, keepdims=True))


def recurrent(xp: Namespace, w: Any, u: Any, xs: Any) -> Any:
    """A plain recurrent cell over a sequence, and all of its states."""

    def cell(h: Any, x: Any) -> Any:
        h = xp.tanh(w @ h + u @ x)
        return h, h

    return xp.scan(cell, xp.zeros_like(w[0]), xs)[1]


def recurrent_numpy(w: Any, u: Any, xs: Any) -> Any:
    h, rows = np.zeros(len(w)), np.empty((len(xs), len(w)))
    for t, x in enumerate(xs):
        rows[t] = h = np.tanh(w @ h + u @ x)
    return rows


def lstm(xp: Namespace, w: Any, bias: Any, xs: Any) -> Any:
    """Long short-term memory over a batch of sequences, and its last state."""
    n = bias.shape[0] // 4

    def gate(x: Any) -> Any:
        return 1.0 / (1.0 + xp.exp(-x))

    def cell(state: Any, x: Any) -> Any:
        h, c = state
        z = xp.concat([x, h], axis=1) @ w + bias
        c = gate(z[:, n : 2 * n]) * c + gate(z[:, :n]) * xp.tanh(z[:, 2 * n : 3 * n])
        return (gate(z[:, 3 * n :]) * xp.tanh(c), c), None

    zero = xp.zeros((xs.shape[1], n))
    return xp.scan(cell, (zero, zero), xs)[0]


def lstm_numpy(w: Any, bias: Any, xs: Any) -> Any:
    n = len(bias) // 4
    gate = lambda x: 1.0 / (1.0 + np.exp(-x))
    h = c = np.zeros((xs.shape[1], n))
    for x in xs:
        z = np.concatenate([x, h], axis=1) @ w + bias
        c = gate(z[:, n : 2 * n]) * c + gate(z[:, :n]) * np.tanh(z[:, 2 * n : 3 * n])
        h = gate(z[:, 3 * n :]) * np.tanh(c)
    return h, c


def blocked_attention(xp: Namespace, q: Any, k: Any, v: Any) -> Any:
    """Attention over blocks of keys, with the running maximum and sum that make the softmax exact."""

    def block(state: Any, keys: Any) -> Any:
        most, total, out = state
        scores = q @ keys[0].T / 4.0
        new = xp.maximum(most, xp.max(scores, axis=1))
        weights, shrink = xp.exp(scores - new[:, None]), xp.exp(most - new)
        return (new, shrink * total + xp.sum(weights, axis=1), shrink[:, None] * out + weights @ keys[1]), None

    start = (xp.full((q.shape[0],), -1e30), xp.zeros((q.shape[0],)), xp.zeros_like(q))
    (_, total, out), _ = xp.scan(block, start, (k, v))
    return out / total[:, None]


def blocked_attention_numpy(q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.reshape(-1, k.shape[2]).T / 4.0
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights @ v.reshape(-1, v.shape[2]) / weights.sum(axis=1, keepdims=True)


def pictures(n: int, rng: np.random.Generator) -> Arguments:
    return rng.normal(size=(n, n, 4)), rng.normal(size=(TAPS, TAPS, 4, 8)), rng.normal(size=8)


def even_pictures(n: int, rng: np.random.Generator) -> Arguments:
    return (rng.normal(size=(2 * n, 2 * n, 8)),)


def batches(n: int, rng: np.random.Generator) -> Arguments:
    w1, w2 = rng.normal(size=(TAPS, TAPS, 1, 4)) / 3.0, rng.normal(size=(TAPS, TAPS, 4, 8)) / 6.0
    return rng.normal(size=(n, 18, 18, 1)), w1, w2, rng.normal(size=(72, 10)) / 8.0


def sequence(n: int, rng: np.random.Generator) -> Arguments:
    width = 8 + n // 20
    w, u = rng.normal(size=(width, width)), rng.normal(size=(width, 5))
    return w / np.sqrt(width), u, rng.normal(size=(n, 5))


def sequences(n: int, rng: np.random.Generator) -> Arguments:
    return 0.3 * rng.normal(size=(6 + n, 4 * n)), 0.1 * rng.normal(size=4 * n), rng.normal(size=(20, 4, 6))


def blocks(n: int, rng: np.random.Generator) -> Arguments:
    return rng.normal(size=(4 * n, 16)), rng.normal(size=(n, BLOCK, 16)), rng.normal(size=(n, BLOCK, 16))


PROGRAMS = programs(
    "networks",
    (windows, windows_numpy, pictures, (6, 14, 48), (1, 2)),
    (pooled, pooled_numpy, even_pictures, (3, 16, 100), (0,)),
    (convolutional, convolutional_numpy, batches, (2, 4, 64), (1, 2, 3)),
    (recurrent, recurrent_numpy, sequence, (6, 60, 1000), (0, 1)),
    (lstm, lstm_numpy, sequences, (3, 12, 64), (0, 1)),
    (blocked_attention, blocked_attention_numpy, blocks, (2, 12, 40), (0, 1, 2)),
)
