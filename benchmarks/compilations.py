"""Has anything been compiled, or loaded, while something was timed?"""

from typing import Any


class Compilations:
    """How many functions Numba has compiled, or loaded, so far."""

    def __init__(self) -> None:
        from numba.core import event

        self.n = 0

        class Listener(event.Listener):
            def on_start(_, event: Any) -> None:
                self.n += 1

            def on_end(_, event: Any) -> None:
                pass

        event.register("numba:compiler_lock", Listener())
