"""What does `python -m maxmargin` do? It runs the command line."""

import sys

from maxmargin.cli import main

sys.exit(main())
