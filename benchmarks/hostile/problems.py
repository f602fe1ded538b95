"""What does a hostile problem look like? Each is a function of (seed, index) alone.

Machines, kernels, sizes, scales, shifts, copies, contradictions, imbalance, many
classes, weights and settings are drawn independently: most combinations make no sense
to a person, and all of them are problems that a solver has to end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from benchmarks.fitted import MACHINES

KERNELS = ("linear", "poly", "rbf", "sigmoid", "laplacian", "precomputed")
MOST_ROWS = 3000
MOST_PRECOMPUTED = 1500  # rows: the matrix is drawn, passed on and checked whole
MOST_FEATURES = 50
MOST_CLASSES = 50

Rng = np.random.Generator


class Problem(NamedTuple):
    """A machine's name, its constructor's arguments and what it is fitted to."""

    machine: str
    parameters: dict[str, Any]
    X: Any
    y: Any  # None: the one-class machine
    sample_weight: Any  # or None
    traits: str = ""  # how the rows were drawn

    @property
    def is_convex(self) -> bool:
        """Whether K is positive semi-definite by construction."""
        kernel = self.parameters["kernel"]
        if kernel == "poly":
            return self.parameters["coef0"] >= 0.0
        return kernel in ("linear", "rbf", "laplacian")


def make_problem(seed: int, index: int, most_rows: int = MOST_ROWS) -> Problem:
    """The problem of that number; the same on every machine."""
    rng = np.random.default_rng([seed, index])
    machine, kernel = str(rng.choice(MACHINES)), str(rng.choice(KERNELS))
    most = min(most_rows, MOST_PRECOMPUTED) if kernel == "precomputed" else most_rows
    n = whole(rng, 2, most)
    X, copies, traits = draw_rows(rng, n)
    parameters = {"kernel": kernel, **draw_kernel(rng, kernel, X)}
    parameters |= draw_settings(rng, machine)
    y, said = draw_targets(rng, machine, X, copies)
    weight = draw_weights(rng, n)
    if machine in ("SVC", "NuSVC"):
        parameters["class_weight"] = draw_class_weight(rng, y)
    if machine == "NuSVC":
        parameters["nu"] = draw_nu(rng, y, weight, parameters["class_weight"])
    if machine == "SVR":
        parameters["epsilon"] = draw_epsilon(rng, y)
    if kernel == "precomputed":
        X, named = draw_matrix(rng, X)
        traits = f"{traits}, {named}"
    return Problem(machine, parameters, X, y, weight, f"{traits}, {said}")


def power(rng: Rng, low: float, high: float) -> float:
    """10^p, p uniform."""
    return float(10.0 ** rng.uniform(low, high))


def whole(rng: Rng, low: int, high: int) -> int:
    """A whole number, its logarithm uniform."""
    return min(int(np.exp(rng.uniform(np.log(low), np.log(high + 1)))), high)


def chance(rng: Rng, share: float) -> bool:
    return bool(rng.random() < share)


# ------------------------------------------------------------------------------- rows
def draw_rows(rng: Rng, n: int) -> tuple[Any, Any, str]:
    """Rows, for each the number of the row it is a copy of, and what was done."""
    d = whole(rng, 1, MOST_FEATURES)
    shape = str(
        rng.choice(["normal", "cauchy", "circles", "line", "grid", "one-hot", "blobs"])
    )
    X, traits = DRAWN[shape](rng, n, d), [shape]
    copies = np.arange(n)
    if chance(rng, 0.3):
        copies = rng.integers(0, max(1, n // whole(rng, 2, 50)), n)
        X = X[copies]
        traits.append("copies")
    if chance(rng, 0.5):
        scale = power(rng, -6, 6)
        X = X * scale
        traits.append(f"scale {scale:.1g}")
    if chance(rng, 0.3):
        shift = power(rng, 0, 4)
        spread = np.median(np.abs(X - np.median(X)))
        X = X + shift * (spread or np.abs(X).max() or 1.0) * rng.choice([-1.0, 1.0])
        traits.append(f"shift {shift:.1g}")
    if chance(rng, 0.1):
        X[:, rng.integers(X.shape[1])] = rng.choice([0.0, 1.0, 1e6])
        traits.append("constant feature")
    return laid_out(rng, X, traits), copies, ", ".join(traits)


def normal(rng: Rng, n: int, d: int) -> Any:
    return rng.normal(size=(n, d))


def cauchy(rng: Rng, n: int, d: int) -> Any:
    return rng.standard_cauchy(size=(n, d))


def circles(rng: Rng, n: int, d: int) -> Any:
    """Two concentric circles in the plane."""
    angle, radius = rng.uniform(0, 2 * np.pi, n), rng.choice([1.0, 2.0], n)
    return np.column_stack((radius * np.cos(angle), radius * np.sin(angle)))


def line(rng: Rng, n: int, d: int) -> Any:
    """Collinear rows."""
    return rng.normal(size=(n, 1)) * rng.normal(size=(1, d)) + rng.normal(size=(1, d))


def grid(rng: Rng, n: int, d: int) -> Any:
    return rng.integers(-2, 3, size=(n, d)).astype(float)


def one_hot(rng: Rng, n: int, d: int) -> Any:
    return np.eye(d)[rng.integers(0, d, n)]


def blobs(rng: Rng, n: int, d: int) -> Any:
    """Five clouds, far apart."""
    return rng.normal(size=(5, d))[rng.integers(0, 5, n)] * 5 + rng.normal(size=(n, d))


DRAWN = {
    "normal": normal,
    "cauchy": cauchy,
    "circles": circles,
    "line": line,
    "grid": grid,
    "one-hot": one_hot,
    "blobs": blobs,
}


def laid_out(rng: Rng, X: Any, traits: list[str]) -> Any:
    """Mostly a float64 array; some are sparse, some float32."""
    if traits[0] == "one-hot" or chance(rng, 0.1):
        traits.append("sparse")
        return sp.csr_matrix(X)
    if chance(rng, 0.05):
        traits.append("float32")
        return X.astype(np.float32)
    return np.ascontiguousarray(X)


# --------------------------------------------------------------------------- kernels
def draw_kernel(rng: Rng, kernel: str, X: Any) -> dict[str, Any]:
    """gamma, degree and coef0; half of the time gamma suits the rows."""
    values = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    is_distance = kernel in ("rbf", "laplacian")
    size = float(values.var() if is_distance else np.square(values).mean()) or 1.0
    suited = power(rng, -2, 2) / (values.shape[1] * size)
    is_suited = chance(rng, 0.5)
    if kernel == "poly":
        return {
            "gamma": suited if is_suited else power(rng, -3, 3),
            "degree": int(rng.integers(2, 6)),
            "coef0": float(rng.choice([0.0, 1.0, 10.0])),
        }
    if kernel == "sigmoid":
        gamma = suited if is_suited else power(rng, -4, 1)
        return {"gamma": gamma, "coef0": float(rng.choice([-1.0, 0.0, 1.0]))}
    if kernel in ("rbf", "laplacian"):
        return {"gamma": suited if is_suited else power(rng, -4, 4)}
    return {}


def draw_matrix(rng: Rng, X: Any) -> tuple[Any, str]:
    """A matrix given as the kernel: of the rows, of noise, or of nothing."""
    n = X.shape[0]
    kind = str(rng.choice(["rbf matrix", "noise", "low rank", "flat", "diagonal"]))
    if kind == "noise":
        noise = rng.normal(size=(n, n)) * power(rng, -3, 3)
        return (noise + noise.T) / 2, kind
    if kind == "flat":
        return np.full((n, n), float(rng.choice([0.0, 1.0, 1e6]))), kind
    if kind == "diagonal":
        return np.diag(10.0 ** rng.uniform(-3, 3, n)), kind
    values = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    if kind == "low rank":
        return values @ values.T, kind
    values = values / (np.abs(values).max() or 1.0)
    squares = np.square(values).sum(axis=1)
    distances = squares[:, None] - 2 * values @ values.T + squares
    return np.exp(-power(rng, -2, 2) * distances), kind


# --------------------------------------------------------------------------- targets
def draw_targets(rng: Rng, machine: str, X: Any, copies: Any) -> tuple[Any, str]:
    """Labels, numbers, or nothing."""
    if machine == "OneClassSVM":
        return None, "unlabelled"
    if machine in ("SVC", "NuSVC"):
        return draw_labels(rng, X, copies)
    n, size = X.shape[0], power(rng, -6, 8) if chance(rng, 0.6) else 1.0
    if chance(rng, 0.1):
        return np.full(n, float(rng.choice([0.0, 1.0, size]))), "constant targets"
    z = np.sin(2 * order_of(X)) + rng.choice([0.0, 0.2, 5.0]) * rng.normal(size=n)
    if chance(rng, 0.2):
        z = rng.standard_cauchy(n)
    if chance(rng, 0.3):
        z = z + power(rng, 0, 4)
    if chance(rng, 0.5):
        z = z[copies]  # equal rows, equal targets
    return size * z, f"targets {size:.1g}"


def draw_labels(rng: Rng, X: Any, copies: Any) -> tuple[Any, str]:
    """Two classes or many; by the rows or by chance; sometimes with a rare class."""
    n = X.shape[0]
    k = 2 if chance(rng, 0.6) else whole(rng, 2, min(n, MOST_CLASSES))
    kind = str(rng.choice(["random labels", "ordered labels", "rare class"]))
    if kind == "random labels":
        y = rng.integers(0, k, n)
    elif kind == "ordered labels":
        y = np.minimum(order_of(X) * k, k - 1).astype(int)
    else:
        y = np.where(rng.random(n) < power(rng, -3, -0.5), rng.integers(0, k, n), 0)
    if chance(rng, 0.5):
        y = y[copies]
    y[rng.choice(n, k, replace=False)] = np.arange(k)
    return y, f"{kind}, {k} classes"


def order_of(X: Any) -> Any:
    """Each row's place in [0, 1) along the first feature."""
    first = np.asarray(X[:, [0]].todense() if sp.issparse(X) else X[:, [0]]).ravel()
    return np.argsort(np.argsort(first, kind="stable"), kind="stable") / len(first)


