"""How is a loop compiled, and where is its machine code kept between runs?

Numba's disk cache looks only at the file that a function is written in: when a callee,
a constant or a NamedTuple in another file changes, old machine code is run. So our
cache folder is named after a digest of everything that compiled code can depend on.
A wheel may carry machine code under the same name: it is loaded first, never written.
"""

import hashlib
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import llvmlite
import numba
from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic, overload

from maxmargin._compiling import compiling, lock, release, tell_once
from maxmargin._interrupts import raise_if_noted
from maxmargin._processor import LEVEL, numba_settings

try:
    from numba.core.caching import (
        CompileResultCacheImpl,
        FunctionCache,
        IndexDataCacheFile,
        UserWideCacheLocator,
    )

    from maxmargin._callees import (
        CalleeCompiler,
        CompactCompiler,
        callee_rebuilt,
        compile_as_asked,
    )
except ImportError:  # they are private to Numba, and may be renamed one day
    HAS_CACHE_CLASSES = False
else:
    HAS_CACHE_CLASSES = True

Function = TypeVar("Function", bound=Callable[..., Any])

PACKAGE = Path(__file__).parent
CARRIED = PACKAGE / "machine_code"  # only in wheels that `make wheel` has built
NOWHERE = Path(os.devnull)  # nothing can be kept below a file
NEVER_COMPILED = {"estimators", "interop", "cli"}  # no compiled code imports these
COMPILED_FILES = {"interop/liblinear_sweeps.py"}  # the only ones in these rooms
SETTINGS = (  # of Numba, that change machine code
    "BOUNDSCHECK",
    "DEBUGINFO_DEFAULT",
    "LLVM_REFPRUNE_FLAGS",
    "LLVM_REFPRUNE_PASS",
    "LOOP_VECTORIZE",
    "OPT",
    "SLP_VECTORIZE",
    "USING_SVML",
)
SAFE_FASTMATH = {"contract", "reassoc", "nsz", "arcp"}  # NaN and inf keep their meaning
PLAIN = {
    "fastmath": {"contract"},
    "nogil": True,
    "error_model": "numpy",
    "_nrt": False,  # no reference counts: atomic, they cost more than short loops
}
FAST = PLAIN | {"fastmath": SAFE_FASTMATH}
KEEP_DAYS = 30  # long enough for two versions used in turn


def jit(function: Function) -> Function:
    """Compile a function that creates no arrays, and keep its machine code on disk.

    Arrays are borrowed from the caller: no references are counted, so that one taken
    out of a NamedTuple costs nothing. (Twelve of them, counted, cost as much as a move
    of SMO between a hundred variables.) What gets a new array from another function
    would never free it: that is for `jit_new`. The only liberty taken is to round a
    product and a sum once instead of twice.
    """
    return _compile(function, PLAIN)


def jit_fast(function: Function) -> Function:
    """Compile like `jit`, and let sums be reordered so that they vectorise."""
    return _compile(function, FAST)


def jit_new(function: Function) -> Function:
    """Compile like `jit` a function that creates arrays, or gets new ones."""
    return _compile(function, PLAIN | {"_nrt": True})


def jit_compact(function: Function) -> Function:
    """Compile like `jit`, without unrolling any loop of it and of what it calls.

    For an entry of very much code whose hot loops are sums that vectorise: LLVM has
    less to improve and to emit. Others are slower for it, up to a tenth.
    """
    return _compile(function, PLAIN, is_compact=True)


def compiled_as(verb: Callable[..., Any]) -> Callable[[Function], Function]:
    """Say what compiled code runs for `verb`: a function of types that picks a body.

    The body becomes part of its caller before anything is compiled: a tuple of arrays
    that is taken apart in a function of its own counts references at every call. Plain
    Python runs `verb` itself.
    """
    return overload(verb, inline="always")


def _compile(
    function: Function, options: dict[str, Any], *, is_compact: bool = False
) -> Function:
    if config.DISABLE_JIT:
        return numba.njit(**options)(function)
    return _set_apart(_with_cache(function, options, is_compact))


def _with_cache(
    function: Function, options: dict[str, Any], is_compact: bool
) -> Function:
    if cache_folder() is None and carried_folder() is None:
        return numba.njit(**options)(function)
    try:
        if HAS_CACHE_CLASSES:
            compiler = CompactCompiler if is_compact else CalleeCompiler
            compiled = numba.njit(pipeline_class=compiler, **options)(function)
            compiled._cache = _KeyedCache(function)
            return compiled
        with _numba_cache_in(cache_folder()):
            return numba.njit(cache=True, **options)(function)
    except Exception:  # whatever ails the cache, the function still compiles
        return numba.njit(**options)(function)


