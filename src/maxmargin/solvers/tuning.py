"""Which numbers decide how a kernel problem is solved? All of them, with their units.

A value of this type is part of the options of a fit, so that a test may pass another
one. Compiled code is handed the part that it reads. Costs are counted, never timed: a
move is one step of SMO, a value is one K_ij. What is not here are the numbers of
floating-point arithmetic and of array layouts, which stand where they are used.
"""

from typing import NamedTuple

from maxmargin.kernels.arena import RowCosts


class RoundSizes(NamedTuple):
    """How the working set of decomposition changes from round to round."""

    # Variables that a round admits at first, relative to all, within two limits.
    new_share: float
    min_new: int
    max_first: int
    # And at most. The number doubles while most members are free.
    max_new: int
    # Members at rest, relative to all members: fewer are not worth moving memory for.
    evicted_share: float
    # Violation of the members where a round ends, relative to that of all variables.
    inner_tol: float
    # Rounds that a member at a bound is kept for, and what it may violate without being
    # kept for longer, relative to the violation.
    max_rest: int = 2
    near_share: float = 0.5
    # Resting members for each variable admitted: with fewer, more are admitted.
    min_resting: float = 0.5
    # Rounds in one call of compiled code: some hundredths of a second.
    max_rounds: int = 16


class StackTuning(NamedTuple):
    """Of problems that are solved on all of K: few moves, active set, many moves."""

    # Violation to reach, relative to tol: the certificate sums anew.
    inner_tol: float = 0.7
    # Moves per variable before the active-set method is tried. What SMO solves with
    # fewer has mostly variables at bounds, for which it is the better method.
    moves_before_active_set: int = 4
    # And in all: that method costs some dozens of moves to begin with.
    min_moves_before_active_set: int = 64
    # Moves per variable after the active-set method has failed. Beyond, the problem is
    # too hard for a single call.
    max_moves: int = 100
    # Violation of nu-SVC, relative to the margin that its coefficients are divided by.
    margin_share: float = 0.01
    # By how much tol is made finer at least, while the violation is larger than that.
    refinement: float = 0.1
    # Margin of nu-SVC, relative to the violation: where it is as small as this twice,
    # the optimal margin is zero, and no finer tolerance finds one.
    negligible_margin: float = 0.05
    # Violation, relative to the largest slope there could be: a larger one has no
    # bearing on a margin.
    meaningful_violation: float = 0.01
    # Slopes changed by moves in one call of compiled code: about 50 ms.
    work_per_call: int = 50_000_000


class CheckTuning(NamedTuple):
    """When decomposition, whose rows are in float32, computes slopes in float64."""

    # Violation, in units of tol, from which on an error of slopes matters; and the
    # error that does, if it adds up at random.
    near: float = 10.0
    max_drift: float = 1.0
    # Variables in doubt, relative to all: with more, all slopes are computed again.
    max_share: float = 0.5
    # Support vectors that show whether float32 blurs the objective; all of them are
    # looked at where that costs so many products, a millisecond.
    n_sampled: int = 16
    cheap_products: float = 1e7
    # Corrections at the end, and midway, after which float32 is not enough; and rounds
    # or corrections without a move.
    max_corrections: int = 4
    max_drifts: int = 8
    max_idle: int = 8


class NewtonTuning(NamedTuple):
    """When free variables take a Newton step: when moves have cost as much."""

    # Moves of each member between two looks at this, and members from which on.
    moves_before_look: int = 4
    min_members: int = 256
    # What an inverse costs, and a variable that meets a bound: values of K that moves
    # look at, for each value of the inverse.
    inverse_cost: float = 0.02
    bound_cost: float = 0.5
    # Variables that may meet a bound, relative to the free ones, before a step has
    # shown it; and at least.
    first_share: float = 0.25
    min_bounds: int = 20
    # Variables: an inverse of these takes a third of a second.
    max_variables: int = 2500
    # Values of the inverse that are corrected before Python looks up.
    values_per_call: int = 20_000_000


class SmoTuning(NamedTuple):
    """Of sequential minimal optimisation on all variables."""

    # Moves between two looks at shrinking and precision; of small problems as many as
    # they have variables, but no fewer than these, which cost as much as a look.
    check_every: int = 1000
    min_check_every: int = 250
    # Violation, in units of tol, where variables shrunk away are brought back once.
    unshrink_at: float = 10.0
    # Corrections in float64 before rows become float64, and after which what is left
    # is rounding.
    max_float32_corrections: int = 3
    max_corrections: int = 50
    # Variables at rest, relative to the active ones: with fewer, none is set aside.
    min_shrunk_share: float = 0.1
    # Rows fetched at a time, relative to the variables, within two limits: those whose
    # slopes are so near to the extreme ones, relative to the violation.
    fetched_share: float = 0.125
    min_fetched: int = 16
    max_fetched: int = 64
    near_share: float = 0.1
    # Moves per variable before the first Newton step of the free variables.
    moves_before_newton: int = 20
    # tol, relative to what float64 rounds in slopes, below which it is never met; moves
    # per variable before that is concluded, and how near to that rounding they must
    # have come.
    hopeless_tol: float = 1e-3
    hopeless_moves: int = 50
    hopeless_violation: float = 1e4
    # Violation, relative to the slopes, that counts as none in the final polish; its
    # rounds, and moves per free variable between two of them, which find out what is
    # free.
    polished: float = 1e-11
    polish_rounds: int = 8
    polish_moves: int = 4


