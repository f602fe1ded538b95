"""How does a model of the features that occur become one of all features?

`fit` keeps the columns that hold something where these are few of very many. Formats of
other programs have a place for every feature.
"""

from dataclasses import replace

import numpy as np
from scipy import sparse

from maxmargin.cli.console import Failure
from maxmargin.cli.model_files import ModelFile
from maxmargin.data.scaling import Scaling
from maxmargin.models.kernel_model import KernelModel
from maxmargin.models.linear_model import LinearModel
from maxmargin.typing import FloatMatrix, IntVector

MOST_CELLS = 1 << 27  # 1 GiB of float64


def with_all_features(file: ModelFile) -> ModelFile:
    """The same model with every column of the data; its scaling stays as it is."""
    if file.columns is None:
        return file
    columns, width, model = file.columns, file.n_features, file.model
    if isinstance(model, KernelModel):
        support = sparse.csr_matrix(model.support)
        parts = support.data, columns[support.indices], support.indptr
        shape = support.shape[0], width
        support = sparse.csr_matrix(parts, shape=shape)
        return replace(file, model=replace(model, support=support, n_features=width))
    check_cells(len(model.coef), width)
    return replace(file, model=_spread_weights(model, columns, width))


def scaling_of_all_features(file: ModelFile) -> Scaling:
    """The scaling with every column of the data; those left out do not vary."""
    assert file.scaling is not None
    if file.columns is None:
        return file.scaling
    check_cells(2, file.n_features)
    low, high = np.zeros(file.n_features), np.zeros(file.n_features)
    low[file.columns], high[file.columns] = file.scaling.low, file.scaling.high
    return replace(file.scaling, low=low, high=high)


def check_cells(n_rows: int, n_features: int) -> None:
    """Refuse what would be written out densely and not fit into memory."""
    if n_rows * n_features > MOST_CELLS:
        raise Failure(
            f"the format has a place for each of {n_features:,} features, and {n_rows} "
            f"rows of them are too many: number the features that occur from 1 on, and "
            "fit again"
        )


def _spread_weights(model: LinearModel, columns: IntVector, width: int) -> LinearModel:
    coef: FloatMatrix = np.zeros((len(model.coef), width))
    coef[:, columns] = model.coef
    return replace(model, coef=coef)
