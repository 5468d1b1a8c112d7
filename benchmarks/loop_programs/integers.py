"""Integers and bits: checksums, hashes, random numbers, counting."""

from typing import Any

import numpy as np

from loop_programs.record import Arguments, Namespace, programs

POLYNOMIAL = 0xA001
PRIME, OFFSET = 16777619, 2166136261
BINS = 32


def crc16(xp: Namespace, data: Any) -> Any:
    """The cyclic redundancy check of bytes, bit by bit, in the reflected form."""

    def byte(crc: Any, value: Any) -> Any:
        def bit(_: Any, crc: Any) -> Any:
            return xp.where(crc & 1 == 1, (crc >> 1) ^ POLYNOMIAL, crc >> 1)

        return xp.fori_loop(0, 8, bit, crc ^ value), None

    return xp.scan(byte, xp.full((), 0xFFFF, dtype=xp.int32), data)[0]


def crc16_numpy(data: Any) -> Any:
    crc = 0xFFFF
    for value in data.tolist():
        crc ^= value
        for _ in range(8):
            crc = (crc >> 1) ^ POLYNOMIAL if crc & 1 else crc >> 1
    return np.int32(crc)


def hashes(xp: Namespace, words: Any) -> Any:
    """FNV-1a of many words at once, one column of bytes a step, modulo 2**32."""

    def column(h: Any, byte: Any) -> Any:
        return (h ^ byte) * xp.asarray(PRIME, dtype=xp.uint32), None

    return xp.scan(column, xp.full((words.shape[1],), OFFSET, dtype=xp.uint32), words)[0]


def hashes_numpy(words: Any) -> Any:
    h = np.full(words.shape[1], OFFSET, dtype="uint32")
    for row in words:
        h = (h ^ row) * np.uint32(PRIME)
    return h


def hash_chain(xp: Namespace, seed: Any) -> Any:
    """A chain of xorshift steps of one 64-bit state, each state kept."""

    def step(s: Any, _: Any) -> Any:
        s = s ^ (s << 13)
        s = s ^ (s >> 7)
        s = s ^ (s << 17)
        return s, s

    return xp.scan(step, seed[0], seed)[1]


def hash_chain_numpy(seed: Any) -> Any:
    out, s, mask = np.empty_like(seed), int(seed[0]), 2**64 - 1
    for n in range(len(seed)):
        s ^= s << 13 & mask
        s ^= s >> 7
        s ^= s << 17 & mask
        out[n] = s
    return out


def histogram(xp: Namespace, x: Any) -> Any:
    """Counts of values between 0 and 1 in equal bins, value by value."""

    def count(counts: Any, value: Any) -> Any:
        return counts.at[xp.astype(value * BINS, xp.int64)].add(1), None

    return xp.scan(count, xp.zeros((BINS,), dtype=xp.int64), x)[0]


def histogram_numpy(x: Any) -> Any:
    return np.bincount((x * BINS).astype("int64"), minlength=BINS)


def weighted_bins(xp: Namespace, x: Any, weights: Any) -> Any:
    """The mean weight in each bin, by one update with many indices."""
    places = xp.astype(x * BINS, xp.int64)
    sums = xp.zeros((BINS,)).at[places].add(weights)
    return sums / xp.maximum(xp.zeros((BINS,)).at[places].add(1.0), 1.0)


def weighted_bins_numpy(x: Any, weights: Any) -> Any:
    places = (x * BINS).astype("int64")
    return np.bincount(places, weights, BINS) / np.maximum(np.bincount(places, minlength=BINS), 1)


