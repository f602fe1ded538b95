r"""What does Newton's method see? A smooth sum of losses, and its derivatives.

.. math:: \Phi(w) = \tfrac12 w^\top R w + \sum_i \psi_i(z_i), \quad z = Xw

Squared losses and the logistic loss are smooth by themselves. Hinge losses become so by
a proximal term around the dual point :math:`\bar\beta` (the method of multipliers):

.. math:: \psi(z) = \max_{l \le t \le u} -(q + z)\,t - k|t| - \tfrac12 r t^2
   - \tfrac{1}{2s}(t - \bar\beta)^2

The maximiser t is minus the first derivative, and the dual variable that belongs to z.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from maxmargin._jit import jit
from maxmargin.data.design import Span
from maxmargin.problems.linear import LOGISTIC, LinearProblem, Terms, sigmoid, terms
from maxmargin.typing import FloatVector

Kind = tuple[int, float, float]  # loss, epsilon, stiffness
Samples = tuple[FloatVector, FloatVector, FloatVector]  # target, cost, centre

MANY = 1 << 16  # samples from which a pass over them is worth several threads


class Smooth(NamedTuple):
    """A problem, made smooth where it is not."""

    problem: LinearProblem
    centre: FloatVector = np.empty(0)  # of the proximal term, where there is one
    stiffness: float = 0.0  # s = C_i / stiffness: 0 is no proximal term

    @property
    def parts(self) -> tuple[Kind, Samples]:
        """What compiled code needs to know."""
        p = self.problem
        kind = int(p.loss), p.epsilon, self.stiffness
        return kind, (p.target, p.cost, self.centre)

    def dual_point(self, z: FloatVector) -> tuple[FloatVector, FloatVector]:
        """(t, curvature): minus the first derivative of psi, and the second."""
        t, curvature = np.empty(len(z)), np.empty(len(z))
        kind, samples = self.parts
        self._run(lambda part: _dual_points(kind, samples, part, (z, t, curvature)))
        return t, curvature

    def along(self, z: FloatVector, u: FloatVector, step: float) -> tuple[float, float]:
        """First and second derivative of the sum of psi(z + step u) by step."""
        kind, samples = self.parts
        parts = self._run(lambda part: _along(kind, samples, part, (z, u), step))
        slopes, curves = zip(*parts, strict=True)
        return sum(slopes), sum(curves)

    def _run(self, work: Callable[[Span], Any]) -> list[Any]:
        """Chunk by chunk, in order; few samples are one chunk."""
        design = self.problem.design
        return design.in_chunks(work) if design.n >= MANY else [work((0, design.n))]


@jit
def _box_point(
    term: Terms, pull: float, centre: float, z: float
) -> tuple[float, float]:
    """The maximiser inside its box, and how it gives way; no branch for a processor."""
    linear, kink, lower, upper, ridge = term
    give = 1.0 / (ridge + pull)
    force = pull * centre - linear - z
    force = max(force - kink, 0.0) + min(force + kink, 0.0)
    t = force * give
    is_inside = (t > lower) & (t < upper) & ((kink == 0.0) | (force != 0.0))
    return min(max(t, lower), upper), give if is_inside else 0.0


@jit
def _logit_point(y: float, c: float, z: float) -> tuple[float, float]:
    share = sigmoid(-y * z)
    return y * c * share, c * share * (1.0 - share)


@jit
def _dual_points(kind: Kind, samples: Samples, span: Span, vectors: Samples) -> None:
    loss, epsilon, stiffness = kind
    target, cost, centre = samples
    z, t, curvature = vectors
    if loss == LOGISTIC:
        for i in range(span[0], span[1]):
            t[i], curvature[i] = _logit_point(target[i], cost[i], z[i])
        return
    has_centre = len(centre) > 0
    for i in range(span[0], span[1]):
        term = terms(loss, epsilon, target[i], cost[i])
        middle = centre[i] if has_centre else 0.0
        t[i], curvature[i] = _box_point(term, stiffness / cost[i], middle, z[i])


@jit
def _along(
    kind: Kind,
    samples: Samples,
    span: Span,
    line: tuple[FloatVector, FloatVector],
    step: float,
) -> tuple[float, float]:
    loss, epsilon, stiffness = kind
    target, cost, centre = samples
    z, u = line
    slope, curvature = 0.0, 0.0
    if loss == LOGISTIC:
        for i in range(span[0], span[1]):
            t, curve = _logit_point(target[i], cost[i], z[i] + step * u[i])
            slope -= t * u[i]
            curvature += curve * u[i] * u[i]
        return slope, curvature
    has_centre = len(centre) > 0
    for i in range(span[0], span[1]):
        term = terms(loss, epsilon, target[i], cost[i])
        middle = centre[i] if has_centre else 0.0
        there = z[i] + step * u[i]
        t, curve = _box_point(term, stiffness / cost[i], middle, there)
        slope -= t * u[i]
        curvature += curve * u[i] * u[i]
    return slope, curvature
