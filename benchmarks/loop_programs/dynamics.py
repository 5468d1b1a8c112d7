"""Estimation and differential equations: Kalman filter, Runge-Kutta, adaptive steps, an inverse problem, descent."""

from typing import Any

import numpy as np

from loop_programs.record import Arguments, Namespace, programs

ITERATIONS = 30
SOLVER_STEPS = 12


def kalman(xp: Namespace, a: Any, c: Any, q: Any, r: Any, ys: Any) -> Any:
    """Minus the log-likelihood of measurements of a linear system, and the filtered means."""
    one = xp.eye(a.shape[0])

    def step(carry: Any, y: Any) -> Any:
        x, p, total = carry
        x, p = a @ x, a @ p @ a.T + q
        error, s = y - c @ x, c @ p @ c.T + r
        gain = xp.linalg.solve(s, c @ p).T
        whitened = xp.linalg.solve(s, error[:, None])[:, 0]
        total = total + 0.5 * (xp.sum(error * whitened) + xp.linalg.slogdet(s)[1])
        x = x + gain @ error
        return (x, (one - gain @ c) @ p, total), x

    (_, _, total), means = xp.scan(step, (xp.zeros_like(a[0]), one, xp.zeros(())), ys)
    return total, means


def kalman_numpy(a: Any, c: Any, q: Any, r: Any, ys: Any) -> Any:
    one, x, p, total, means = np.eye(len(a)), np.zeros(len(a)), np.eye(len(a)), 0.0, np.empty((len(ys), len(a)))
    for t, y in enumerate(ys):
        x, p = a @ x, a @ p @ a.T + q
        error, s = y - c @ x, c @ p @ c.T + r
        gain = np.linalg.solve(s, c @ p).T
        total += 0.5 * (error @ np.linalg.solve(s, error) + np.linalg.slogdet(s)[1])
        means[t] = x = x + gain @ error
        p = (one - gain @ c) @ p
    return total, means


def runge_kutta(xp: Namespace, theta: Any, start: Any, data: Any) -> Any:
    """The misfit of a predator-prey model to data, by the classical method of fourth order."""

    def rate(s: Any) -> Any:
        x, y = s[0], s[1]
        return xp.stack([theta[0] * x - theta[1] * x * y, theta[2] * x * y - theta[3] * y])

    def step(carry: Any, seen: Any) -> Any:
        s, total = carry
        k1 = rate(s)
        k2 = rate(s + 0.01 * k1)
        k3 = rate(s + 0.01 * k2)
        k4 = rate(s + 0.02 * k3)
        s = s + 0.02 / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        return (s, total + xp.sum((s - seen) ** 2)), None

    return xp.scan(step, (start, xp.zeros(())), data)[0][1]


def runge_kutta_numpy(theta: Any, start: Any, data: Any) -> Any:
    def rate(s: Any) -> Any:
        x, y = s
        return np.array([theta[0] * x - theta[1] * x * y, theta[2] * x * y - theta[3] * y])

    s, total = start, 0.0
    for seen in data:
        k1 = rate(s)
        k2 = rate(s + 0.01 * k1)
        k3 = rate(s + 0.01 * k2)
        k4 = rate(s + 0.02 * k3)
        s = s + 0.02 / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        total += np.sum((s - seen) ** 2)
    return total


def oscillator(xp: Any, s: Any, mu: Any) -> Any:
    """The rate of independent Van der Pol oscillators: positions in the first row, velocities in the second."""
    return xp.stack([s[1], mu * (1.0 - s[0] * s[0]) * s[1] - s[0]])


def trial(xp: Any, s: Any, h: Any, mu: Any) -> Any:
    """A step of Bogacki and Shampine's pair, and its error."""
    k1 = oscillator(xp, s, mu)
    k2 = oscillator(xp, s + 0.5 * h * k1, mu)
    k3 = oscillator(xp, s + 0.75 * h * k2, mu)
    new = s + h * (2.0 / 9.0 * k1 + 1.0 / 3.0 * k2 + 4.0 / 9.0 * k3)
    k4 = oscillator(xp, new, mu)
    return new, xp.max(xp.abs(h * (-5.0 / 72.0 * k1 + k2 / 12.0 + k3 / 9.0 - 0.125 * k4)))


