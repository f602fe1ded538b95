"""How does work spread over cores without changing a single byte of the answer?

Tasks are fixed beforehand and their results come back in order, so the number of
threads decides only who computes what. BLAS is held to one thread meanwhile: its own
threads would split sums differently on every machine.
"""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import LibController, OpenBLASController, ThreadpoolController

from maxmargin._interrupts import Flag, interrupts_deferred, raise_if_interrupted

T = TypeVar("T")


class Stopped(BaseException):
    """Raised inside a worker whose caller was interrupted or failed."""


class _Context(threading.local):
    stop: Flag | None = None  # set while this thread works on a task list


class _Shared:
    """The process-wide pool and BLAS limit; a forked child starts with new ones."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.pool: ThreadPoolExecutor | None = None
        self.limit: _BlasLimit | None = None
        self.n_inside = 0


class _BlasLimit:
    """One thread for each of BLAS's libraries, until they get back what they had."""

    def __init__(self) -> None:
        _take_control()
        libraries = [lib for lib in _libraries() if lib.user_api == "blas"]
        self.before = [(lib, lib.get_num_threads()) for lib in libraries]
        for library in libraries:
            library.set_num_threads(1)

    def lift(self) -> None:
        _take_control()
        for library, n_threads in self.before:
            library.set_num_threads(n_threads)


_context = _Context()
_shared = _Shared()


def _renew_after_fork() -> None:
    """Threads do not survive a fork, and a lock may have been held by one of them."""
    global _shared, _context  # the child needs new ones
    limit = _shared.limit
    _shared, _context = _Shared(), _Context()
    if limit is not None:
        limit.lift()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_after_fork)


def count_cores() -> int:
    """The cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread until the last of all overlapping scopes has left.

    Fits and predictions run in such a scope; interrupts wait for a safe point in it.
    """
    with interrupts_deferred(), _one_blas_thread():
        yield


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    shared = _shared
    with shared.lock:
        if shared.limit is None:
            shared.limit = _BlasLimit()
        shared.n_inside += 1
    try:
        yield
    finally:
        with shared.lock:
            shared.n_inside -= 1
            if shared.n_inside == 0 and shared.limit is not None:
                shared.limit.lift()
                shared.limit = None


@cache
def _libraries() -> list[LibController]:
    """Found once: looking through the loaded libraries costs milliseconds."""
    return ThreadpoolController().lib_controllers


def _take_control() -> None:
    """Let this thread set BLAS's number: threadpoolctl heeds the first thread only."""
    if hasattr(OpenBLASController, "clear_controlling_thread"):
        OpenBLASController.clear_controlling_thread(force=True)


def _limit_this_thread() -> None:
    """Where BLAS counts threads for each caller, pool threads have one for good."""
    for library in _libraries():
        if getattr(library, "threading_layer", None) == "openmp":
            library.set_num_threads(1)


def raise_if_stopped() -> None:
    """Called between slices of work: leave early when the caller has given up.

    This is the safe point at which a deferred interrupt becomes KeyboardInterrupt; on
    a list of tasks it is raised once all threads have stopped.
    """
    if _context.stop is None:
        raise_if_interrupted()
    elif _context.stop.is_set:
        raise Stopped


def run_all(tasks: Sequence[Callable[[], T]], n_threads: int) -> list[T]:
    """Run every task and return their results in order.

    The calling thread works too. Inside a worker, tasks run one after the other. When
    a task fails or Ctrl-C arrives, the others stop at their next slice.
    """
    n_helpers = min(n_threads, len(tasks)) - 1
    if n_helpers < 1 or _context.stop is not None:
        return [task() for task in tasks]
    queue = _Queue(tasks)
    with interrupts_deferred(queue.stop):
        helpers = [_pool().submit(queue.work) for _ in range(n_helpers)]
        try:
            queue.work()
            _wait(helpers)
        except BaseException:
            queue.stop.set()
            _wait(helpers)
            raise
        raise_if_interrupted()
    return queue.collect()


class _Queue:
    """Tasks in order; whoever is free takes the next one."""

    def __init__(self, tasks: Sequence[Callable[[], Any]]) -> None:
        self.tasks = tasks
        self.results: list[Any] = [None] * len(tasks)
        self.errors: dict[int, BaseException] = {}
        self.stop = Flag()
        self.lock = threading.Lock()
        self.n_taken = 0

    def work(self) -> None:
        """Take and run tasks until none is left or somebody says stop."""
        _context.stop = self.stop
        try:
            while (k := self._take()) is not None:
                self._run(k)
        finally:
            _context.stop = None

    def _take(self) -> int | None:
        with self.lock:
            if self.n_taken == len(self.tasks) or self.stop.is_set:
                return None
            self.n_taken += 1
            return self.n_taken - 1

    def _run(self, k: int) -> None:
        try:
            self.results[k] = self.tasks[k]()
        except Stopped:
            pass
        except Exception as error:
            self.errors[k] = error
            self.stop.set()

    def collect(self) -> list[Any]:
        if self.errors:
            raise self.errors[min(self.errors)]
        return self.results


def _pool() -> ThreadPoolExecutor:
    with _shared.lock:
        if _shared.pool is None:
            _shared.pool = ThreadPoolExecutor(
                max_workers=max(1, count_cores() - 1),
                thread_name_prefix="maxmargin",
                initializer=_limit_this_thread,
            )
        return _shared.pool


def _wait(helpers: Sequence["Future[None]"]) -> None:
    for helper in helpers:
        if not helper.cancel():
            helper.result()
