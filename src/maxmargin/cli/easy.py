"""How does a beginner get a good machine in one go? (LIBSVM's easy.py.)"""

import contextlib
import io
import json
import os
from dataclasses import replace

from maxmargin import _clock
from maxmargin.cli import grid, svm_predict, svm_scale, svm_train
from maxmargin.cli.console import Command, Context, Failure, is_readable, written

USAGE = """\
Usage: easy training_file [testing_file]

Scales every feature to [-1, 1], searches C and gamma on a grid, trains, and predicts
the testing file where there is one. Files are written to the current folder:
training_file.scale, .range, .scale.out and .model, with matplotlib .scale.png; and
testing_file.scale and .predict.
"""


def run(arguments: list[str], context: Context) -> int:
    """Run svm-scale, grid, svm-train and svm-predict one after the other."""
    if not 1 <= len(arguments) <= 2 or arguments[0].startswith("-"):
        raise Failure(usage=USAGE)
    for path, what in zip(arguments, ("training", "testing"), strict=False):
        if not is_readable(path):
            raise Failure(f"{what} file not found: {path}")
    train_name = os.path.basename(arguments[0])
    ranges, model = f"{train_name}.range", f"{train_name}.model"
    silent = replace(context, is_json=True)

    context.say("Scaling training data...")
    scaled = _scale(["-s", ranges, arguments[0]], train_name, silent)
    context.say("Cross validation...")
    found = grid.search(grid.default_task(scaled), silent)
    C, gamma = found.best.values()
    context.say(f"Best c={C}, g={gamma} CV rate={found.best.rate}")
    context.say("Training...")
    _quietly(svm_train.run, ["-c", str(C), "-g", str(gamma), scaled, model], silent)
    context.say(f"Output model: {model}")
    facts = found.facts() | {"model": model}
    if len(arguments) == 1:
        context.report(**facts)
        return 0

    test_name = os.path.basename(arguments[1])
    context.say("Scaling testing data...")
    scaled = _scale(["-r", ranges, arguments[1]], test_name, silent)
    context.say("Testing...")
    words = [scaled, model, f"{test_name}.predict"]
    if context.is_json:
        scores = json.loads(_quietly(svm_predict.run, words, context))
        context.report(**facts, prediction=words[-1], test=scores)
        return 0
    svm_predict.run(words, context)
    context.say(f"Output prediction: {words[-1]}")
    return 0


@_clock.paused()
def _scale(arguments: list[str], name: str, context: Context) -> str:
    """Scale a file into a new one, whose name is returned."""
    path = f"{name}.scale"
    text = _quietly(svm_scale.run, arguments, replace(context, is_json=False))
    with written(path, f"can't open output file {path}") as stream:
        stream.write(text)
    return path


def _quietly(run: Command, arguments: list[str], context: Context) -> str:
    """Run a command, and take what it would have printed."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        run(arguments, context)
    return out.getvalue()
