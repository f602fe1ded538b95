"""Which numbers does the C function rand() give? Those of the GNU library, from seed 1.

An additive feedback generator: each number is the sum of the ones 3 and 31 places
before it, modulo 2^32, without its last bit. The first 310 are thrown away.
(Knuth, The Art of Computer Programming, volume 2, section 3.2.2.)
"""

import threading
from collections import deque

import numpy as np
from numpy.typing import NDArray

from maxmargin.typing import IntVector

LONG_LAG, SHORT_LAG = 31, 3
THROWN_AWAY = 10 * LONG_LAG
MULTIPLIER, PRIME = 16807, 2147483647  # of the generator that fills the first places
WORD = 0xFFFFFFFF


class CRand:
    """A state of its own, as a process that has just begun has one."""

    def __init__(self, seed: int = 1) -> None:
        self._lock = threading.Lock()
        self.srand(seed)

    def srand(self, seed: int) -> None:
        """Begin again; seed 0 stands for 1."""
        last = int(seed) & WORD or 1
        first = [last]
        last = last - (1 << 32) if last > PRIME else last  # a signed number
        for _ in range(LONG_LAG - 1):
            last = MULTIPLIER * last % PRIME
            first.append(last)
        with self._lock:
            self._last = deque(first, LONG_LAG)
            self._last.rotate(-SHORT_LAG)
            self._draw(THROWN_AWAY)

    def rand(self) -> int:
        """The next number, from 0 to 2^31 - 1."""
        with self._lock:
            return self._draw(1)[0]

    def shuffled(self, items: IntVector) -> IntVector:
        """Each place in turn is swapped with one not before it, drawn by rand()."""
        order = items.tolist()
        n = len(order)
        with self._lock:
            numbers = self._draw(n)
        for i, number in enumerate(numbers):
            j = i + number % (n - i)
            order[i], order[j] = order[j], order[i]
        return np.array(order, dtype=np.intp)

    def state(self) -> NDArray[np.int64]:
        """The last numbers, oldest first, and the place (0) of the oldest."""
        with self._lock:
            return np.array([*self._last, 0], dtype=np.int64)

    def resume(self, state: NDArray[np.int64]) -> None:
        """Go on where compiled code has come to with a state."""
        place = int(state[LONG_LAG])
        numbers = np.roll(state[:LONG_LAG], -place).tolist()
        with self._lock:
            self._last = deque(numbers, LONG_LAG)

    def _draw(self, n: int) -> list[int]:
        last, numbers = self._last, []
        for _ in range(n):
            value = (last[0] + last[-SHORT_LAG]) & WORD
            last.append(value)
            numbers.append(value >> 1)
        return numbers


PROCESS = CRand()  # what libraries in one process share
