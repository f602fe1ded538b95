"""How does machine code come into a wheel? All kinds of fits, once for each level.

    python tools/machine_code.py FOLDER

fills FOLDER with DIGEST/LEVEL/...; in a wheel it becomes maxmargin/machine_code. Code
is run while it is compiled, so levels that this processor lacks are left out.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from maxmargin._processor import (
    LEVELS,
    highest_level,
    numba_settings,
    target_features,
)

SUFFIXES = (".nbi", ".nbc")


def main(folder: Path) -> None:
    """Compile for every level of this processor, and say which were left out."""
    features = target_features()
    if highest_level(features) is None:
        sys.exit("This processor has none of the levels. `pip wheel .` needs none.")
    for level, needed in LEVELS.items():
        if lacking := sorted(needed - features):
            print(f"{level}: left out, this processor lacks {', '.join(lacking)}")
            continue
        size = compile_for(level, folder)
        print(f"{level}: {size / 1e6:.1f} MB of machine code in {folder}")


def compile_for(level: str, folder: Path) -> int:
    """FOLDER/DIGEST/LEVEL, in place of what was there; its size in bytes."""
    name, features = numba_settings(level)
    with tempfile.TemporaryDirectory() as cache:
        settings = {
            "NUMBA_CPU_NAME": name,
            "NUMBA_CPU_FEATURES": features,
            "NUMBA_CACHE_DIR": cache,
        }
        command = [sys.executable, "-m", "maxmargin", "compile"]
        subprocess.run(
            command,
            env=os.environ | settings,
            stdout=subprocess.DEVNULL,  # it names the temporary folder
            check=True,
        )
        (compiled,) = Path(cache, "maxmargin").iterdir()  # named after the digest
        target = folder / compiled.name / level
        shutil.rmtree(target, ignore_errors=True)
        files = [path for path in compiled.rglob("*") if path.suffix in SUFFIXES]
        for path in files:
            place = target / path.relative_to(compiled)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)
        return sum(path.stat().st_size for path in files)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
