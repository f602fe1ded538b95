"""How is it minimised?"""

from maxmargin.solvers.kernel import solve
from maxmargin.solvers.result import Options, Progress, Solution, Status, WorkingSet

__all__ = ["Options", "Progress", "Solution", "Status", "WorkingSet", "solve"]
