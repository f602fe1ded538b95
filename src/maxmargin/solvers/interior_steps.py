"""What happens to one variable in a step of the interior point? The compiled passes.

Each sample has one dual variable, or two where its loss has a kink: one on each side of
the tube. A variable b sits between its walls with multipliers s and t. With theta = 1 /
(s / (b - lower) + t / (upper - b)), a step is theta times a force, and its other parts
follow; they are computed again in every pass instead of being kept.
"""

from typing import NamedTuple

import numpy as np

from maxmargin._jit import jit
from maxmargin.problems.linear import terms
from maxmargin.typing import FloatMatrix, FloatVector

Kind = tuple[int, float]  # loss, epsilon
Wall = tuple[float, float, float]  # linear, lower, upper
Move = tuple[float, float, float]  # of b, s and t


class Inside(NamedTuple):
    """Samples, and the state of their variables: (sides, n) each."""

    target: FloatVector
    cost: FloatVector
    beta: FloatMatrix
    s: FloatMatrix
    t: FloatMatrix


@jit
def wall(kind: Kind, y: float, c: float, side: int, n_sides: int) -> Wall:
    """The linear term and the two bounds of one variable."""
    linear, kink, lower, upper, _ = terms(kind[0], kind[1], y, c)
    if n_sides == 1:
        return linear, lower, upper
    if side == 0:
        return linear + kink, 0.0, upper
    return linear - kink, lower, 0.0


@jit
def begin(kind: Kind, inside: Inside, fold: FloatVector) -> None:
    """The middle of every box; `fold` gets the sum over the sides."""
    target, cost, beta, s, t = inside
    n_sides = len(beta)
    for i in range(len(target)):
        fold[i] = 0.0
        for k in range(n_sides):
            linear, lower, upper = wall(kind, target[i], cost[i], k, n_sides)
            beta[k, i] = 0.5 * (lower + upper)
            s[k, i] = t[k, i] = max(1.0, abs(linear))
            fold[i] += beta[k, i]


@jit
def measure(
    kind: Kind, inside: Inside, z: FloatVector, theta: FloatVector, force: FloatVector
) -> tuple[float, float, float]:
    """(losses, gap, products), summed; theta and the affine force, folded."""
    target, cost, beta, s, t = inside
    n_sides, losses, spent, products = len(beta), 0.0, 0.0, 0.0
    for i in range(len(target)):
        theta[i] = force[i] = 0.0
        for k in range(n_sides):
            linear, lower, upper = wall(kind, target[i], cost[i], k, n_sides)
            slope, b = linear + z[i], beta[k, i]
            part = 1.0 / (s[k, i] / (b - lower) + t[k, i] / (upper - b))
            theta[i] += part
            force[i] -= part * slope
            losses -= min(slope * lower, slope * upper)
            spent += slope * b
            products += s[k, i] * (b - lower) + t[k, i] * (upper - b)
    return losses, losses + spent, products


@jit
def affine_move(
    walls: Wall, z: float, u: float, state: tuple[float, float, float]
) -> Move:
    """Straight towards the solution, as if the walls were not there."""
    linear, lower, upper = walls
    b, s, t = state
    low, high = s / (b - lower), t / (upper - b)
    db = -(linear + z + u) / (low + high)
    return db, -s - low * db, -t + high * db


@jit
def centred_move(
    walls: Wall, z: float, u: float, state: tuple[float, float, float], c: Move
) -> Move:
    """Towards products of c[0] and c[1] instead of zero; u is X d of this move."""
    linear, lower, upper = walls
    b, s, t = state
    below, above = b - lower, upper - b
    low, high = s / below, t / above
    push = c[0] / below - c[1] / above
    db = (push - linear - z - u) / (low + high)
    return db, -s + c[0] / below - low * db, -t + c[1] / above + high * db


@jit
def _room(walls: Wall, state: tuple[float, float, float], move: Move) -> float:
    """The largest step that leaves nothing negative."""
    room = np.inf
    if move[0] < 0.0:
        room = min(room, (walls[1] - state[0]) / move[0])
    if move[0] > 0.0:
        room = min(room, (walls[2] - state[0]) / move[0])
    if move[1] < 0.0:
        room = min(room, -state[1] / move[1])
    if move[2] < 0.0:
        room = min(room, -state[2] / move[2])
    return room


@jit
def predict(
    kind: Kind, inside: Inside, z: FloatVector, u: FloatVector, step: float
) -> tuple[float, float]:
    """(room of the affine move, sum of products after `step` of it)."""
    target, cost, beta, s, t = inside
    n_sides, room, products = len(beta), np.inf, 0.0
    for i in range(len(target)):
        for k in range(n_sides):
            walls = wall(kind, target[i], cost[i], k, n_sides)
            state = beta[k, i], s[k, i], t[k, i]
            move = affine_move(walls, z[i], u[i], state)
            room = min(room, _room(walls, state, move))
            b = state[0] + step * move[0]
            products += (state[1] + step * move[1]) * (b - walls[1])
            products += (state[2] + step * move[2]) * (walls[2] - b)
    return room, products


@jit
def correct(
    kind: Kind,
    inside: Inside,
    z: FloatVector,
    u: FloatVector,
    centre: float,
    force: FloatVector,
) -> None:
    """The force of the second-order move, folded; u is X d of the affine one."""
    target, cost, beta, s, t = inside
    n_sides = len(beta)
    for i in range(len(target)):
        force[i] = 0.0
        for k in range(n_sides):
            walls = wall(kind, target[i], cost[i], k, n_sides)
            state = beta[k, i], s[k, i], t[k, i]
            c = _products(affine_move(walls, z[i], u[i], state), centre)
            below, above = state[0] - walls[1], walls[2] - state[0]
            push = c[0] / below - c[1] / above - walls[0] - z[i]
            force[i] += push / (state[1] / below + state[2] / above)


@jit
def _products(affine: Move, centre: float) -> Move:
    """The products to aim at, less what the affine move leaves at second order."""
    return centre - affine[0] * affine[1], centre + affine[0] * affine[2], 0.0


@jit
def advance(
    kind: Kind,
    inside: Inside,
    z: FloatVector,
    moves: tuple[FloatVector, FloatVector],
    centre: float,
    step: float,
) -> float:
    """Take `step` of the second-order move; a step of 0 asks for its room only."""
    target, cost, beta, s, t = inside
    affine_u, u = moves
    n_sides, room = len(beta), np.inf
    for i in range(len(target)):
        for k in range(n_sides):
            walls = wall(kind, target[i], cost[i], k, n_sides)
            state = beta[k, i], s[k, i], t[k, i]
            c = _products(affine_move(walls, z[i], affine_u[i], state), centre)
            move = centred_move(walls, z[i], u[i], state, c)
            room = min(room, _room(walls, state, move))
            beta[k, i] += step * move[0]
            s[k, i] += step * move[1]
            t[k, i] += step * move[2]
    return room
