"""What is a kernel, computed as slowly and plainly as can be?"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def dense(X: Any) -> Floats:
    """X as a float64 array, whatever its layout."""
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)


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


def gram(fitted: Any, A: Any, B: Any) -> Floats:
    """The kernel of ``fitted`` between rows A and rows B (not for 'precomputed')."""
    kernel = fitted.kernel
    if callable(kernel):
        return dense(kernel(A, B))
    A, B = dense(A), dense(B)
    if kernel == "linear":
        return linear(A, B)
    if kernel == "poly":
        return polynomial(A, B, fitted._gamma, fitted.coef0, fitted.degree)
    if kernel == "sigmoid":
        return sigmoid(A, B, fitted._gamma, fitted.coef0)
    return {"rbf": rbf, "laplacian": laplacian}[kernel](A, B, fitted._gamma)


def training_gram(fitted: Any, X: Any) -> Floats:
    """The kernel between all rows the machine was trained on."""
    return dense(X) if fitted.kernel == "precomputed" else gram(fitted, X, X)
