"""Cameras and hands: residuals of geometric models, and their Jacobians by blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ad_applications.record import Application, Library


def _rotated(xp: Library, axis: Any, x: Any) -> Any:
    """Rodrigues' rotation of a point about an axis, by its length in radians."""
    square = xp.sum(axis**2)

    def by_angle(_: Any) -> Any:
        angle = xp.sqrt(square)
        w = axis / angle
        turned = xp.cos(angle) * x + xp.sin(angle) * _cross(xp, w, x)
        return turned + xp.sum(w * x) * (1 - xp.cos(angle)) * w

    return xp.cond(square > 0, by_angle, lambda _: x + _cross(xp, axis, x), 0.0)


def _cross(xp: Library, a: Any, b: Any) -> Any:
    return xp.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def _projection_error(xp: Library, camera: Any, point: Any, weight: Any, seen: Any) -> Any:
    """Where a camera with radial distortion sees a point, less where it was seen."""
    x = _rotated(xp, camera[:3], point - camera[3:6])
    flat = x[:2] / x[2]
    r = xp.sum(flat**2)
    distorted = flat * (1 + camera[9] * r + camera[10] * r * r)
    return weight * (camera[6] * distorted + camera[7:9] - seen)


def bundle_adjustment(xp: Library) -> Callable[..., Any]:
    """The blocks of the sparse Jacobian of all projection errors: by camera, point and weight of each observation."""

    def one(camera: Any, point: Any, weight: Any, seen: Any) -> Any:
        return _projection_error(xp, camera, point, weight, seen)

    blocks = xp.vmap(xp.jacrev(one, argnums=(0, 1, 2)))

    def task(cameras: Any, points: Any, weights: Any, seen: Any, of_camera: Any, of_point: Any) -> Any:
        return (*blocks(cameras[of_camera], points[of_point], weights, seen), 1 - weights**2)

    return task


def _observations(n: int, random: np.random.Generator) -> tuple[Any, ...]:
    cameras, points = max(1, n // 50), max(1, n // 4)
    pose = 0.1 * random.normal(size=(cameras, 11))
    pose[0, :3] = 0.0  # a camera that is not turned
    pose[:, 5] -= 5.0
    where = random.integers(0, cameras, n), random.integers(0, points, n)
    return pose, random.normal(size=(points, 3)), random.normal(size=n), random.normal(size=(n, 2)), *where


PARENTS = (-1, 0, 1, 2, 0, 4, 5, 0, 7, 8)
"""A palm and three fingers of three bones."""


def hand_tracking(xp: Library) -> Callable[..., Any]:
    """Jacobian of the distances between a posed hand and seen points, by the angles of its joints and its place."""

    def turn(angles: Any) -> Any:
        c, s = xp.cos(angles), xp.sin(angles)
        one, zero = xp.ones_like(c[0]), xp.zeros_like(c[0])
        x = xp.stack([one, zero, zero, zero, c[0], -s[0], zero, s[0], c[0]])
        y = xp.stack([c[1], zero, s[1], zero, one, zero, -s[1], zero, c[1]])
        z = xp.stack([c[2], -s[2], zero, s[2], c[2], zero, zero, zero, one])
        return xp.reshape(z, (3, 3)) @ xp.reshape(y, (3, 3)) @ xp.reshape(x, (3, 3))

    def posed(theta: Any, rest: Any, offsets: Any, skin: Any) -> Any:
        angles = xp.reshape(theta[3:], (len(PARENTS), 3))
        turns, places = [], []
        for bone, parent in enumerate(PARENTS):
            own = turn(angles[bone])
            if parent < 0:
                turns.append(own)
                places.append(theta[:3] + offsets[bone])
            else:
                turns.append(turns[parent] @ own)
                places.append(places[parent] + turns[parent] @ offsets[bone])
        moved = xp.stack([rest[i] @ xp.moveaxis(turns[i], 0, 1) + places[i] for i in range(len(PARENTS))])
        return xp.sum(skin[:, :, None] * moved, axis=0)

    def residuals(theta: Any, us: Any, rest: Any, offsets: Any, skin: Any, corners: Any, seen: Any) -> Any:
        vertices = posed(theta, rest, offsets, skin)
        a, b, c = (vertices[corners[:, k]] for k in range(3))
        hit = us[:, :1] * a + us[:, 1:] * b + (1 - us[:, :1] - us[:, 1:]) * c
        return seen - hit

    def task(theta: Any, us: Any, rest: Any, offsets: Any, skin: Any, corners: Any, seen: Any) -> Any:
        def one(u: Any, corner: Any, point: Any) -> Any:
            f = lambda u: residuals(theta, u[None], rest, offsets, skin, corner[None], point[None])[0]
            return xp.jacfwd(f)(u)

        by_pose = xp.jacfwd(residuals)(theta, us, rest, offsets, skin, corners, seen)
        return by_pose, xp.vmap(one)(us, corners, seen)

    return task


def _hand(n: int, random: np.random.Generator) -> tuple[Any, ...]:
    bones, vertices = len(PARENTS), 40
    skin = random.uniform(size=(bones, vertices))
    return (
        0.3 * random.normal(size=3 + 3 * bones),
        random.uniform(0, 0.5, (n, 2)),
        random.normal(size=(bones, vertices, 3)),
        random.normal(size=(bones, 3)),
        skin / skin.sum(axis=0),
        random.integers(0, vertices, (n, 3)),
        random.normal(size=(n, 3)),
    )


APPLICATIONS = [
    Application("bundle adjustment", bundle_adjustment, _observations, (9, 1000)),
    Application("hand tracking", hand_tracking, _hand, (5, 200)),
]
