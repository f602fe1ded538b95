"""What is a kernel, computed as slowly and plainly as can be?

Every formula is written out, distances come from differences, and the result has the
precision of the rows: float64 for float64 rows, extended for longdouble ones.
Nothing here comes from maxmargin.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating[Any]]


def dense(X: Any, dtype: Any = np.float64) -> Floats:
    """X as an array, whatever its layout."""
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=dtype)


def linear(A: Floats, B: Floats) -> Floats:
    """Every <a, b>, summed term by term."""
    return np.array([(a * B).sum(axis=1) for a in A]).reshape(len(A), len(B))


def polynomial(A: Floats, B: Floats, gamma: float, coef0: float, degree: int) -> Floats:
    """Every (gamma <a, b> + coef0)^degree."""
    return (gamma * linear(A, B) + coef0) ** degree


def rbf(A: Floats, B: Floats, gamma: float) -> Floats:
    """Every exp(-gamma |a - b|^2), from the differences themselves."""
    squares = [((a - B) ** 2).sum(axis=1) for a in A]
    return np.exp(-gamma * np.array(squares).reshape(len(A), len(B)))


def laplacian(A: Floats, B: Floats, gamma: float) -> Floats:
    """Every exp(-gamma sum |a - b|)."""
    lengths = [np.abs(a - B).sum(axis=1) for a in A]
    return np.exp(-gamma * np.array(lengths).reshape(len(A), len(B)))


def sigmoid(A: Floats, B: Floats, gamma: float, coef0: float) -> Floats:
    """Every tanh(gamma <a, b> + coef0)."""
    return np.tanh(gamma * linear(A, B) + coef0)


def gram(fitted: Any, A: Any, B: Any, dtype: Any = np.float64) -> Floats:
    """The kernel of ``fitted`` between rows A and rows B (not for 'precomputed')."""
    kernel = fitted.kernel
    if callable(kernel):
        return dense(kernel(A, B), dtype)
    A, B = dense(A, dtype), dense(B, dtype)
    if kernel == "linear":
        return linear(A, B)
    if kernel == "poly":
        return polynomial(A, B, fitted._gamma, fitted.coef0, fitted.degree)
    if kernel == "sigmoid":
        return sigmoid(A, B, fitted._gamma, fitted.coef0)
    return {"rbf": rbf, "laplacian": laplacian}[kernel](A, B, fitted._gamma)


def training_gram(fitted: Any, X: Any, dtype: Any = np.float64) -> Floats:
    """The kernel between all rows the machine was trained on."""
    if fitted.kernel == "precomputed":
        return dense(X, dtype)
    return gram(fitted, X, X, dtype)


def rounding_sizes(fitted: Any, A: Any, B: Any, K: Floats) -> Floats:
    """For each value of K = gram(fitted, A, B), what its float64 rounding scales with.

    Any float64 evaluation is off by a small multiple of eps times this: the terms of a
    dot product, times the derivative of the function that is applied to it. Distances
    lose nothing beyond the value itself, since u exp(-u) < 1.
    """
    kernel, size = fitted.kernel, np.abs(K)
    if callable(kernel) or kernel in ("precomputed", "rbf", "laplacian"):
        return size
    terms = np.abs(dense(A)) @ np.abs(dense(B)).T
    if kernel == "linear":
        return terms
    terms = (fitted._gamma * terms + abs(fitted.coef0)).astype(K.dtype)
    if kernel == "sigmoid":
        return size + terms * (1 - size) * (1 + size)
    return size + fitted.degree * terms**fitted.degree
