"""Vectors the way users have them: numpy's arrays where numpy is installed."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Iterable

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray


def matrix(rows: Iterable[bytes], count: int, width: int) -> "NDArray[float32]":
    """`count` rows of `width` floats each, from their bytes.

    An array [count, width] of float32 that is the caller's to change; without
    numpy a list of lists of floats.
    """
    try:
        import numpy
    except ImportError:
        return [array("f", row).tolist() for row in rows]  # type: ignore
    vectors = numpy.empty((count, width), numpy.float32)
    for i, row in enumerate(rows):
        vectors[i] = numpy.frombuffer(row, numpy.float32)
    return vectors
