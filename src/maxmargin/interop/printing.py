"""Who hears what is printed while a machine is trained?"""

from collections.abc import Callable
from typing import Any

from maxmargin.interop.libsvm_training import Say, aloud, quiet


def print_null(s: Any) -> None:
    """Hears, and says nothing."""


class PRINT_STRING_FUN:
    """Stands for the type of C's print functions: the function gets bytes."""

    def __init__(self, function: Callable[[bytes], object]) -> None:
        self.function = function

    def __call__(self, text: bytes) -> object:
        return self.function(text)


def printer(print_func: Any) -> Say:
    """None prints to the standard output."""
    if print_func is None:
        return aloud
    if print_func is print_null:
        return quiet
    return lambda text: print_func(text.encode())
