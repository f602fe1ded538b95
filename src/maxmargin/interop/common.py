"""What do LIBSVM's and LIBLINEAR's packages share? Reading, judging, scaling.

Names, arguments and results are those of their module commonutil.
"""

import sys
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.errors import InvalidInput
from maxmargin.interop.evaluation import score

DENSER = 3  # nonzeros after scaling, in those before, that deserve a warning


def svm_read_problem(data_source: Any, return_scipy: bool = False) -> tuple[Any, Any]:
    """Read labels and samples in LIBSVM's format.

    Parameters
    ----------
    data_source : str, path or file open for reading text or bytes
        Files that end in .gz, .bz2 or .xz are unpacked.
    return_scipy : bool, default False
        Whether to return arrays rather than lists.

    Returns
    -------
    (y, x)
        A list of numbers and a list of dictionaries from index to value; or an array
        and a csr_matrix whose first column is index 1 (0 where the file has one).
    """
    from maxmargin.data.svmlight import read_svmlight

    if hasattr(data_source, "read"):
        text = data_source.read()
        data_source = text.encode() if isinstance(text, str) else text
    found = read_svmlight(data_source, index_base=0)
    X, y = found.X, found.y
    if not return_scipy:
        return y.tolist(), rows_as_dicts(X)
    first = 0 if _has_zeroth(X) else 1
    X.eliminate_zeros()
    width = int(X.indices.max(initial=0)) + 1
    return y, sp.csr_matrix(X[:, first:width])


def _has_zeroth(X: Any) -> bool:
    return bool((X.indices == 0).any())


def rows_as_dicts(X: Any) -> list[dict[int, float]]:
    """One dictionary per row of a CSR matrix, from column to value."""
    indices, data, ends = X.indices.tolist(), X.data.tolist(), X.indptr.tolist()
    return [dict(zip(indices[a:b], data[a:b], strict=True)) for a, b in pairwise(ends)]


def evaluations_scipy(ty: Any, pv: Any) -> tuple[float, float, float]:
    """As `evaluations`, of arrays only."""
    if not (isinstance(ty, np.ndarray) and isinstance(pv, np.ndarray)):
        raise TypeError("type of ty and pv must be ndarray")
    return score(ty, pv).plain()


def evaluations(ty: Any, pv: Any, useScipy: bool = True) -> tuple[float, float, float]:
    """Accuracy in percent, mean squared error, squared correlation coefficient.

    Parameters
    ----------
    ty, pv : list, tuple or ndarray
        True and predicted values.
    useScipy : bool
        Without effect: both ways lead to the same numbers.
    """
    return score(np.asarray(ty), np.asarray(pv)).plain()


def csr_find_scale_param(x: Any, lower: float = -1, upper: float = 1) -> dict[str, Any]:
    """The factors and offsets that map each feature to [lower, upper]."""
    _check_csr(x)
    if not lower < upper:
        raise InvalidInput(f"lower must be below upper, got {lower} and {upper}.")
    low = x.min(axis=0).toarray().ravel()
    high = x.max(axis=0).toarray().ravel()
    spread = (high - low) / (upper - lower)
    coef = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread != 0.0)
    offset = np.where(coef != 0.0, lower - low * coef, 0.0)
    if np.count_nonzero(offset) * x.shape[0] > DENSER * x.getnnz():
        _warn(
            "WARNING: The #nonzeros of the scaled data is at least 2 times larger than "
            "the original one.\nIf feature values are non-negative and sparse, set "
            "lower=0 rather than the default lower=-1."
        )
    return {"coef": coef, "offset": offset}


def csr_scale(x: Any, scale_param: dict[str, Any]) -> Any:
    """Samples scaled by what `csr_find_scale_param` found; unknown features vanish."""
    _check_csr(x)
    coef, offset = np.asarray(scale_param["coef"]), np.asarray(scale_param["offset"])
    if len(coef) != len(offset):
        raise InvalidInput(
            f"coef and offset must be equally long, got {len(coef)} and {len(offset)}."
        )
    n_rows, n = x.shape
    if n != len(coef):
        _warn(
            "WARNING: The dimension of scaling parameters and feature number do not "
            "match."
        )
        coef, offset = _resized(coef, n), _resized(offset, n)
    used = np.flatnonzero(offset)
    moved = (
        np.tile(offset[used], n_rows),
        np.tile(used, n_rows),
        len(used) * np.arange(n_rows + 1),
    )
    scaled = sp.csr_matrix(x.dot(sp.diags(coef, 0, shape=(n, n))))
    scaled = scaled + sp.csr_matrix(moved, shape=x.shape)
    if scaled.getnnz() > x.getnnz():
        _warn(
            f"WARNING: original #nonzeros {x.getnnz()}\n"
            f"       > new      #nonzeros {scaled.getnnz()}\n"
            "If feature values are non-negative and sparse, get scale_param by setting "
            "lower=0 rather than the default lower=-1."
        )
    return scaled


def _resized(values: Any, n: int) -> Any:
    """Cut, or filled up with zeros."""
    out = np.zeros(n)
    out[: min(n, len(values))] = values[:n]
    return out


def _check_csr(x: Any) -> None:
    if not (sp.issparse(x) and x.format == "csr"):
        raise TypeError(
            f"x must be a sparse matrix in CSR format, got {type(x).__name__}: pass "
            "scipy.sparse.csr_matrix(x)."
        )


def _warn(text: str) -> None:
    print(text, file=sys.stderr)
