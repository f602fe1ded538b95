"""How is a whole grid cross-validated? Kernel by kernel, every cell on all threads."""

import weakref
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from maxmargin._threads import count_cores, one_blas_thread, run_all
from maxmargin.data.labels import Labels
from maxmargin.data.rows import Rows
from maxmargin.kernels.arena import ITEM_BYTES
from maxmargin.kernels.functions import Kernel
from maxmargin.kernels.held import HeldGram
from maxmargin.kernels.memory import MOST_SPARE, forget_spares, new_square
from maxmargin.kernels.shared import SharedPairs
from maxmargin.selection.formulations import Setting
from maxmargin.selection.lines import Answer, FoldEvidence, Line
from maxmargin.selection.plan import FoldTask, Plan, Task
from maxmargin.selection.sources import ComputedSource, HeldSource, Source
from maxmargin.solvers import Options
from maxmargin.typing import FloatMatrix, IntVector

VALUE_BYTES = 8  # of a float64
FEW = 2000  # samples: all of K is soon computed
WIDE = 256  # stored values in a row: then every row of K is dear
PER_SAMPLE = 8  # row, weight, target, variable, sum, box, two coefficients
PER_ASKED = 4  # where it is, twice, sum, decision
MANY = 8  # tasks a thread: then it does not matter who comes last


