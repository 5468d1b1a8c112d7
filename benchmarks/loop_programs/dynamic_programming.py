"""Dynamic programming: tables filled element by element, row by row or by whole relaxations."""

from typing import Any

import numpy as np

from loop_programs.record import Arguments, Namespace, programs

BLANK = 0
FLOOR = -1e30
"""Logarithm of a probability of zero, finite so that gradients are."""


def base_pairs(xp: Namespace, bases: Any) -> Any:
    """The largest number of nested pairs in every stretch of a chain of bases, short stretches first."""
    n = bases.shape[0]
    places = xp.arange(n)

    def stretch(i: Any, d: Any, table: Any) -> Any:
        j = i + d
        pair = xp.where(bases[i] + bases[j] == 3, 1, 0)
        inside = xp.where(d > 1, table[xp.minimum(i + 1, n - 1), xp.maximum(j - 1, 0)], 0)
        split = xp.where((places >= i) & (places < j), table[i] + xp.roll(table[:, j], -1), 0)
        return table.at[i, j].set(xp.maximum(inside + pair, xp.max(split)))

    def diagonal(d: Any, table: Any) -> Any:
        return xp.fori_loop(0, n - d, lambda i, table: stretch(i, d, table), table)

    return xp.fori_loop(1, n, diagonal, xp.zeros((n, n), dtype=xp.int64))


def base_pairs_numpy(bases: Any) -> Any:
    n = len(bases)
    table = np.zeros((n, n), dtype="int64")
    for d in range(1, n):
        for i in range(n - d):
            j = i + d
            inside = table[i + 1, j - 1] if d > 1 else 0
            split = table[i, i:j] + table[i + 1 : j + 1, j]
            table[i, j] = max(inside + (bases[i] + bases[j] == 3), split.max())
    return table


def shortest_paths(xp: Namespace, lengths: Any) -> Any:
    """All pairs by Floyd and Warshall: one more node may be passed through in each step."""

    def through(k: Any, d: Any) -> Any:
        return xp.minimum(d, d[:, k][:, None] + d[k][None, :])

    return xp.fori_loop(0, lengths.shape[0], through, lengths)


def shortest_paths_numpy(lengths: Any) -> Any:
    d = lengths.copy()
    for k in range(len(d)):
        np.minimum(d, d[:, k, None] + d[k], out=d)
    return d


def edit_distance(xp: Namespace, a: Any, b: Any) -> Any:
    """Levenshtein's table in one array, element after element."""
    n, m = a.shape[0], b.shape[0]
    table = xp.zeros((n + 1, m + 1), dtype=xp.int64).at[0, :].set(xp.arange(m + 1)).at[:, 0].set(xp.arange(n + 1))

    def element(i: Any, j: Any, t: Any) -> Any:
        changed = t[i - 1, j - 1] + xp.where(a[i - 1] == b[j - 1], 0, 1)
        return t.at[i, j].set(xp.minimum(changed, xp.minimum(t[i - 1, j], t[i, j - 1]) + 1))

    def row(i: Any, t: Any) -> Any:
        return xp.fori_loop(1, m + 1, lambda j, t: element(i, j, t), t)

    return xp.fori_loop(1, n + 1, row, table)


def edit_distance_numpy(a: Any, b: Any) -> Any:
    t = np.zeros((len(a) + 1, len(b) + 1), dtype="int64")
    t[0], t[:, 0] = np.arange(len(b) + 1), np.arange(len(a) + 1)
    places = np.arange(len(b) + 1)
    for i in range(1, len(a) + 1):
        t[i, 1:] = np.minimum(t[i - 1, :-1] + (a[i - 1] != b), t[i - 1, 1:] + 1)
        t[i] = np.minimum.accumulate(t[i] - places) + places
    return t


