"""How fast is a data file read and written, and in how much memory?

Files of svmlight text are made in a temporary folder. Each reading has its own process:
a few lines first, so that the code is loaded; then the mark of the highest resident
memory is reset, the file is read, and the growth of that mark is taken. What the
readers return is compared as bytes.
"""

import argparse
import gc
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from benchmarks.linear_memory import memory, reset_peak
from benchmarks.tables import print_table

ROOT = Path(__file__).resolve().parents[1]
MEGABYTE = 10**6
REFERENCE = "scikit-learn"
FEATURES = 50_000
PER_ROW = 70  # pairs of a line
ROWS_AT_ONCE = 2_000
WARM_LINES = b"1 1:0.5 2:0.12345678901234567\n" * 20_000  # too many for plain Python
HEADS = ["file", "reader", "seconds", "MB/s", "ratio", "growth, MB", "growth / file"]


class Kind(NamedTuple):
    """What the values of a file look like."""

    words: str
    spell: Callable[[float], str]


KINDS = {
    "short": Kind("6 digits", lambda x: f"{x:.6g}"),
    "exact": Kind("17 digits", lambda x: f"{x:.17g}"),
    "binary": Kind("ones", lambda x: "1"),
}
READERS = (REFERENCE, "maxmargin, 1 thread", "maxmargin, 2 threads")
WRITERS = (REFERENCE, "maxmargin")


def main() -> None:
    given = read_arguments()
    if given.reader:
        print(json.dumps(read_here(given.reader, Path(given.file))))
        return
    print_svmlight(given.megabytes, given.kinds, given.repeat)


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.svmlight", description=__doc__
    )
    parser.add_argument("--megabytes", type=int, default=100, help="size of a file")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--repeat", type=int, default=3, help="the best counts")
    parser.add_argument("--reader", choices=READERS, help="one reading, here")
    parser.add_argument("--file", help="what it reads")
    return parser.parse_args()


def print_svmlight(megabytes: int, kinds: list[str], repeat: int) -> None:
    """Both tables."""
    print(f"Reading svmlight text of about {megabytes} MB, best of {repeat}\n")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in kinds:
            path = Path(folder) / f"{name}.txt"
            write_file(path, KINDS[name], megabytes * MEGABYTE)
            rows += reading_rows(KINDS[name].words, path, repeat)
            path.unlink()
    print_table(HEADS, rows)
    print("\nratio: scikit-learn's seconds over those; growth: of resident memory\n")
    print(f"Writing {10**6:,} numbers\n")
    print_table(["values", "writer", "seconds", "ratio"], writing_rows(repeat))


def write_file(path: Path, kind: Kind, size: int) -> None:
    rng = np.random.default_rng(0)
    n_bytes = 0
    with path.open("w") as file:
        while n_bytes < size:
            n_bytes += file.write("".join(make_lines(rng, kind)))


def make_lines(rng: np.random.Generator, kind: Kind) -> list[str]:
    lines = []
    for _ in range(ROWS_AT_ONCE):
        n = int(rng.integers(PER_ROW // 2, 3 * PER_ROW // 2))
        columns = np.unique(rng.integers(1, FEATURES, n)).tolist()
        values = rng.standard_normal(len(columns)).tolist()
        pairs = zip(columns, values, strict=True)
        text = " ".join(f"{j}:{kind.spell(x)}" for j, x in pairs)
        lines.append(f"{rng.choice(['+1', '-1'])} {text}\n")
    return lines


# Reading.


def reading_rows(words: str, path: Path, repeat: int) -> list[list[str]]:
    """A row for each reader; they take turns."""
    found: dict[str, list[dict[str, Any]]] = {reader: [] for reader in READERS}
    for _ in range(repeat):
        for reader in READERS:
            found[reader].append(read_elsewhere(reader, path))
            print(words, reader, found[reader][-1], file=sys.stderr)
    if len({run["digest"] for runs in found.values() for run in runs}) > 1:
        raise SystemExit(f"{path.name}: the readers do not return the same arrays.")
    size = path.stat().st_size / MEGABYTE
    best = {reader: min(run["seconds"] for run in found[reader]) for reader in READERS}
    rows = []
    for reader, seconds in best.items():
        growth = max(run["growth"] for run in found[reader]) / MEGABYTE
        speed = [f"{seconds:.2f}", f"{size / seconds:.0f}"]
        ratio = f"{best[REFERENCE] / seconds:.1f}"
        rows.append([words, reader, *speed, ratio, f"{growth:.0f}"])
        rows[-1].append(f"{growth / size:.1f}")
    return rows


def read_elsewhere(reader: str, path: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.svmlight", "--reader", reader]
    done = subprocess.run(
        [*command, "--file", str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{reader} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def read_here(reader: str, path: Path) -> dict[str, Any]:
    """Seconds, growth of the peak of memory, and a digest of the arrays."""
    read = reader_of(reader)
    with tempfile.TemporaryDirectory() as folder:
        warm = Path(folder) / "warm.txt"
        warm.write_bytes(WARM_LINES)
        read(warm)
    gc.collect()
    before = reset_peak()
    began = time.perf_counter()
    X, y = read(path)
    seconds = time.perf_counter() - began
    growth = memory("VmHWM") - before
    digest = hashlib.sha256(repr(X.shape).encode())
    for array in (X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64), y):
        digest.update(np.ascontiguousarray(array))
    return {"seconds": seconds, "growth": growth, "digest": digest.hexdigest()[:16]}


def reader_of(reader: str) -> Callable[[Path], Any]:
    if reader == REFERENCE:
        from sklearn.datasets import load_svmlight_file

        return lambda path: load_svmlight_file(str(path))
    from maxmargin.data.svmlight import read_svmlight

    n_threads = 2 if reader.endswith("2 threads") else 1
    return lambda path: read_svmlight(path, n_threads=n_threads)[:2]


# Writing.


def writing_rows(repeat: int) -> list[list[str]]:
    rng = np.random.default_rng(0)
    exact = rng.standard_normal((20_000, 50))
    rows = []
    for words, X in (("17 digits", exact), ("4 decimals", exact.round(4))):
        best = {writer: write_seconds(writer, X, repeat) for writer in WRITERS}
        for writer, seconds in best.items():
            ratio = f"{best[REFERENCE] / seconds:.1f}"
            rows.append([words, writer, f"{seconds:.2f}", ratio])
    return rows


def write_seconds(writer: str, X: np.ndarray, repeat: int) -> float:
    from sklearn.datasets import dump_svmlight_file

    from maxmargin.data.svmlight import write_svmlight

    y, taken = np.ones(len(X)), []
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "data.txt")
        for _ in range(repeat + 1):
            began = time.perf_counter()
            if writer == REFERENCE:
                dump_svmlight_file(X, y, path, zero_based=False)
            else:
                write_svmlight(path, sp.csr_matrix(X), y)
            taken.append(time.perf_counter() - began)
    return min(taken[1:])


if __name__ == "__main__":
    main()