class Engine:
    """Cross-validation of many settings on the same samples and folds."""

    def __init__(
        self,
        samples: Rows | FloatMatrix,
        kernels: Sequence[Kernel | None],
        task: Task,
        options: Options,
        n_threads: int,
        n_kept: int = 1,
    ) -> None:
        """`samples` is K itself where the only kernel is None.

        `n_kept` kernels stay in memory, if that is large enough. 0 means that each is
        asked about once: then K is held only where that costs less than the rows that
        one machine a fold needs.
        """
        self.n_threads, self.kernels = n_threads, list(kernels)
        self.samples, self.task, self.is_once = samples, task, n_kept == 0
        self.is_given = isinstance(samples, np.ndarray)
        self.order = np.arange(len(samples))
        if not self.is_given:
            self.order = _in_a_row(len(samples), task)
            self._sort()
        n_each = _square_bytes(task)
        n_shared = 0 if self.is_once else n_each
        n_squares = n_threads * ITEM_BYTES * _n_largest(task) ** 2
        if n_shared + n_each + n_squares <= options.cache_bytes:
            n_shared += n_squares
        else:
            n_squares = 0
        self.n_alive = int((options.cache_bytes - n_shared) // n_each)
        self.has_spare = self.n_alive > n_kept
        pays = n_kept > 0 or _pays_once(self.samples)
        self.is_held = self.is_given or (pays and self.n_alive >= 1)
        self.n_alive = int(np.clip(self.n_alive, 1, max(n_kept, 1)))
        if self.is_held:
            n_bytes = max(ITEM_BYTES * MOST_SPARE, n_squares // n_threads)
            n_bytes = int(np.ceil(n_bytes / options.tuning.square_share))
        else:
            n_bytes = options.cache_bytes // count_cores()
        self.options = replace(options, cache_bytes=n_bytes, polish=False)
        self.plan = Plan(self.task, self.is_held)
        self._shared: SharedPairs | None = None
        self.lines: dict[tuple[int, float], Line] = {}
        self.sources: dict[int, Source] = {}
        self.rooms: list[FloatMatrix] = []  # of kernels that have left
        weakref.finalize(self, forget_spares)  # until then, squares are used again

    def _sort(self) -> None:
        """Those of one class stand together: a pair of them is two runs of K.

        Among them, those held out together do: their sums are a run for each class.
        """
        order = self.order
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        task, target = self.task, self.task.target
        folds = [FoldTask(f.weight[order], place[f.outside]) for f in task.folds]
        if isinstance(target, Labels):
            target = Labels(target.classes, target.code[order])
        else:
            target = target[order]
        self.samples = self.samples.take(order)
        self.task = Task(target, folds, task.formulation)

    def solve(self, settings: Sequence[Setting]) -> list[list[Answer]]:
        """The answers of all folds for each of these settings, solved at once.

        No two may be on one line. Along a line, ascending is fastest.
        """
        with one_blas_thread():
            self._make_room({setting.kernel for setting in settings})
            lines = [self._line(setting) for setting in settings]
            places = [self.task.formulation.place(setting) for setting in settings]
            tasks = [line.tasks(at) for line, at in zip(lines, places, strict=True)]
            run_all([task for own in tasks for task in own], self.n_threads)
            tasks = [line.listen(at) for line, at in zip(lines, places, strict=True)]
            run_all([task for own in tasks for task in own], self.n_threads)
        return [line.answers() for line in lines]

    def evidence(self, setting: Setting, orders: list[IntVector]) -> list[FoldEvidence]:
        """How the machines of a setting just solved came to their answers.

        Only where K is in memory. `orders` has the classes of each fold, in the order
        that its pairs shall have.
        """
        place = self.task.formulation.place(setting)
        return self._line(setting).evidence(place, orders)

    def gram(self, kernel: int, rows: IntVector) -> HeldGram | None:
        """K between samples as they were given, for a fit after the search.

        None where computing its own rows costs a fit no more, or memory is short.
        """
        can = self.is_given or (self.is_held and self.has_spare)
        if not can or not _pays_once(self.samples):
            return None
        place = np.empty_like(self.order)
        place[self.order] = np.arange(len(place))
        source = self._source(kernel)
        assert isinstance(source, HeldSource), "K is in memory"
        return source.gram.take(place[rows])

    @property
    def n_at_once(self) -> int:
        """How many kernels to work on together."""
        return min(n_together(self.task, self.n_threads), self.n_alive)

    # Kernels come and go; what was solved stays.

    def line_of(self, setting: Setting) -> tuple[int, float]:
        """The name of the line that a setting is on."""
        return setting.kernel, self.task.formulation.place(setting).fixed

    def _line(self, setting: Setting) -> Line:
        key = self.line_of(setting)
        if key not in self.lines:
            source = partial(self._source, setting.kernel)
            self.lines[key] = Line(self.plan, source, self.options)
        return self.lines[key]

    def _source(self, kernel: int) -> Source:
        if kernel not in self.sources:
            self.sources[kernel] = self._make_source(self.kernels[kernel])
        return self.sources[kernel]

    def _make_source(self, kernel: Kernel | None) -> Source:
        if kernel is None:
            K = np.ascontiguousarray(self.samples, dtype=np.float64)
            return HeldSource(HeldGram(K))
        assert not isinstance(self.samples, np.ndarray), "K itself has no kernel"
        if not self.is_held:
            return ComputedSource(kernel, self.samples)
        if self._shared is None:
            known = [each for each in self.kernels if each is not None]
            self._shared = SharedPairs(known, self.samples, self.n_threads)
        shared = self._shared
        room = shared.pairs
        if self.is_once:  # nobody else will ask for what kernels have in common
            self._shared = None
        else:
            n = len(self.samples)
            room = self.rooms.pop() if self.rooms else new_square(n)
        K = shared.fill(kernel, room)
        return HeldSource(HeldGram(K, shared.bound(kernel, K)))

    def _make_room(self, wanted: set[int]) -> None:
        """The kernels unused for longest leave, if there is no room for all."""
        others = [kernel for kernel in self.sources if kernel not in wanted]
        n_gone = len(others) + len(wanted) - max(self.n_alive, len(wanted))
        for kernel in others[: max(n_gone, 0)]:
            for (own, _), line in self.lines.items():
                if own == kernel:
                    line.release()
            source = self.sources.pop(kernel)
            if isinstance(source, HeldSource) and not self.is_given:
                self.rooms.append(source.gram.K)
        for kernel in sorted(wanted):
            source = self._source(kernel)
            self.sources[kernel] = self.sources.pop(kernel, source)


def worth_sharing(samples: Rows | FloatMatrix, task: Task, options: Options) -> bool:
    """Whether folds asked about one kernel, once, had better share it than fit alone.

    They do if all of K costs less than the rows that they need, and if memory is large
    enough for K, and for where each fold is. Else an engine that
    keeps nothing computes rows as it goes, and fits by themselves do that better: they
    share rows between pairs of classes.
    """
    n_bytes = _square_bytes(task) + _fold_bytes(task)
    return _pays_once(samples) and n_bytes <= options.cache_bytes


def _pays_once(samples: Rows | FloatMatrix) -> bool:
    """Whether all of K costs less than the rows that one machine a fold needs."""
    if isinstance(samples, np.ndarray):
        return True
    return len(samples) <= FEW or samples.n_values >= WIDE * len(samples)


def n_together(task: Task, n_threads: int) -> int:
    """With how many kernels no thread waits long for the others, if there is memory."""
    n_tasks = sum(_n_machines(task, fold) for fold in task.folds)
    is_even = n_tasks % n_threads == 0 or n_tasks > MANY * n_threads
    return 1 if is_even else 2


def _n_machines(task: Task, fold: FoldTask) -> int:
    if not isinstance(task.target, Labels):
        return 1
    n_classes = len(np.unique(task.target.code[fold.weight > 0.0]))
    return n_classes * (n_classes - 1) // 2


def _in_a_row(n: int, task: Task) -> IntVector:
    """All samples, those of the first class first, and of its first fold first of all.

    Folds that overlap have no say.
    """
    order = np.concatenate([fold.outside for fold in task.folds])
    if not np.array_equal(np.sort(order), np.arange(n)):
        order = np.arange(n)
    if isinstance(task.target, Labels) and task.target.n_classes > 2:
        order = order[np.argsort(task.target.code[order], kind="stable")]
    return order


def _n_largest(task: Task) -> int:
    """Samples of the largest problem."""
    if not isinstance(task.target, Labels):
        return len(task.target)
    return int(np.sort(np.bincount(task.target.code))[-2:].sum())


def _square_bytes(task: Task) -> int:
    """Memory for one number of every pair of samples."""
    return VALUE_BYTES * len(task.folds[0].weight) ** 2


def _fold_bytes(task: Task) -> int:
    """Memory for what machines of folds know of every sample of theirs."""
    n_rivals = task.target.n_classes - 1 if isinstance(task.target, Labels) else 1
    n_values = PER_SAMPLE * len(task.folds[0].weight) * max(n_rivals, 1)
    n_asked = sum(_n_machines(task, fold) * len(fold.outside) for fold in task.folds)
    return VALUE_BYTES * (len(task.folds) * n_values + PER_ASKED * n_asked)
