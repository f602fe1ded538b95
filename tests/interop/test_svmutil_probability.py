"""Does `-b 1` train and use probabilities as LIBSVM's module does?"""

from __future__ import annotations

import numpy as np
import pytest

import maxmargin.svmutil as svm
from maxmargin.interop.c_rand import PROCESS

X = np.random.default_rng(0).normal(size=(60, 4)).round(3)
Y = np.where(X[:, 0] + X[:, 1] > 0, 1.0, -1.0)


def test_training_for_probabilities_draws_its_folds_from_rand():
    def sigmoid():
        model = svm.svm_train(Y, X, "-b 1 -q")
        return model.core.prob_a.tolist() + model.core.prob_b.tolist()

    PROCESS.srand(1)
    first, second = sigmoid(), sigmoid()
    PROCESS.srand(1)

    assert sigmoid() == first != second
    model = svm.svm_train(Y, X, "-b 1 -q")
    labels, _, shares = svm.svm_predict(Y, X, model, "-b 1 -q")
    best = np.array(model.get_labels())[np.argmax(shares, axis=1)]
    assert labels == best.tolist()
    assert model.is_probability_model()


def test_cross_validation_with_probabilities_predicts_the_likeliest():
    PROCESS.srand(1)
    first = svm.svm_train(Y, X, "-b 1 -v 3 -q")
    PROCESS.srand(1)

    assert svm.svm_train(Y, X, "-b 1 -v 3 -q") == first
    assert first > 50


def test_probabilities_of_a_model_without_them_are_refused():
    model = svm.svm_train(Y, X, "-q")

    with pytest.raises(ValueError, match="probabiliy"):
        svm.svm_predict(Y, X, model, "-b 1")
