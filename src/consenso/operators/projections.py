"""Projections onto the intersection of two simple sets, for a batch of points."""

from __future__ import annotations

import numpy as np

from consenso.arrays import Array

HALVINGS = 60


def into_box_and_ball(point: Array, low: Array, high: Array, centre: Array, radius: float) -> Array:
    """The closest points that lie in boxes and within `radius` of `centre`, (parties, dim); the two must meet.

    With a multiplier for the ball the closest point is clip(s point + (1 - s) centre) for an s in [0, 1], whose
    distance to the centre grows with s; the largest s that is allowed is found by halving.
    """

    def at(share: Array) -> Array:
        clipped: Array = np.clip(share * point + (1 - share) * centre, low, high)
        return clipped

    inside, outside = np.zeros((len(point), 1)), np.ones((len(point), 1))
    inside = np.where(_lengths(at(outside) - centre) <= radius, outside, inside)
    for _ in range(HALVINGS):
        middle = (inside + outside) / 2
        allowed = _lengths(at(middle) - centre) <= radius
        inside, outside = np.where(allowed, middle, inside), np.where(allowed, outside, middle)
    return at(inside)


def into_two_balls(point: Array, first: float, centre: Array, second: float) -> Array:
    """The closest points within `first` of zero and `second` of `centre`, (parties, dim); `first` holds the centres.

    If the projection onto one ball is in the other, it is the closest point. Otherwise the point is on both spheres, in
    the plane of zero, the centre and the point that is projected.
    """
    tiny = np.finfo(float).tiny
    one = point * np.minimum(1.0, first / np.maximum(_lengths(point), tiny))
    away = point - centre
    two = centre + away * np.minimum(1.0, second / np.maximum(_lengths(away), tiny))
    # Spheres around almost the same centre do not cross: the point is not used then, and must only be a number.
    length = np.maximum(_lengths(centre), 1e-12 * first)
    axis = centre / length
    along = np.clip((first**2 + length**2 - second**2) / (2 * length), -first, first)
    across = point - np.sum(point * axis, axis=1, keepdims=True) * axis
    across = across / np.maximum(_lengths(across), tiny)
    both = along * axis + np.sqrt(np.maximum(first**2 - along**2, 0.0)) * across
    in_second, in_first = _lengths(one - centre) <= second, _lengths(two) <= first
    return np.where(in_second, one, np.where(in_first, two, both))


def _lengths(vectors: Array) -> Array:
    lengths: Array = np.linalg.norm(vectors, axis=1, keepdims=True)
    return lengths
