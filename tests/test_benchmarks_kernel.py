"""Does the benchmark of the kernel machines judge and add up rightly?"""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp

from benchmarks import certificate
from benchmarks.certificate import Answered, LargeGram
from benchmarks.kernel_cases import CASES, cases_of, hold_out
from benchmarks.kernel_report import Ratio, Result, mean_of, slope_of, summary_of
from benchmarks.libraries import prepare_maxmargin, read_fit
from benchmarks.optimality import measure

SETTINGS = {
    "SVC": {"C": 10.0, "gamma": 0.3},
    "SVR": {"C": 1.0, "gamma": 0.3, "epsilon": 0.1},
    "OneClassSVM": {"nu": 0.2, "gamma": 0.3},
}


def of(case: str, library: str, seconds: float | None, **found: float) -> Result:
    known = {} if seconds is None else {"seconds": seconds} | found
    return Result(case, library, "done" if known else "cut", 60.0, known)


@pytest.mark.parametrize("machine, is_sparse", [*product(SETTINGS, (False, True))])
def test_a_large_gram_matrix_gives_the_same_certificate(
    machine: str, is_sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificate, "BLOCK_VALUES", 1000)
    X = np.random.default_rng(0).normal(size=(90, 4))
    y = np.arange(90) % 3 if machine == "SVC" else X[:, 0] ** 2
    settings = SETTINGS[machine]
    model = prepare_maxmargin(X, y, machine, **settings)()
    asked = Answered(machine, y, settings)
    small = certificate.rbf(X, X, settings["gamma"])
    large = LargeGram(sp.csr_matrix(X) if is_sparse else X, settings["gamma"])

    by_small, by_large = (
        certificate.problems_of(asked, read_fit(model), K) for K in (small, large)
    )

    for one, other in zip(by_small, by_large, strict=True):
        expected, found = measure(one), measure(other)
        assert found.objective == pytest.approx(expected.objective)
        assert found.violation == pytest.approx(expected.violation, abs=1e-10)
        assert found.is_optimal(1e-3)


def test_four_fifths_are_for_training() -> None:
    split = hold_out(np.arange(50.0)[:, None], np.arange(50))

    assert len(split.y) == 40
    assert sorted([*split.y, *split.y_test]) == list(range(50))


def test_without_a_folder_the_bundled_cases_are_timed() -> None:
    assert {CASES[name].group for name in cases_of("main", None)} == {"bundled"}


def test_a_peer_that_was_cut_off_bounds_the_ratio() -> None:
    results = [
        of("a9a", "maxmargin", 2.0, objective=-10.0),
        of("a9a", "scikit-learn", None),
        of("a9a", "libsvm-official", 8.0, objective=-9.999),
    ]

    summary = summary_of("a9a", results)

    assert summary["fastest"] == Ratio(4.0)
    assert summary["reference"] == Ratio(30.0, is_bound=True)
    assert summary["objective"] == pytest.approx(-1e-4, rel=1e-3)


def test_a_mean_of_bounds_is_a_bound() -> None:
    mean = mean_of([Ratio(2.0), None, Ratio(8.0, is_bound=True)])

    assert mean is not None
    assert str(mean) == "> 4.00"


def test_slope_of_a_square_is_two() -> None:
    results = [
        of(f"covtype-{n}", "maxmargin", 1e-8 * n**2, rows=n)
        for n in (10_000, 31_623, 100_000)
    ]

    assert slope_of(results, "maxmargin") == pytest.approx(2.0)
