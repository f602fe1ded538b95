"""Which problem and which solver do the words stand for, and do they fit together?"""

from typing import NamedTuple, NoReturn

from maxmargin.errors import InvalidInput
from maxmargin.models.linear import Solve, Start
from maxmargin.problems.linear import LinearProblem, Loss
from maxmargin.solvers import Options, Solution
from maxmargin.solvers.l1 import solve_l1
from maxmargin.solvers.linear import solve_linear

LOSSES = {
    "hinge": Loss.HINGE,
    "squared_hinge": Loss.SQUARED_HINGE,
    "epsilon_insensitive": Loss.EPSILON,
    "squared_epsilon_insensitive": Loss.SQUARED_EPSILON,
    "logistic_regression": Loss.LOGISTIC,
    "one_class": Loss.ONE_CLASS,
}
DUALS = {  # loss and penalty: the values of `dual` that LIBLINEAR has a solver for
    ("hinge", "l2"): (True,),
    ("squared_hinge", "l1"): (False,),
    ("squared_hinge", "l2"): (True, False),
    ("epsilon_insensitive", "l2"): (True,),
    ("squared_epsilon_insensitive", "l2"): (True, False),
    ("logistic_regression", "l1"): (False,),
    ("logistic_regression", "l2"): (True, False),
    ("one_class", "l2"): (True,),
}
METHODS = {True: "dual", False: "primal", "auto": "auto"}
OF_DUAL = frozenset({"dcd", "interior", "proximal"})  # the others are of the primal


class Words(NamedTuple):
    """What the constructor was told."""

    loss: str
    penalty: str = "l2"
    dual: bool | str = "auto"
    solver: str = "auto"
    has_free_intercept: bool = False  # there is one, and it is not penalised
    is_joint: bool = False  # all classes at once, for which loss and penalty are fixed

    @property
    def kind(self) -> tuple[str | bool, ...]:
        """What a warm start must find unchanged."""
        return self.loss, self.penalty, self.has_free_intercept, self.is_joint

    @property
    def solvers(self) -> tuple[str, ...]:
        """The solvers that can solve this."""
        if self.is_joint:
            return ("dcd",)
        if self.penalty == "l1":
            return ("cd",)
        if LOSSES[self.loss].is_smooth:
            fit = ("dcd", "newton", "newton-cg")
        else:
            fit = ("dcd", "interior", "proximal")
        return fit[1:] if self.has_free_intercept else fit


def check_words(words: Words) -> None:
    """Refuse what cannot be combined, in scikit-learn's words where it has some."""
    if words.is_joint:
        _check_joint(words)
        return
    both = f"The combination of penalty={words.penalty!r} and loss={words.loss!r}"
    duals = DUALS.get((words.loss, words.penalty))
    if duals is None:
        _refuse(words, f"{both} is not supported")
    if words.dual != "auto" and words.dual not in duals:
        _refuse(words, f"{both} are not supported when dual={words.dual}")
    if words.dual is True and words.has_free_intercept and len(duals) > 1:
        _refuse(words, "dual=True needs penalize_intercept=True")
    _check_solver(words)


def _check_joint(words: Words) -> None:
    if words.has_free_intercept:
        _refuse(
            words,
            "The combination of multi_class='crammer_singer' and "
            "penalize_intercept=False is not supported",
        )
    _check_solver(words)


def _check_solver(words: Words) -> None:
    if words.solver == "auto":
        return
    is_of_dual = words.solver in OF_DUAL
    is_meant = words.is_joint or words.dual in ("auto", is_of_dual)
    if words.solver in words.solvers and is_meant:
        return
    known = " or ".join(repr(name) for name in words.solvers)
    _refuse(words, f"solver={words.solver!r} does not fit the others ({known} may)")


def _refuse(words: Words, reason: str) -> NoReturn:
    raise InvalidInput(
        f"Unsupported set of arguments: {reason}, Parameters: "
        f"penalty={words.penalty!r}, loss={words.loss!r}, dual={words.dual!r}"
    )


def method_of(words: Words) -> str:
    """The name of a method, of a family of methods, or `auto`."""
    if words.solver != "auto":
        return words.solver
    if words.dual is True and words.has_free_intercept:
        return "auto"  # a method for the dual, but not coordinate descent
    return METHODS[words.dual]


def solver_of(words: Words, options: Options) -> Solve:
    """How a problem in these words is solved."""
    if words.penalty == "l1":
        return lambda problem, start: solve_l1(problem, options, start)
    method = method_of(words)

    def solve(problem: LinearProblem, start: Start) -> Solution:
        return solve_linear(problem, options, method, start)

    return solve
