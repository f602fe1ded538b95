"""Is what machines say of samples held out what their coefficients sum up to?"""

import numpy as np
import pytest
from datasets import load

from maxmargin.data.labels import Labels, encode_labels
from maxmargin.data.rows import as_rows
from maxmargin.kernels import RBF
from maxmargin.kernels.gram import VectorGram, gram_block
from maxmargin.kernels.held import HeldGram
from maxmargin.problems import kkt_violation
from maxmargin.problems.classification import largest_nu
from maxmargin.selection.chains import Chain
from maxmargin.selection.formulations import CSvc, Formulation, NuSvc, NuSvr, Place
from maxmargin.selection.lines import Line
from maxmargin.selection.plan import FoldTask, Plan, Task
from maxmargin.selection.sources import ComputedSource, HeldSource, Source
from maxmargin.solvers import Options, Status

N = 260
WAY = [1e-7, 1e-6, 1e-3, 0.1, 10.0, 1.0, 1000.0, 10.0]  # not always upwards


def made_of(
    folds: str, order: str, is_held: bool, form: Formulation | None = None
) -> tuple[Line, np.ndarray]:
    """A line on four classes, and K."""
    X, y = load("vehicle", N)
    code = encode_labels(y)
    place = np.argsort(code.code, kind="stable") if order == "sorted" else np.arange(N)
    labels, X = Labels(code.classes, code.code[place]), X[place]
    outside = [np.arange(f, N, 4) for f in range(4)]
    if folds == "overlapping":
        outside = [np.random.default_rng(f).permutation(N)[:70] for f in range(3)]
    tasks = []
    for own in outside:
        weight = np.ones(N)
        weight[own] = 0.0
        tasks.append(FoldTask(weight, own))
    kernel, everybody = RBF(0.3), np.arange(N)
    K = gram_block(VectorGram(kernel, as_rows(X)), everybody, everybody)
    source: Source = ComputedSource(kernel, as_rows(X))
    if is_held:
        source = HeldSource(HeldGram(K))
    plan = Plan(Task(labels, tasks, form or CSvc()), is_held)
    return Line(plan, lambda: source, Options()), K


def walk(line: Line, at: float) -> None:
    for task in line.tasks(Place(at)):
        task()
    for task in line.listen(Place(at)):
        task()


def said_by(chain: Chain, K: np.ndarray, outside: np.ndarray) -> np.ndarray:
    assert chain.solved is not None
    reading, coef = chain.solved.reading, chain.solved.coef
    sums = K[np.ix_(outside, chain.block.samples)] @ coef
    said: np.ndarray = sums / reading.margin + reading.intercept
    return said


def check_slopes(chain: Chain, K: np.ndarray, at: float) -> None:
    """The violation is what K itself says."""
    assert chain.solved is not None
    rows, coef = chain.block.samples, chain.solved.coef
    problem = CSvc().problem(chain.y, chain.weight, Place(at))
    grad = K[np.ix_(rows, rows)] @ coef + problem.linear
    violation = kkt_violation(problem, coef, grad)
    assert violation == pytest.approx(chain.solved.found.violation, abs=1e-8)


@pytest.mark.parametrize("is_held", [True, False])
@pytest.mark.parametrize("order", ["sorted", "mixed"])
@pytest.mark.parametrize("folds", ["plain", "overlapping"])
def test_decisions_are_kernel_sums_wherever_the_line_has_been(
    folds: str, order: str, is_held: bool
) -> None:
    line, K = made_of(folds, order, is_held)

    for at in WAY:
        walk(line, at)
        for f, answer in enumerate(line.answers()):
            outside = line.plan.task.folds[f].outside
            for p, chain in enumerate(line.chains[f]):
                expected = said_by(chain, K, outside)
                assert answer.decisions[:, p] == pytest.approx(expected, abs=1e-8)


def test_slopes_stay_exact_on_a_long_way() -> None:
    line, K = made_of("plain", "sorted", True)

    for at in [1e-13, 1e-9, 1e-5, 0.1, 1000.0]:
        walk(line, at)
        for own in line.chains:
            for chain in own:
                check_slopes(chain, K, at)


def test_whoever_comes_back_to_another_place_in_memory_reads_nothing_old() -> None:
    line, K = made_of("plain", "sorted", True)
    room = K.copy()
    sources = [HeldSource(HeldGram(room))]
    line = Line(line.plan, lambda: sources[-1], Options())

    walk(line, 1.0)
    line.release()
    room[:] = 7.0  # somebody else's
    sources.append(HeldSource(HeldGram(K)))
    walk(line, 1e-4)  # nothing was solved below: it begins anew

    for own in line.chains:
        for chain in own:
            check_slopes(chain, K, 1e-4)


def test_a_fold_without_a_solution_says_nothing_until_it_has_one() -> None:
    line, K = made_of("plain", "sorted", True, NuSvc())
    outside = line.plan.task.folds[0].outside

    most = [largest_nu(chain.y, chain.weight) for chain in line.chains[0]]
    walk(line, 0.5 * min(most))
    walk(line, 0.5 * (min(most) + max(most)))  # too much for some pairs
    missing = [chain.solved is None for chain in line.chains[0]]
    assert any(missing) and not all(missing)
    decisions = line.answers()[0].decisions
    assert np.isnan(decisions).all(axis=0).tolist() == missing

    walk(line, 0.9 * min(most))
    decisions = line.answers()[0].decisions
    for p, chain in enumerate(line.chains[0]):
        assert decisions[:, p] == pytest.approx(said_by(chain, K, outside), rel=1e-8)


def test_a_solution_inside_all_boxes_is_not_looked_for_again() -> None:
    line, _ = made_of("plain", "sorted", True)

    walk(line, 1e6)
    first = line.answers()
    inside = [
        [bool((np.abs(chain.solved.coef) < 1e6).all()) for chain in own if chain.solved]
        for own in line.chains
    ]
    assert any(any(own) for own in inside)
    before = [[chain.solved for chain in own] for own in line.chains]
    walk(line, 1e7)

    for f, answer in enumerate(line.answers()):
        assert answer.status is Status.CONVERGED
        assert answer.violation <= 1e-3
        for p, is_inside in enumerate(inside[f]):
            old, new = before[f][p], line.chains[f][p].solved
            assert old is not None and new is not None
            assert (new.found.beta is old.found.beta) == is_inside
            if is_inside:
                assert new.found.n_iter == 0
                same = answer.decisions[:, p] == first[f].decisions[:, p]
                assert same.all()


@pytest.mark.parametrize("form", [NuSvc(), NuSvr()])
def test_where_sums_grow_no_solution_is_final(form: Formulation) -> None:
    line, _ = made_of("plain", "sorted", True)
    walk(line, 1e6)
    chain = line.chains[0][0]
    assert chain.solved is not None
    problem = CSvc().problem(chain.y, chain.weight, Place(1e6))

    assert not form.is_final(problem, chain.solved.found)