def adaptive(xp: Namespace, start: Any, mu: Any, end: Any) -> Any:
    """Integration to a time with steps that follow the error, and the number of trials."""

    def body(state: Any) -> Any:
        t, s, h, count = state
        h = xp.minimum(h, end - t)
        new, error = trial(xp, s, h, mu)
        taken = error < 1e-6
        factor = xp.minimum(2.0, xp.maximum(0.3, 0.9 * (1e-6 / (error + 1e-30)) ** (1.0 / 3.0)))
        return t + xp.where(taken, h, 0.0), xp.where(taken, new, s), h * factor, count + 1

    state = (xp.zeros(()), start, xp.asarray(0.01), xp.asarray(0))
    _, s, _, count = xp.while_loop(lambda state: state[0] < end - 1e-12, body, state)
    return s, count


def adaptive_numpy(start: Any, mu: Any, end: Any) -> Any:
    t, s, h, count = 0.0, start, 0.01, 0
    while t < end - 1e-12:
        h = min(h, end - t)
        new, error = trial(np, s, h, mu)
        if error < 1e-6:
            t, s = t + h, new
        h *= min(2.0, max(0.3, 0.9 * (1e-6 / (error + 1e-30)) ** (1.0 / 3.0)))
        count += 1
    return s, count


def heat_misfit(xp: Namespace, conductivity: Any, start: Any, seen: Any) -> Any:
    """The misfit of the heat in a rod with unknown conductivity to what was seen at one place in every step."""
    between = 0.5 * (conductivity[1:] + conductivity[:-1])
    middle = start.shape[0] // 2

    def step(carry: Any, value: Any) -> Any:
        u, total = carry
        flux = between * (u[1:] - u[:-1])
        u = u.at[1:-1].add(0.4 * (flux[1:] - flux[:-1]))
        return (u, total + (u[middle] - value) ** 2), None

    return xp.scan(step, (start, xp.zeros(())), seen)[0][1]


