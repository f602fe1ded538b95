"""What do LIBSVM's and LIBLINEAR's structures have in common, from Python?"""

from typing import Any, TypeVar

from maxmargin.errors import InvalidInput, NotAvailable
from maxmargin.interop.libsvm_training import Say
from maxmargin.interop.nodes import NodeArray, refuse_pointers
from maxmargin.interop.printing import printer
from maxmargin.interop.samples import DataSet, as_numbers

Model = TypeVar("Model", bound="TrainedModel")


class LabelledSamples:
    """Labels and samples; the fields that C code would read, as arrays and lists."""

    def _take(self, data: DataSet) -> None:
        self.X, self.first = data.X, data.first
        self.l, self.n = len(data.y), data.largest
        self.y: Any = data.y.tolist()
        self.W: Any = None if data.weight is None else data.weight.tolist()

    @property
    def x(self) -> list[NodeArray]:
        """The samples as lists of nodes."""
        raise NotImplementedError

    @property
    def x_space(self) -> list[NodeArray]:
        """The same: there is no other memory behind it."""
        return self.x

    @property
    def data(self) -> DataSet:
        """What training needs; y may have been replaced by hand."""
        y = as_numbers([self.y[i] for i in range(self.l)], "y")
        weight = None if self.W is None else as_numbers(list(self.W), "W")
        return DataSet(self.X, y, self.n, weight, self.first)


class TrainedModel:
    """A model with the methods that both libraries have."""

    _trainers = ""  # the functions that models come from
    _core: Any = None

    @property
    def core(self) -> Any:
        if self._core is None:
            name = type(self).__name__
            raise InvalidInput(
                f"This {name} is empty: models come from {self._trainers}."
            )
        return self._core

    def get_nr_class(self) -> int:
        """2 where there are no classes."""
        n_classes: int = self.core.n_classes
        return n_classes

    def get_labels(self) -> list[int]:
        """The classes in the model's order; zeros where there are none."""
        if self.core.classes is None:
            return [0] * self.get_nr_class()
        return [int(label) for label in self.core.classes]

    @property
    def nr_class(self) -> int:
        return self.get_nr_class()

    @property
    def label(self) -> list[int] | None:
        return None if self.core.classes is None else self.get_labels()


def as_model(found: Any, kind: type[Model], trainer: str) -> Model:
    """What `trainer` returns is a model already; nothing else can become one."""
    if isinstance(found, kind):
        return found
    refuse_pointers(found)
    if found is None:
        raise ValueError("Null pointer")
    raise NotAvailable(
        f"A {type(found).__name__} is not a model of {trainer}: there are no C "
        "structures here to convert."
    )


class CLibrary:
    """A C library's functions; models, problems and nodes take pointers' places."""

    _library = ""
    _print_func: Any = None  # who hears the training; None: the standard output

    def __getattr__(self, name: str) -> Any:
        known = [each for each in vars(type(self)) if not each.startswith("_")]
        raise AttributeError(
            f"maxmargin's facade of the C library {self._library} has no {name!r}: "
            f"there is no shared library behind it. Known are {', '.join(known)}"
        )

    def _say(self, param: Any) -> Say:
        return printer(param.print_func or self._print_func)