def soft_warping(xp: Namespace, x: Any, y: Any) -> Any:
    """Dynamic time warping of two series with a soft minimum, element after element."""
    n, m = x.shape[0], y.shape[0]
    table = xp.full((n + 1, m + 1), 1e10).at[0, 0].set(0.0)

    def element(i: Any, j: Any, t: Any) -> Any:
        u, v, w = t[i - 1, j - 1], t[i - 1, j], t[i, j - 1]
        least = xp.minimum(u, xp.minimum(v, w))
        soft = least - xp.log(xp.exp(least - u) + xp.exp(least - v) + xp.exp(least - w))
        return t.at[i, j].set((x[i - 1] - y[j - 1]) ** 2 + soft)

    def row(i: Any, t: Any) -> Any:
        return xp.fori_loop(1, m + 1, lambda j, t: element(i, j, t), t)

    return xp.fori_loop(1, n + 1, row, table)[n, m]


def soft_warping_numpy(x: Any, y: Any) -> Any:
    n, m = len(x), len(y)
    t = np.full((n + 1, m + 1), 1e10)
    t[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            u, v, w = t[i - 1, j - 1], t[i - 1, j], t[i, j - 1]
            least = min(u, v, w)
            soft = least - np.log(np.exp(least - u) + np.exp(least - v) + np.exp(least - w))
            t[i, j] = (x[i - 1] - y[j - 1]) ** 2 + soft
    return t[n, m]


def ctc(xp: Namespace, scores: Any, labels: Any) -> Any:
    """Minus the logarithm of the probability of a labelling, summed over its alignments to the frames."""
    count = 2 * labels.shape[0] + 1
    extended = xp.full((count,), BLANK, dtype=labels.dtype).at[1::2].set(labels)
    skips = xp.concat([xp.zeros(2, dtype=xp.bool), (extended[2:] != BLANK) & (extended[2:] != extended[:-2])])
    logits = xp.take(scores - xp.logsumexp(scores, axis=1, keepdims=True), extended, axis=1)
    floor = xp.full((2,), FLOOR)

    def frame(alpha: Any, row: Any) -> Any:
        one, two = xp.concat([floor[:1], alpha[:-1]]), xp.concat([floor, alpha[:-2]])
        return xp.logaddexp(xp.logaddexp(alpha, one), xp.where(skips, two, FLOOR)) + row, None

    start = xp.where(xp.arange(count) < 2, logits[0], FLOOR)
    alpha, _ = xp.scan(frame, start, logits[1:])
    return -xp.logaddexp(alpha[-1], alpha[-2])


def ctc_numpy(scores: Any, labels: Any) -> Any:
    extended = np.full(2 * len(labels) + 1, BLANK, dtype=labels.dtype)
    extended[1::2] = labels
    skips = np.concatenate([[False, False], (extended[2:] != BLANK) & (extended[2:] != extended[:-2])])
    most = scores.max(axis=1, keepdims=True)
    logits = (scores - most - np.log(np.exp(scores - most).sum(axis=1, keepdims=True)))[:, extended]
    alpha = np.where(np.arange(len(extended)) < 2, logits[0], FLOOR)
    for row in logits[1:]:
        one, two = np.concatenate([[FLOOR], alpha[:-1]]), np.concatenate([[FLOOR, FLOOR], alpha[:-2]])
        alpha = np.logaddexp(np.logaddexp(alpha, one), np.where(skips, two, FLOOR)) + row
    return -np.logaddexp(alpha[-1], alpha[-2])


def hmm_forward(xp: Namespace, transition: Any, emission: Any, observed: Any) -> Any:
    """The log-likelihood of observations under a hidden Markov chain, filtered with normalised probabilities."""
    a, b = xp.softmax(transition, axis=1), xp.softmax(emission, axis=1)
    start = xp.full((a.shape[0],), 1.0) / a.shape[0]

    def step(carry: Any, o: Any) -> Any:
        p, total = carry
        p = (p @ a) * b[:, o]
        norm = xp.sum(p)
        return (p / norm, total + xp.log(norm)), None

    return xp.scan(step, (start, xp.zeros(())), observed)[0][1]


def softmax_rows(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def hmm_forward_numpy(transition: Any, emission: Any, observed: Any) -> Any:
    a, b, total = softmax_rows(transition), softmax_rows(emission), 0.0
    p = np.full(len(a), 1.0 / len(a))
    for o in observed:
        p = (p @ a) * b[:, o]
        norm = p.sum()
        p, total = p / norm, total + np.log(norm)
    return total


def viterbi(xp: Namespace, transition: Any, scores: Any) -> Any:
    """The best path of states through a chain, and its score: a scan forward, and one back along the choices."""

    def forward(best: Any, row: Any) -> Any:
        through = best[:, None] + transition
        return xp.max(through, axis=0) + row, xp.argmax(through, axis=0)

    best, choices = xp.scan(forward, scores[0], scores[1:])
    last = xp.argmax(best)
    _, path = xp.scan(lambda state, row: (row[state], row[state]), last, choices, reverse=True)
    return xp.max(best), xp.concat([path, last[None]])


def viterbi_numpy(transition: Any, scores: Any) -> Any:
    best, choices = scores[0], []
    for row in scores[1:]:
        through = best[:, None] + transition
        choices.append(through.argmax(axis=0))
        best = through.max(axis=0) + row
    path = [best.argmax()]
    for row in choices[::-1]:
        path.append(row[path[-1]])
    return best.max(), np.array(path[::-1])


def knapsack(xp: Namespace, weights: Any, values: Any, room: Any) -> Any:
    """The best value for every capacity, one item after the other."""
    places = xp.arange(room.shape[0])

    def item(best: Any, pair: Any) -> Any:
        weight, value = pair
        taken = xp.where(places >= weight, xp.take(best, xp.maximum(places - weight, 0)) + value, 0.0)
        return xp.maximum(best, taken), None

    return xp.scan(item, room, (weights, values))[0]


def knapsack_numpy(weights: Any, values: Any, room: Any) -> Any:
    best = room.copy()
    for w, v in zip(weights, values):
        best[w:] = np.maximum(best[w:], best[: len(best) - w] + v)
    return best


def chain(n: int, rng: np.random.Generator) -> Arguments:
    return (rng.integers(0, 4, n),)


def distances(n: int, rng: np.random.Generator) -> Arguments:
    return (rng.uniform(1.0, 10.0, (n, n)) * (1.0 - np.eye(n)),)


def words(n: int, rng: np.random.Generator) -> Arguments:
    return rng.integers(0, 4, n), rng.integers(0, 4, n + n // 5)


def series(n: int, rng: np.random.Generator) -> Arguments:
    return rng.normal(size=n), rng.normal(size=n + n // 5)


def frames(n: int, rng: np.random.Generator) -> Arguments:
    return rng.normal(size=(n, 30)), rng.integers(1, 30, n // 3)


def hidden(n: int, rng: np.random.Generator) -> Arguments:
    return rng.normal(size=(12, 12)), rng.normal(size=(12, 7)), rng.integers(0, 7, n)


def scored(n: int, rng: np.random.Generator) -> Arguments:
    return rng.normal(size=(16, 16)), rng.normal(size=(n, 16))


def items(n: int, rng: np.random.Generator) -> Arguments:
    return rng.integers(1, 20, n), rng.uniform(1.0, 9.0, n), np.zeros(10 * n)


PROGRAMS = programs(
    "dynamic programming",
    (base_pairs, base_pairs_numpy, chain, (7, 30, 110)),
    (shortest_paths, shortest_paths_numpy, distances, (5, 40, 180)),
    (edit_distance, edit_distance_numpy, words, (6, 40, 200)),
    (soft_warping, soft_warping_numpy, series, (5, 16, 80), (0, 1)),
    (ctc, ctc_numpy, frames, (9, 60, 400), (0,)),
    (hmm_forward, hmm_forward_numpy, hidden, (6, 100, 2000), (0, 1)),
    (viterbi, viterbi_numpy, scored, (5, 60, 1000)),
    (knapsack, knapsack_numpy, items, (6, 40, 300)),
)