def heat_misfit_numpy(conductivity: Any, start: Any, seen: Any) -> Any:
    between, u, total = 0.5 * (conductivity[1:] + conductivity[:-1]), start.copy(), 0.0
    for value in seen:
        flux = between * (u[1:] - u[:-1])
        u[1:-1] += 0.4 * (flux[1:] - flux[:-1])
        total += (u[len(u) // 2] - value) ** 2
    return total


def descent(xp: Namespace, x: Any, y: Any, rates: Any) -> Any:
    """Logistic regression by gradient descent with momentum, differentiated by the rates."""

    def step(_: Any, state: Any) -> Any:
        w, m = state
        p = 1.0 / (1.0 + xp.exp(-(x @ w)))
        m = rates[1] * m + x.T @ (p - y) / y.shape[0]
        return w - rates[0] * m, m

    zero = xp.zeros((x.shape[1],))
    return xp.fori_loop(0, ITERATIONS, step, (zero, zero))[0]


def descent_numpy(x: Any, y: Any, rates: Any) -> Any:
    w = m = np.zeros(x.shape[1])
    for _ in range(ITERATIONS):
        p = 1.0 / (1.0 + np.exp(-(x @ w)))
        m = rates[1] * m + x.T @ (p - y) / len(y)
        w = w - rates[0] * m
    return w


def conjugate_gradients(xp: Namespace, a: Any, b: Any) -> Any:
    """A positive definite system by a fixed number of steps of conjugate gradients."""

    def step(_: Any, state: Any) -> Any:
        x, r, p, square = state
        ap = a @ p
        alpha = square / xp.sum(p * ap)
        x, r = x + alpha * p, r - alpha * ap
        new = xp.sum(r * r)
        return x, r, r + new / square * p, new

    start = (xp.zeros_like(b), b, b, xp.sum(b * b))
    return xp.fori_loop(0, SOLVER_STEPS, step, start)[0]


def conjugate_gradients_numpy(a: Any, b: Any) -> Any:
    x, r, p, square = np.zeros_like(b), b, b, b @ b
    for _ in range(SOLVER_STEPS):
        ap = a @ p
        alpha = square / (p @ ap)
        x, r = x + alpha * p, r - alpha * ap
        p, square = r + (r @ r) / square * p, r @ r
    return x


def particle_filter(xp: Namespace, start: Any, noise: Any, places: Any, ys: Any) -> Any:
    """Means of a nonlinear state, from samples that are drawn again after each measurement by systematic resampling."""
    count = start.shape[0]

    def step(x: Any, given: Any) -> Any:
        shake, place, y = given
        x = 0.5 * x + 2.0 * x / (1.0 + x * x) + shake
        weights = xp.softmax(-0.5 * (y - 0.1 * x * x) ** 2)
        sums = xp.cumulative_sum(weights)
        drawn = xp.searchsorted(sums, (xp.arange(count) + place) / count * sums[-1])
        return xp.take(x, xp.minimum(drawn, count - 1)), xp.sum(weights * x)

    return xp.scan(step, start, (noise, places, ys))


def particle_filter_numpy(x: Any, noise: Any, places: Any, ys: Any) -> Any:
    count, means = len(x), np.empty_like(ys)
    for t, (shake, place, y) in enumerate(zip(noise, places, ys)):
        x = 0.5 * x + 2.0 * x / (1.0 + x * x) + shake
        weights = np.exp(-0.5 * (y - 0.1 * x * x) ** 2)
        weights /= weights.sum()
        means[t], sums = weights @ x, np.cumsum(weights)
        drawn = np.searchsorted(sums, (np.arange(count) + place) / count * sums[-1])
        x = x[np.minimum(drawn, count - 1)]
    return x, means


def tracking(n: int, rng: np.random.Generator) -> Arguments:
    a = np.eye(4) + 0.1 * np.eye(4, k=2)
    c = np.eye(2, 4) + 0.1 * rng.normal(size=(2, 4))
    return a, c, 0.01 * np.eye(4), 0.1 * np.eye(2), np.cumsum(0.1 * rng.normal(size=(n, 2)), axis=0)


def prey(n: int, rng: np.random.Generator) -> Arguments:
    return np.array([1.1, 0.4, 0.1, 0.4]), np.array([6.0, 3.0]), rng.uniform(1.0, 9.0, (n, 2))


def oscillators(n: int, rng: np.random.Generator) -> Arguments:
    return rng.normal(size=(2, n)), rng.uniform(0.5, 3.0, n), np.asarray(2.0)


def rod(n: int, rng: np.random.Generator) -> Arguments:
    return rng.uniform(0.5, 1.0, n), np.sin(np.linspace(0.0, np.pi, n)), rng.uniform(0.5, 1.0, 2 * n)


def classes(n: int, rng: np.random.Generator) -> Arguments:
    x = rng.normal(size=(10 * n, n))
    return x, (x @ rng.normal(size=n) > 0.0).astype("float64"), np.array([0.5, 0.8])


def definite(n: int, rng: np.random.Generator) -> Arguments:
    a = rng.normal(size=(n, n))
    return a @ a.T / n + np.eye(n), rng.normal(size=n)


def sampled(n: int, rng: np.random.Generator) -> Arguments:
    return rng.normal(size=n), rng.normal(size=(20, n)), rng.uniform(0.01, 0.99, 20), rng.normal(size=20)


PROGRAMS = programs(
    "dynamics",
    (kalman, kalman_numpy, tracking, (5, 60, 1000), (0, 1, 2, 3)),
    (runge_kutta, runge_kutta_numpy, prey, (5, 60, 2000), (0, 1)),
    (adaptive, adaptive_numpy, oscillators, (3, 20, 1000)),
    (particle_filter, particle_filter_numpy, sampled, (7, 60, 4000)),
    (heat_misfit, heat_misfit_numpy, rod, (7, 80, 600), (0,)),
    (descent, descent_numpy, classes, (3, 8, 60), (2,)),
    (conjugate_gradients, conjugate_gradients_numpy, definite, (6, 60, 500), (0, 1)),
)
