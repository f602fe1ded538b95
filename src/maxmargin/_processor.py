"""Which instructions may machine code use? The levels of x86-64 (System V psABI, 3.1).

Numba compiles for the processor it runs on. The wheel carries machine code for levels
instead: sets of instructions that most processors of a generation have. A processor is
given the code of its highest level, and of no other, so that constants which depend on
the level (how many lanes a vector has) are the same in Python and in machine code.
"""

from contextlib import suppress

from llvmlite import binding
from numba import config

_V2 = {"cx16", "popcnt", "sahf", "sse3", "ssse3", "sse4.1", "sse4.2"}
_V3 = {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"}
_V4 = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
WITH_AVX512 = "x86-64-v4"
LEVELS = {  # the highest first; features as LLVM calls them
    WITH_AVX512: _V2 | _V3 | _V4,
    "x86-64-v3": _V2 | _V3,
}


def target_features() -> set[str]:
    """Features that Numba compiles for: NUMBA_CPU_FEATURES, or the processor's."""
    if config.CPU_FEATURES is not None:
        words = config.CPU_FEATURES.split(",")
        return {word[1:] for word in words if word.startswith("+")}
    with suppress(RuntimeError):  # LLVM does not know the processor
        found = {name for name, has in binding.get_host_cpu_features().items() if has}
        if config.ENABLE_AVX:
            return found
        return {name for name in found if not name.startswith("avx")}
    return set()


def highest_level(features: set[str]) -> str | None:
    """The highest level whose features are all there."""
    return next((name for name, needed in LEVELS.items() if needed <= features), None)


def numba_settings(level: str) -> tuple[str, str]:
    """NUMBA_CPU_NAME and NUMBA_CPU_FEATURES for code of a level.

    With the name alone, Numba would add all features of the processor it runs on.
    """
    return level, ",".join(f"+{name}" for name in sorted(LEVELS[level]))


LEVEL = highest_level(target_features())
