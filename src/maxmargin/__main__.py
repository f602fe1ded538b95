"""What does `maxmargin`, or `python -m maxmargin`, do? It runs the command line.

An interrupt ends the process at once, from its first line on: threads may be running
compiled code, so nothing that they use is freed, and no exception is raised in the
middle of a compilation or of a library that does not expect one.
"""

import os
import signal
import sys

INTERRUPTED = 130  # what a shell reports for Ctrl-C


def run() -> int:
    """Run the command of `sys.argv`; the exit code, unless Ctrl-C ends the process."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, end_interrupted)
    from maxmargin.cli import main

    return main()


def end_interrupted(number: int, frame: object) -> None:
    """Remove unfinished files, say why, and end; a second interrupt does not wait."""
    signal.signal(signal.SIGINT, lambda number, frame: os._exit(INTERRUPTED))
    try:
        from maxmargin._interrupts import clean_up

        clean_up()
        sys.stdout.flush()
    except BaseException:  # interrupted while writing, or while importing
        pass
    try:
        os.write(2, b"interrupted\n")
    finally:
        os._exit(INTERRUPTED)


if __name__ == "__main__":
    sys.exit(run())
