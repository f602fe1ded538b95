"""Which numbers decide how a kernel problem is solved? All of them, with their units.

A value of this type is part of the options of a fit and is handed to compiled code as
an argument, so that a test may pass another one. Costs are counted, never timed: a move
is one step of SMO, a value is one K_ij.
"""

from typing import NamedTuple


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


class Tuning(NamedTuple):
    """Numbers of the solvers of kernel machines."""

    # Rounds in compiled code cost some microseconds beside their kernel values, and
    # take few members so that the square of these stays in the second-level cache.
    compiled_rounds: RoundSizes = RoundSizes(1 / 16, 32, 256, 256, 0.3, 0.1)
    # Rounds whose values threads compute cost some hundred microseconds of Python, and
    # so do more at a time; moves go on to the `inner_tol` above where they are few.
    threaded_rounds: RoundSizes = RoundSizes(1 / 32, 128, 512, 2048, 0.15, 0.3)
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
    # Samples of a pair of classes that is solved on K of all classes, and of all of
    # these: 512 MB. Pairs have more values than K, and each of them is read by one.
    max_pair_samples: int = 2000
    max_shared_samples: int = 8192
    # Products of values for K of all classes: 0.2 to 0.4 s. With more, as of thousands
    # of wide rows, pairs compute in float32 what they need.
    max_shared_products: float = 5e9
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
    # The same of one-class machines: samples on the boundary are told from outliers by
    # the last digits.
    exact_tol_one_class: float = 1e-13
    # Violation of other answers, relative to tol: the certificate sums anew.
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
    # Violation, relative to the largest slope there could be: a larger one says nothing
    # about a margin.
    meaningful_violation: float = 0.01
    # Slopes changed by moves in one call of compiled code: about 50 ms.
    work_per_call: int = 50_000_000


TUNING = Tuning()