class PairTuning(NamedTuple):
    """Of the pairs of classes of one fit."""

    # Samples of a pair of classes that is solved on K of all classes, and of all of
    # these: 512 MB. Pairs have more values than K, and each of them is read by one.
    max_samples: int = 2000
    max_shared_samples: int = 8192
    # Products of values for K of all classes: 0.2 to 0.4 s. With more, as of thousands
    # of wide rows, pairs compute in float32 what they need.
    max_shared_products: float = 5e9
    # Samples of a pair all of whose K is computed, where half is there for other pairs.
    max_whole: int = 2800
    # Of the memory, for what pairs share.
    shared_memory: float = 0.25
    # Samples: with fewer, threads mostly wait for one another.
    min_threaded: int = 1000


class PatienceTuning(NamedTuple):
    """When a fit without `max_iter` makes no headway: see `pace`."""

    # Moves that all problems of a fit may make before any rule holds; the slopes that
    # these change, some seconds; and moves that each problem may make.
    moves_of_fit: int = 1_000_000
    slopes_of_fit: int = 3_000_000_000
    min_moves: int = 50_000
    min_moves_per_variable: int = 200
    # Moves of one problem, or so many per variable, if that is more (LIBSVM's limit).
    max_moves: int = 10_000_000
    max_moves_per_variable: int = 100
    # Times the moves made until the violation was so many powers of ten larger.
    patience: int = 5
    decades: int = 2
    # Times the moves made until the violation was last halved.
    recently: float = 1.5


class Tuning(NamedTuple):
    """Numbers of the solvers of kernel machines."""

    # Rounds in compiled code cost some microseconds beside their kernel values, and
    # take few members so that the square of these stays in the second-level cache.
    compiled_rounds: RoundSizes = RoundSizes(1 / 16, 32, 256, 256, 0.3, 0.1)
    # Rounds whose values threads compute cost some hundred microseconds of Python, and
    # so do more at a time; moves go on to the `inner_tol` above where they are few.
    threaded_rounds: RoundSizes = RoundSizes(1 / 32, 128, 512, 2048, 0.15, 0.3)
    # Rounds on rows of K that are kept: a new row costs more than many moves, so that
    # few are admitted, and only when members are nearly optimal. None of these leaves,
    # since the next refit may need it.
    rounds_on_kept: RoundSizes = RoundSizes(0.0, 32, 32, 32, 1.0, 0.01)
    stack: StackTuning = StackTuning()
    checks: CheckTuning = CheckTuning()
    newton: NewtonTuning = NewtonTuning()
    smo: SmoTuning = SmoTuning()
    pairs: PairTuning = PairTuning()
    patience: PatienceTuning = PatienceTuning()
    rows: RowCosts = RowCosts()

    # Samples from which on a working set is tried before all of K.
    min_decomposed: int = 300
    # Variables up to which the rounds of dense rows of few features are compiled.
    max_compiled_rounds: int = 3000
    # Of the cache, for the kernel matrix between members: where rows are kept in what
    # is left, and where rows are so short that none is kept.
    square_share: float = 0.35
    square_share_alone: float = 0.85

    # Samples of one problem that is solved on all of K from the beginning. With more, a
    # working set may need far fewer values.
    max_samples: int = 1000
    # Members of a working set, relative to all variables: with more, all of K costs
    # less than the rows that are still to come and the certificate.
    whole_share: float = 0.5
    # Samples of the largest K that is kept in float64. 64 MB; with more, it is read
    # from memory rather than from the last-level cache.
    max_kept_samples: int = 2896
    # Samples up to which all are members of the working set, where K is in memory.
    max_all_members: int = 200
    # Moves per variable of the rounds of one call: four times as many in the next.
    moves_of_rounds: int = 4
    # Features up to which compiled code computes a row when it is first needed; with
    # more, BLAS computes all of K in less time than the rows that are needed.
    max_features_of_rows: int = 40
    # Samples below which an answer is exact to rounding: the last digits cost little,
    # and weights that are whole numbers give the answer of repeated samples.
    exact_below: int = 300
    # Violation of an exact answer, relative to the largest slope at the start; or what
    # rounding leaves in slopes, if that is more.
    exact_tol: float = 1e-10
    # The same of one-class machines: the last digits distinguish samples on the
    # boundary from outliers.
    exact_tol_one_class: float = 1e-13

    # A linear kernel is solved through w from so many samples on, and so many for each
    # feature: below, pairs of variables are as fast.
    min_by_weights: int = 1000
    min_by_weights_per_feature: int = 4
    # Moves of SMO that are tried first: one for each sample, which easy problems need,
    # or what costs a tenth of Newton's method with its d (d + 10) products a sample.
    tried_per_sample: float = 1.0
    tried_per_product: float = 2.5
    # Of tol, for Newton's method on w: its last steps are cheap, and SMO's polish is as
    # exact.
    tol_by_weights: float = 1e-3


TUNING = Tuning()