def collatz(xp: Namespace, start: Any) -> Any:
    """Steps until every number of an array has come to 1, under a `while_loop` for all of them."""

    def body(state: Any) -> Any:
        n, steps = state
        after = xp.where(n % 2 == 0, n // 2, 3 * n + 1)
        return xp.where(n == 1, n, after), steps + xp.where(n == 1, 0, 1)

    return xp.while_loop(lambda state: xp.any(state[0] != 1), body, (start, xp.zeros_like(start)))[1]


def collatz_numpy(start: Any) -> Any:
    n, steps = start.copy(), np.zeros_like(start)
    while (more := n != 1).any():
        n = np.where(more, np.where(n % 2 == 0, n // 2, 3 * n + 1), n)
        steps += more
    return steps


def sieve(xp: Namespace, candidates: Any) -> Any:
    """The sieve of Eratosthenes: for every prime below the square root, a loop over its multiples."""
    n = candidates.shape[0]

    def cross_out(p: Any, prime: Any) -> Any:
        def body(state: Any) -> Any:
            k, prime = state
            return k + p, prime.at[k].set(False)

        first = xp.where(prime[p], p * p, n)
        return xp.while_loop(lambda state: state[0] < n, body, (first, prime))[1]

    def body(state: Any) -> Any:
        p, prime = state
        return p + 1, cross_out(p, prime)

    start = (xp.asarray(2), candidates.at[:2].set(False))
    return xp.while_loop(lambda state: state[0] * state[0] < n, body, start)[1]


def sieve_numpy(candidates: Any) -> Any:
    prime = candidates.copy()
    prime[:2] = False
    p = 2
    while p * p < len(prime):
        if prime[p]:
            prime[p * p :: p] = False
        p += 1
    return prime


def insertion_sort(xp: Namespace, x: Any) -> Any:
    """Each value moves down, place by place, as long as a greater one is before it."""

    def insert(i: Any, x: Any) -> Any:
        value = x[i]

        def body(state: Any) -> Any:
            j, x = state
            return j - 1, x.at[j].set(x[j - 1])

        def greater(state: Any) -> Any:
            j, x = state
            return (j > 0) & (x[xp.maximum(j - 1, 0)] > value)

        j, x = xp.while_loop(greater, body, (i, x))
        return x.at[j].set(value)

    return xp.fori_loop(1, x.shape[0], insert, x)


def insertion_sort_numpy(x: Any) -> Any:
    x = x.copy()
    for i in range(1, len(x)):
        j = np.searchsorted(x[:i], x[i], side="right")
        x[j : i + 1] = np.roll(x[j : i + 1], 1)
    return x


def components(xp: Namespace, start: Any, edges: Any) -> Any:
    """The root of every node of a graph: an edge joins two trees by a `cond`, if they are not one already."""

    def root(parents: Any, node: Any) -> Any:
        return xp.while_loop(lambda n: parents[n] != n, lambda n: parents[n], node)

    def join(parents: Any, edge: Any) -> Any:
        a, b = root(parents, edge[0]), root(parents, edge[1])
        low, high = xp.minimum(a, b), xp.maximum(a, b)
        return xp.cond(a == b, lambda p: p, lambda p: p.at[high].set(low), parents), None

    def shorten(i: Any, parents: Any) -> Any:
        return parents.at[i].set(parents[parents[i]])

    return xp.fori_loop(0, start.shape[0], shorten, xp.scan(join, start, edges)[0])


def components_numpy(start: Any, edges: Any) -> Any:
    parents = start.tolist()
    for a, b in edges.tolist():
        while parents[a] != a:
            a = parents[a]
        while parents[b] != b:
            b = parents[b]
        parents[max(a, b)] = min(a, b)
    for i in range(len(parents)):
        parents[i] = parents[parents[i]]
    return np.array(parents)


def machine(xp: Namespace, codes: Any, registers: Any) -> Any:
    """A program of a small machine with four kinds of instructions: a `switch` in a loop."""

    def step(r: Any, code: Any) -> Any:
        kind, a, b = code[0], code[1], code[2]
        branches = (
            lambda r: r.at[a].set(r[a] + r[b]),
            lambda r: r.at[a].set(r[a] ^ (r[b] >> 3)),
            lambda r: r.at[b].set(r[a] * 5 + 1),
            lambda r: r.at[a].set(r[b]).at[b].set(r[a]),
        )
        return xp.switch(kind, branches, r), None

    return xp.scan(step, registers, codes)[0]


def machine_numpy(codes: Any, registers: Any) -> Any:
    r, wrap = registers.tolist(), lambda n: (n + 2**63) % 2**64 - 2**63
    for kind, a, b in codes.tolist():
        if kind == 0:
            r[a] = wrap(r[a] + r[b])
        elif kind == 1:
            r[a] ^= r[b] >> 3
        elif kind == 2:
            r[b] = wrap(r[a] * 5 + 1)
        else:
            r[a], r[b] = r[b], r[a]
    return np.array(r)


def octets(n: int, rng: np.random.Generator) -> Arguments:
    return (rng.integers(0, 256, n, dtype="int32"),)


def words(n: int, rng: np.random.Generator) -> Arguments:
    return (rng.integers(0, 256, (24, n), dtype="uint32"),)


def seeds(n: int, rng: np.random.Generator) -> Arguments:
    return (rng.integers(1, 2**63, n, dtype="uint64"),)


def values(n: int, rng: np.random.Generator) -> Arguments:
    return (rng.uniform(size=n),)


def weighted(n: int, rng: np.random.Generator) -> Arguments:
    return rng.uniform(size=n), rng.normal(size=n)


def numbers(n: int, rng: np.random.Generator) -> Arguments:
    return (np.arange(1, n + 1),)


def all_true(n: int, rng: np.random.Generator) -> Arguments:
    return (np.ones(n, dtype=bool),)


def unsorted(n: int, rng: np.random.Generator) -> Arguments:
    return (rng.normal(size=n),)


def graph(n: int, rng: np.random.Generator) -> Arguments:
    return np.arange(n), rng.integers(0, n, (n // 2, 2))


def instructions(n: int, rng: np.random.Generator) -> Arguments:
    codes = np.stack([rng.integers(0, 4, n), rng.integers(0, 8, n), rng.integers(0, 8, n)], axis=1)
    return codes, rng.integers(-1000, 1000, 8)


PROGRAMS = programs(
    "integers",
    (crc16, crc16_numpy, octets, (6, 200, 5000)),
    (hashes, hashes_numpy, words, (5, 4000, 200_000)),
    (hash_chain, hash_chain_numpy, seeds, (6, 1000, 50_000)),
    (histogram, histogram_numpy, values, (40, 20_000, 400_000)),
    (weighted_bins, weighted_bins_numpy, weighted, (40, 30_000, 400_000), (1,)),
    (collatz, collatz_numpy, numbers, (9, 200, 5000)),
    (sieve, sieve_numpy, all_true, (50, 60_000, 600_000)),
    (insertion_sort, insertion_sort_numpy, unsorted, (9, 60, 1000)),
    (components, components_numpy, graph, (9, 200, 10_000)),
    (machine, machine_numpy, instructions, (9, 200, 10_000)),
)
