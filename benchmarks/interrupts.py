"""Does a command that is interrupted end with 130, and without a traceback?

    python -m benchmarks.interrupts --n 200 --load 2

Commands are started and get SIGINT after a random time: while modules are imported,
while code is compiled (one run in ten has an empty cache), and while threads run
compiled code, beside processes that keep the cores busy. The clock starts when Python
has started and the program begins, and a command that has returned is not interrupted
any more. The table counts, for each command, the exit codes; whatever was not 130 with
the one line "interrupted" is shown below it, and makes the exit code 1.
"""

import argparse
import collections
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from benchmarks.tables import print_table

SOURCES = Path(__file__).resolve().parents[1] / "src"
COMMANDS = (
    ("grid", "-out", "null", "-gnuplot", "null", "samples"),
    ("fit", "--quiet", "samples", "model"),
    ("svm-train", "-q", "-b", "1", "-c", "100", "samples", "model"),
    ("train", "-q", "-C", "-s", "0", "samples", "model"),
    ("svm-scale", "samples"),
)
N_SAMPLES = 3000
END_LIMIT = 120.0  # seconds from an interrupt to the end; what takes longer hangs
SPAN = 8.0  # seconds from the start within which interrupts come
COLD_SHARE = 0.1  # of all runs begin with an empty cache
COLD_SPAN = 30.0  # seconds, the same where everything is compiled
RIGHT = "130"
BEGIN_AND_END = """\
import logging, os, signal, sys
from maxmargin.__main__ import end_interrupted, run
logging.getLogger("maxmargin").setLevel(logging.ERROR)
signal.signal(signal.SIGINT, end_interrupted)  # the first thing that run() does
os.write({pipe}, b"begun")
code = run()
os.write({pipe}, b"ended")
sys.exit(code)
"""
BUSY = "import os; parent = os.getppid()\nwhile os.getppid() == parent: pass"


class Ending(NamedTuple):
    """How a command ended that was interrupted after some seconds."""

    words: Sequence[str]
    is_cold: bool
    seconds: float
    waited: float  # seconds from then on
    code: int
    err: str

    @property
    def kind(self) -> str:
        """What the table counts it as."""
        is_right = self.err == "interrupted\n"
        return str(self.code) if is_right or self.code != 130 else "130 and more"


def main() -> int:
    given = _read_arguments()
    draw = random.Random(given.seed)
    # A shell has its background jobs ignore SIGINT, and commands would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as folder, busy_cores(given.load):
        write_samples(Path(folder, "samples"))
        spans = [SPAN] * len(COMMANDS)
        endings: list[Ending] = []
        while len(endings) < given.n:
            k = len(endings) % len(COMMANDS)
            is_cold = draw.random() < COLD_SHARE
            seconds = draw.uniform(0.0, COLD_SPAN if is_cold else spans[k])
            ending = interrupt(COMMANDS[k], folder, seconds, is_cold)
            if ending is None:  # it had come to its end before
                spans[k] = min(spans[k], seconds)
                continue
            endings.append(ending)
            print(f"{len(endings)}: {ending.kind}", file=sys.stderr, flush=True)
        drafts = [name for name in os.listdir(folder) if name.startswith(".")]
    return report(endings, drafts)


def report(endings: list[Ending], drafts: list[str]) -> int:
    """Print the table, what went wrong, and unfinished files that were left."""
    kinds = sorted({ending.kind for ending in endings})
    rows = []
    for words in COMMANDS:
        own = [ending for ending in endings if ending.words == words]
        counts = collections.Counter(ending.kind for ending in own)
        n_cold = str(sum(ending.is_cold for ending in own))
        rows.append([words[0], "", n_cold, *(str(counts[kind]) for kind in kinds)])
    print_table(["command", "", "empty cache", *kinds], rows)
    slowest = max(ending.waited for ending in endings)
    print(f"\nslowest end: {slowest:.1f} s; unfinished files left: {len(drafts)}")
    wrong = [ending for ending in endings if ending.kind != RIGHT]
    for ending in wrong:
        print(f"\n{' '.join(ending.words)} after {ending.seconds:.3f} s: {ending.code}")
        print(ending.err)
    return 1 if wrong or drafts else 0


def interrupt(
    words: Sequence[str], folder: str, seconds: float, is_cold: bool = False
) -> Ending | None:
    """A command interrupted after some seconds; None if it has ended before."""
    with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryFile("w+") as err:
        process, pipe = start(words, folder, err, cache if is_cold else None)
        with pipe:
            pipe.read(len(b"begun"))
            is_ended, *_ = select.select([pipe], [], [], seconds)
            if not is_ended:
                process.send_signal(signal.SIGINT)
            sent = time.monotonic()
            try:
                process.wait(END_LIMIT)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGABRT)  # shows where it hangs
                process.wait()
        waited = time.monotonic() - sent
        err.seek(0)
        shown = err.read()
    if is_ended:
        return None
    return Ending(words, is_cold, seconds, waited, process.returncode, shown)


def start(
    words: Sequence[str], folder: str, err: IO[str], cache: str | None = None
) -> tuple["subprocess.Popen[str]", IO[bytes]]:
    """A command in a new process, and the pipe that says when it begins and ends.

    The process shows its stack if it crashes.
    """
    environment = os.environ | {
        "PYTHONPATH": str(SOURCES),
        "PYTHONFAULTHANDLER": "1",
    }
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = cache
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", BEGIN_AND_END.format(pipe=writer), *words],
        cwd=folder,
        env=environment,
        pass_fds=[writer],
        stdout=subprocess.DEVNULL,
        stderr=err,
        text=True,
    )
    os.close(writer)
    return process, os.fdopen(reader, "rb", buffering=0)


def write_samples(path: Path) -> None:
    """Two classes that overlap, as text."""
    draw = random.Random(0).gauss
    with path.open("w") as out:
        for i in range(N_SAMPLES):
            label = 1 - 2 * (i % 2)
            values = (f"{j}:{draw(0.3 * label, 1.0):.3f}" for j in range(1, 6))
            print(label, *values, file=out)


@contextmanager
def busy_cores(n: int) -> Iterator[None]:
    """So many processes that do nothing, without a pause, as long as this one lives."""
    loops = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(n)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.interrupts", description=__doc__
    )
    parser.add_argument("--n", type=int, default=200, help="commands to interrupt")
    parser.add_argument("--load", type=int, default=2, help="busy loops beside them")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