def _set_apart(compiled: Any) -> Any:
    """Let limits, Ctrl-C and other processes wait while a call is compiled for.

    Numba calls `_compile_for_args` whenever Python calls with arguments of new types;
    machine code is looked for on disk, and otherwise made, inside.
    """
    if HAS_CACHE_CLASSES:
        has_wrapper: dict[Any, bool] = {}  # by types of arguments
        if isinstance(compiled._cache, _KeyedCache):
            compiled._cache.has_wrapper = has_wrapper
        compile_as_asked(compiled, has_wrapper)
    compile_for = compiled._compile_for_args

    def compile_apart(*arguments: Any, **named: Any) -> Any:
        with compiling():
            return compile_for(*arguments, **named)

    compiled._compile_for_args = compile_apart
    return compiled


# Where the machine code is kept.


@cache
def carried_folder() -> Path | None:
    """What the wheel carries for these sources, settings and processor, or None."""
    if LEVEL is None or config.CPU_NAME or config.CPU_FEATURES is not None:
        return None
    folder = CARRIED / _digest_of_sources() / LEVEL
    return folder if folder.is_dir() else None


@cache
def cache_folder() -> Path | None:
    """The writable folder for this version of the package, or None."""
    key = _digest_of_sources()
    for find in (_numba_folder, _user_folder, _temporary_folder):
        with suppress(OSError, RuntimeError):
            folder = find() / key
            is_new = not folder.exists()
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()  # and marks it as used today
            if is_new:
                _remove_old_siblings(folder)
            return folder
    return None


@cache
def _digest_of_sources() -> str:
    digest = hashlib.sha256()
    settings = [getattr(config, name, None) for name in SETTINGS]
    digest.update(repr((numba.__version__, llvmlite.__version__, settings)).encode())
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE)
        if is_in_digest(place):
            source = path.read_bytes()
            digest.update(f"{place.as_posix()} {len(source)} ".encode() + source)
    return digest.hexdigest()[:20]


def is_in_digest(place: Path) -> bool:
    """Whether machine code may depend on the file at this place of the package."""
    is_apart = place.parts[0] in NEVER_COMPILED
    return not is_apart or place.as_posix() in COMPILED_FILES


def _numba_folder() -> Path:
    if not config.CACHE_DIR:
        raise FileNotFoundError("NUMBA_CACHE_DIR is not set.")
    return Path(config.CACHE_DIR) / "maxmargin"


def _user_folder() -> Path:
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData/Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library/Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    if not base.is_absolute():
        raise FileNotFoundError(f"{base} is relative: it would move with the user.")
    return base / "maxmargin"


def _temporary_folder() -> Path:
    if not hasattr(os, "getuid"):
        return (
            Path(tempfile.gettempdir()) / "maxmargin"
        )  # Windows has one for each user
    folder = Path(tempfile.gettempdir()) / f"maxmargin-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    is_private = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o077
    if not is_private or found.st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to somebody else.")  # machine code!
    return folder


def _remove_old_siblings(folder: Path) -> None:
    oldest = time.time() - KEEP_DAYS * 86_400
    for other in folder.parent.iterdir():
        with suppress(OSError):
            if len(other.name) == len(folder.name) and other.stat().st_mtime < oldest:
                shutil.rmtree(other, ignore_errors=True)


# How Numba is told.

