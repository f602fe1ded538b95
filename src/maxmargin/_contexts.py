"""What does Numba look up again and again? Types of calls, and its own modules.

Type inference comes back to every call of a function several times, and all functions
have the same sums, comparisons and elements of arrays: here the type of a call is found
once. And where an array is read or written, Numba asks whether it has to be turned into
one first; as no conversion is known, it imports all of its modules again. Together that
was a twentieth of the time of a first search. The contexts here share what Numba's
contain.
"""

from functools import cache
from typing import Any

from numba.core import types
from numba.core.cpu import CPUContext
from numba.core.targetconfig import ConfigStack
from numba.core.typing.context import Context

_found: dict[Any, Any] = {}  # what a call of Numba's own functions gives


class _QuickTypes(Context):
    """A typing context that remembers."""

    def __init__(self, context: Context) -> None:
        self.__dict__ = context.__dict__

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        """The signature of a call; a function of ours is compiled for it meanwhile."""
        if isinstance(func, str | types.Dispatcher | types.BoundFunction):
            return super().resolve_function_type(func, args, kws)
        flags = ConfigStack.top_or_none()  # what is compiled for a call has them too
        call = flags, func, tuple(args), tuple(dict(kws).items())
        signature = _found.get(call)
        if signature is None:
            signature = super().resolve_function_type(func, args, kws)
            _found[call] = signature
        return signature


class _QuickTarget(CPUContext):
    """A target that has been refreshed before, and whose arrays are arrays."""

    def __init__(self, context: CPUContext) -> None:
        self.__dict__ = context.__dict__

    def load_additional_registries(self) -> None:
        """What has been added to those that are known."""
        for registry in list(self._registries):
            self.install_registry(registry)

    def get_function(self, fn: Any, sig: Any, _firstcall: bool = True) -> Any:
        """What is run for a call."""
        if fn == "__array__" and type(sig.args[0]) is types.Array:
            raise NotImplementedError("An array needs not be turned into one.")
        return super().get_function(fn, sig, _firstcall)


@cache
def quick_types(context: Any) -> Any:
    """The same typing context, if it is Numba's own, but one that remembers."""
    return _QuickTypes(context) if type(context) is Context else context


@cache
def quick_target(context: Any) -> Any:
    """The same target, if it is Numba's own, but one that imports nothing."""
    return _QuickTarget(context) if type(context) is CPUContext else context
