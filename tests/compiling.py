"""How does a test meet the compiler on purpose? A function that is compiled anew."""

from collections.abc import Callable
from typing import Any

from maxmargin import _jit
from maxmargin._jit import compiled_as, jit


def fresh_function(during: Callable[[], object], monkeypatch: Any) -> Any:
    """A jitted identity; `during` is called while it is compiled, at its first call.

    It is not kept on disk, so that every test compiles it.
    """
    monkeypatch.setattr(_jit, "cache_folder", lambda: None)

    def identity(x: float) -> float:
        return x

    @compiled_as(identity)
    def body(x: Any) -> Any:
        def same(x: Any) -> Any:  # Numba compares signatures, annotations included
            return x

        during()
        return same

    @jit
    def function(x: float) -> float:
        return identity(x)

    return function
