"""How is one problem fitted where it can do no harm? In a process with limits.

The process fits what it is sent, one problem after the other, each under a limit of CPU
seconds that the operating system enforces (SIGXCPU). Loading and compiling machine code
does not count: the limit is lifted while Numba holds its compiler lock.
"""

from __future__ import annotations

import math
import resource
import time
import warnings
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.fitted import MACHINES
from benchmarks.hostile.problems import KERNELS, Problem, make_problem

OURS, PEER = "maxmargin", "scikit-learn"
MEMORY = 8 << 30  # bytes of address space: a fit of 3,000 rows needs far less
WARM_SIZES = (30, 400, 1000)  # samples: one for each kind of solver
ATTRIBUTES = (
    "classes_",
    "class_weight_",
    "support_",
    "n_support_",
    "dual_coef_",
    "intercept_",
    "offset_",
    "kkt_violation_",
    "dual_gap_",
    "objective_",
    "n_iter_",
)


class Clock:
    """CPU seconds of the fit that runs, without those of the compiler."""

    def __init__(self) -> None:
        self.compiled, self.depth, self.began, self.entered = 0.0, 0, 0.0, 0.0
        self.limit = math.inf

    def start(self, limit: float) -> None:
        self.compiled, self.limit = 0.0, limit
        self.began = time.process_time()
        limit_cpu(self.began + limit)

    def stop(self) -> float:
        """Seconds since the start."""
        limit_cpu(math.inf)
        return time.process_time() - self.began - self.compiled

    def on_start(self, event: Any) -> None:
        """The compiler begins: no limit until it ends."""
        if self.depth == 0:
            self.entered = time.process_time()
            limit_cpu(math.inf)
        self.depth += 1

    def on_end(self, event: Any) -> None:
        """The compiler ends: what it took is added to the limit."""
        self.depth -= 1
        if self.depth == 0:
            self.compiled += time.process_time() - self.entered
            limit_cpu(self.began + self.limit + self.compiled)


def limit_cpu(seconds: float) -> None:
    """End this process once it has used so much, in all; whole seconds count."""
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    soft = resource.RLIM_INFINITY if math.isinf(seconds) else math.ceil(seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def serve(connection: Any, library: str) -> None:
    """Fit what comes through the connection, until None does."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
    clock = Clock()
    if library == OURS:
        watch_compiler(clock)
    warm_up(library, WARM_SIZES if library == OURS else WARM_SIZES[:1])
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    connection.send("ready")
    while (asked := connection.recv()) is not None:
        seed, index, most_rows, limit = asked
        problem = make_problem(seed, index, most_rows)
        connection.send("begun")
        connection.send(fit_in_time(problem, library, clock, limit))


def watch_compiler(clock: Clock) -> None:
    """Tell the clock when Numba compiles, or loads what it compiled before."""
    from numba.core import event

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            clock.on_start(event)

        def on_end(self, event: Any) -> None:
            clock.on_end(event)

    event.register("numba:compiler_lock", Listener())


def warm_up(library: str, sizes: tuple[int, ...]) -> None:
    """Compile or load what fits need: every machine and kernel, dense and sparse."""
    clock, rng = Clock(), np.random.default_rng(0)
    for n, machine, kernel in product(sizes, MACHINES, KERNELS):
        X = rng.normal(size=(n, 3))
        z = X[:, 0] + 0.2 * rng.normal(size=n)
        y = {"SVC": z > 0.0, "NuSVC": z > 0.0, "OneClassSVM": None}.get(machine, z)
        rows = [X @ X.T] if kernel == "precomputed" else [X, sp.csr_matrix(X)]
        for layout in rows:
            plain = Problem(machine, {"kernel": kernel, "gamma": 1.0}, layout, y, None)
            fit_in_time(plain, library, clock, math.inf)


def fit_in_time(
    problem: Problem, library: str, clock: Clock, limit: float
) -> dict[str, Any]:
    """The attributes of the fit, or its error; and its seconds."""
    machine, X = prepared(problem, library)
    targets = () if problem.y is None else (problem.y,)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clock.start(limit)
        try:
            fitted = machine.fit(X(), *targets, sample_weight=problem.sample_weight)
        except Exception as error:  # reported, and judged by the other side
            found = describe(error)
        else:
            found = {"kind": "fitted", "attributes": attributes_of(fitted)}
        found["seconds"] = clock.stop()
    found["warnings"] = [str(warning.message) for warning in caught]
    return found


def prepared(problem: Problem, library: str) -> tuple[Any, Any]:
    """A machine to fit, and what gives its X: scikit-learn lacks a kernel."""
    parameters = dict(problem.parameters)
    if library == OURS:
        import maxmargin

        parameters["n_jobs"] = 1
        return getattr(maxmargin, problem.machine)(**parameters), lambda: problem.X
    from sklearn import svm
    from sklearn.metrics.pairwise import laplacian_kernel

    parameters.pop("fit_intercept", None)
    if parameters["kernel"] != "laplacian":
        return getattr(svm, problem.machine)(**parameters), lambda: problem.X
    gamma = parameters.pop("gamma")
    parameters["kernel"] = "precomputed"
    machine = getattr(svm, problem.machine)(**parameters)
    return machine, lambda: laplacian_kernel(problem.X, gamma=gamma)


def describe(error: Exception) -> dict[str, Any]:
    """An error by the names of its types, and its message."""
    kinds = [kind.__name__ for kind in type(error).__mro__]
    return {"kind": "error", "types": kinds, "message": str(error)}


def attributes_of(fitted: Any) -> dict[str, Any]:
    """What the judge reads, without the machine itself."""
    found = {
        name: getattr(fitted, name) for name in ATTRIBUTES if hasattr(fitted, name)
    }
    if hasattr(found["dual_coef_"], "toarray"):
        found["dual_coef_"] = found["dual_coef_"].toarray()
    if hasattr(fitted, "status_"):
        found["status"] = fitted.status_.name
    return found
