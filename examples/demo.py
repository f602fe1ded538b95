"""What do the commands look like? Wines, from a text file to predictions.

Run by `make demo`. The data (178 wines of three growers, 13 measurements each) are from
the UCI Machine Learning Repository. `digits.py` shows the estimators.
"""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parent / "build" / "demo"
STEPS = (
    ("Scale, search and train, in one go", "fit {train} wine.maxmargin"),
    ("Predict wines that were held out", "apply wine.maxmargin {test} answers.txt"),
    ("What is in the model file?", "inspect wine.maxmargin"),
    ("Hand it to LIBSVM: a model, and ranges", "convert wine.maxmargin wine.model"),
    ("The same by LIBSVM's words", "svm-scale -r wine.model.range {test} > wine.scale"),
    ("", "svm-predict wine.scale wine.model answers.txt"),
)


def main() -> int:
    FOLDER.mkdir(parents=True, exist_ok=True)
    os.chdir(FOLDER)
    names = {n: os.path.relpath(HERE / f"wine.{n}") for n in ("train", "test")}
    for title, step in STEPS:
        command = step.format(**names)
        heading = f"\n# {title}\n" if title else ""
        print(f"{heading}$ maxmargin {command}", flush=True)
        words, _, output = command.partition(" > ")
        code = run(words.split(), output)
        if code:
            return code
    print(f"\nEverything is in {os.path.relpath(FOLDER, HERE.parent)}.")
    return 0


def run(words: list[str], output: str) -> int:
    """Run a command as a shell would, its output perhaps going to a file."""
    command = [sys.executable, "-m", "maxmargin", *words]
    if not output:
        return subprocess.run(command, check=False).returncode
    with open(output, "w", encoding="utf-8") as stream:
        return subprocess.run(command, stdout=stream, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
