"""How is the dual problem minimised?"""

from maxmargin.solvers.kernel import solve
from maxmargin.solvers.result import Options, PairRule, Progress, Solution, Status

__all__ = ["Options", "PairRule", "Progress", "Solution", "Status", "solve"]