if HAS_CACHE_CLASSES:

    class _KeyedLocator(UserWideCacheLocator):
        """Code of the package is kept by its place there, not by where that is."""

        def __init__(self, function: Callable[..., Any], file: str) -> None:
            super().__init__(function, file)
            folder = Path(file).parent
            self.place: Path | None = None  # of a file of this package
            subfolder = self.get_suitable_cache_subpath(file)
            if folder.is_relative_to(PACKAGE):
                self.place = folder.relative_to(PACKAGE)
                subfolder = str(self.place)
            self._cache_path = str((cache_folder() or NOWHERE) / subfolder)

        @classmethod
        def from_function(cls, py_func: Callable[..., Any], py_file: str) -> Any:
            return cls(py_func, py_file)  # that the folder is writable is known

        def get_source_stamp(self) -> Any:
            return _digest_of_sources() if self.place else super().get_source_stamp()

    class _KeyedCacheImpl(CompileResultCacheImpl):
        _locator_classes = (_KeyedLocator,)

        def reduce(self, data: Any) -> Any:
            """Leave out what only `inspect_types` needs: a sixth of the file."""
            return super().reduce(data._replace(type_annotation=""))

        def rebuild(self, target_context: Any, payload: Any) -> Any:
            found = callee_rebuilt(target_context, payload)
            return found or super().rebuild(target_context, payload)

    class _KeyedCache(FunctionCache):
        """Numba's cache in our folders, where a damaged file is only a missing one."""

        _impl_class = _KeyedCacheImpl

        def __init__(self, function: Callable[..., Any]) -> None:
            super().__init__(function)
            self.has_wrapper: dict[Any, bool] = {}  # by types of arguments
            folder, place = carried_folder(), self._impl.locator.place
            self._carried = None
            if folder and place:
                self._carried = IndexDataCacheFile(
                    cache_path=str(folder / place),
                    filename_base=self._impl.filename_base,
                    source_stamp=_digest_of_sources(),
                )

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            raise_if_noted()  # a function is about to begin
            found = self._load_carried(sig, target_context)
            found = found or self._load(sig, target_context)
            if found is None:
                lock(self._lock_path)
                found = self._load(sig, target_context)  # another process may have it
                if found is not None:
                    release(self._lock_path)
            return found

        def _index_key(self, sig: Any, codegen: Any) -> Any:
            """Functions with and without a wrapper are kept apart."""
            return *super()._index_key(sig, codegen), self.has_wrapper.get(sig, True)

        def _carried_key(self, sig: Any, codegen: Any) -> Any:
            """`_index_key` of the process that compiled for this level."""
            assert LEVEL is not None
            _, (triple, *_), *rest = self._index_key(sig, codegen)
            return sig, (triple, *numba_settings(LEVEL)), *rest

        def _load_carried(self, sig: Any, target_context: Any) -> Any:
            if self._carried is None:
                return None
            with suppress(Exception):  # a damaged pickle can raise anything
                target_context.refresh()
                data = self._carried.load(
                    self._carried_key(sig, target_context.codegen())
                )
                return data and self._of(sig, self._impl.rebuild(target_context, data))
            return None

        def _load(self, sig: Any, target_context: Any) -> Any:
            try:
                found = super().load_overload(sig, target_context)
            except Exception:  # a damaged pickle can raise anything
                with suppress(OSError):
                    self.flush()
                return None
            return found and self._of(sig, found)

        @staticmethod
        def _of(sig: Any, found: Any) -> Any:
            """Two processes that save at once may give two signatures the same file."""
            return found if found.signature.args == sig else None

        def save_overload(self, sig: Any, data: Any) -> None:
            with suppress(OSError):  # the disk is full, or the folder has gone
                super().save_overload(sig, data)
            release(self._lock_path)
            tell_once(cache_folder())
            raise_if_noted()

        @property
        def _lock_path(self) -> Path:
            return Path(self._cache_path) / f"{self._impl.filename_base}.lock"


@contextmanager
def _numba_cache_in(folder: Path | None) -> Iterator[None]:
    """Let Numba's public setting point at `folder` while one function is decorated."""
    before = config.CACHE_DIR
    config.CACHE_DIR = str(folder)
    try:
        yield
    finally:
        config.CACHE_DIR = before


# Minimum and maximum that vectorise: Numba's own are branches, for the sake of NaN.


def _as_llvm(name: str) -> Callable[[Function], Function]:
    def replace(function: Function) -> Function:
        return function if config.DISABLE_JIT else _call_llvm(name)

    return replace


def _call_llvm(name: str) -> Any:
    @intrinsic
    def extremum(typing_context, a, b):  # type: ignore[no-untyped-def]
        is_single = a == b == types.float32
        number = types.float32 if is_single else types.float64
        llvm_number = ir.FloatType() if is_single else ir.DoubleType()

        def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            kind = ir.FunctionType(llvm_number, [llvm_number] * 2)
            callee = builder.module.declare_intrinsic(name, [llvm_number], fnty=kind)
            return builder.call(callee, arguments, fastmath=["nnan", "nsz"])

        return number(number, number), emit

    return extremum


@_as_llvm("llvm.minnum")
def smaller(a: Any, b: Any) -> Any:
    """The smaller of two numbers, neither of them NaN; for jitted code."""
    return min(a, b)


@_as_llvm("llvm.maxnum")
def larger(a: Any, b: Any) -> Any:
    """The larger of two numbers, neither of them NaN; for jitted code."""
    return max(a, b)
