"""Faster versions of methods: when they hold, how they are compiled, and how compiled loops call them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def is_own(owner: object, faster: str, *methods: str) -> bool:
    """Whether `faster` was written for these methods: no subclass has replaced one of them since.

    A subclass that changes its step and inherits the compiled one would otherwise run the step of its parent.
    """
    order = type(owner).__mro__

    def place(name: str) -> int:
        return next((place for place, kind in enumerate(order) if name in vars(kind)), len(order))

    return all(place(faster) <= place(name) for name in methods)


def compile_kernel(kernel: Kernel, **options: Any) -> Kernel:
    """Compile without fast-math, so that sums keep their order; keep the result on disk where a folder allows it."""
    from numba import njit

    try:
        return njit(nogil=True, cache=True, **options)(kernel)  # type: ignore[no-any-return]
    except RuntimeError:  # no folder to cache in
        return njit(nogil=True, **options)(kernel)  # type: ignore[no-any-return]


def branchless(kernel: Kernel, **options: Any) -> Kernel:
    """Compile so that a division by zero gives infinity: an error would be a branch, and no loop with it a vector's."""
    return compile_kernel(kernel, error_model="numpy", **options)


@cache
def compile_block(function: Callable[..., None], vectors: int) -> Any:
    """A function of a count and so many vectors, which writes into some of them, as a value that compiled loops call.

    They call it through a pointer: a loop is compiled once, whatever functions it is given. Vectors are pointers too
    (`consenso.kernels.compiled.at`): Numba would count references to arrays in each call.
    """
    from numba import cfunc, float64, int64, types

    signature = types.void(int64, *[types.CPointer(float64)] * vectors)
    options = {"nopython": True, "error_model": "numpy"}
    try:
        return cfunc(signature, cache=True, **options)(function)
    except RuntimeError:  # no folder to cache in
        return cfunc(signature, **options)(function)
