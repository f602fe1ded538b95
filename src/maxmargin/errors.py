"""What can go wrong, and which built-in error does each mistake resemble?

MaxMarginError
├── InvalidInput (ValueError)             data or a parameter cannot be used
│   └── InfeasibleProblem                 no point meets the constraints
└── NotAvailable (NotImplementedError)    asked for something not there yet
"""


class MaxMarginError(Exception):
    """Base of every error this package raises on its own account."""


class InvalidInput(MaxMarginError, ValueError):
    """Data or a parameter cannot be used; the message says what to do."""


class InfeasibleProblem(InvalidInput):
    """The constraints contradict one another, as with too large a nu."""


class NotAvailable(MaxMarginError, NotImplementedError):
    """A known feature that this version does not offer."""