def draw_weights(rng: Rng, n: int) -> Any:
    """None, copies counted, zeros among them, or twelve orders of magnitude."""
    kind = rng.integers(0, 8)
    if kind == 0:
        weight = rng.integers(0, 4, n).astype(float)
    elif kind == 1:
        weight = 10.0 ** rng.uniform(-6, 6, n)
    elif kind == 2:
        weight = rng.exponential(size=n) * power(rng, -6, 6)
    else:
        return None
    if not weight.any():
        weight[0] = 1.0
    return weight


def draw_class_weight(rng: Rng, y: Any) -> Any:
    kind, classes = rng.integers(0, 6), np.unique(y)
    if kind == 0:
        return "balanced"
    if kind == 1:
        return {int(label): power(rng, -3, 3) for label in classes}
    if kind == 2:
        return {int(classes[0]): power(rng, -6, 6)}
    return None


# --------------------------------------------------------------------------- settings
def draw_settings(rng: Rng, machine: str) -> dict[str, Any]:
    """What does not depend on the rows."""
    settings: dict[str, Any] = {"tol": power(rng, -6, -1)}
    if chance(rng, 0.3):
        settings["tol"] = 1e-3
    settings["shrinking"] = chance(rng, 0.7)
    if machine in ("SVC", "SVR", "NuSVR"):
        settings["C"] = power(rng, -6, 8) if chance(rng, 0.7) else power(rng, -1, 3)
    if machine in ("SVC", "SVR"):
        settings["fit_intercept"] = chance(rng, 0.85)
    if machine in ("NuSVR", "OneClassSVM"):
        settings["nu"] = min(power(rng, -3, 0), 1.0)
        if chance(rng, 0.05):
            settings["nu"] = 1.0
    return settings


