"""How is a value that many threads need made once? The first thread makes it, the
others wait: lazy evaluation under a lock."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Once(Generic[T]):
    """A value that is made when it is first asked for.

    `make` should not refer to the owner of this: large values would outlive their
    use until cycles are looked for.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make, self._lock = make, threading.Lock()
        self._made: tuple[T] | None = None

    @property
    def is_made(self) -> bool:
        return self._made is not None

    def __call__(self) -> T:
        with self._lock:
            if self._made is None:
                self._made = (self._make(),)
            return self._made[0]