def draw_epsilon(rng: Rng, z: Any) -> float:
    """Nothing, a share of the targets' range, or all of it."""
    spread = float(np.median(np.abs(z - np.median(z)))) or float(np.abs(z).max()) or 1.0
    kind = rng.integers(0, 5)
    return 0.0 if kind == 0 else spread * power(rng, -5, 1)


def draw_nu(rng: Rng, y: Any, weight: Any, class_weight: Any) -> float:
    """A share of the largest nu that all pairs of classes allow; sometimes more."""
    largest = largest_nu(y, weight, class_weight)
    if not largest > 0.0 or chance(rng, 0.05):
        return min(1.0, power(rng, -2, 0))
    share = 1.0 if chance(rng, 0.05) else rng.uniform(0.01, 0.999)
    return float(np.clip(share * largest, 1e-12, 1.0))


def largest_nu(y: Any, weight: Any, class_weight: Any) -> float:
    """2 min(a, b) / (a + b) over the pairs, a and b the weights of two classes."""
    totals = np.sort(class_totals(y, weight, class_weight))
    return float(2.0 * totals[0] / (totals[0] + totals[-1])) if totals[0] > 0 else 0.0


def class_totals(y: Any, weight: Any, class_weight: Any) -> Any:
    """The weight of each class."""
    classes, code = np.unique(y, return_inverse=True)
    weight = np.ones(len(y)) if weight is None else weight
    totals = np.bincount(code, weights=weight, minlength=len(classes))
    if class_weight == "balanced":
        return (totals > 0.0).astype(float)  # all the same, whatever they are
    if class_weight is None:
        return totals
    return totals * [class_weight.get(int(label), 1.0) for label in classes]
