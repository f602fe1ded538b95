"""What does `fit` tell people?"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.cli.model_files import size_text
from maxmargin.cli.selecting import Fitted, Tried
from maxmargin.data.labels import Labels
from maxmargin.data.scaling import Scaling
from maxmargin.data.whole_files import is_device
from maxmargin.models.kernel_model import KernelModel

if TYPE_CHECKING:
    from maxmargin.cli.fit import Prepared

MOST_SHOWN = 8  # classes whose names are listed
PERCENT = ".2%"


def facts_of(prepared: "Prepared", tried: Tried, fitted: Fitted) -> dict[str, Any]:
    """What is worth knowing about a fit, for people and machines."""
    samples, setting, model = prepared.samples, tried.setting, fitted.model
    predicted, target = model.predict(samples.X), samples.target
    if isinstance(target, Labels):
        of_task = {
            "task": "classify",
            "classes": target.classes.tolist(),
            "epsilon": None,
            "cross_validated": 1.0 - tried.loss,
            "training": float(np.mean(predicted == target.classes[target.code])),
        }
    else:
        of_task = {
            "task": "regress",
            "classes": None,
            "epsilon": setting.epsilon,
            "cross_validated": tried.loss,
            "training": float(np.mean((predicted - target) ** 2)),
        }
    return {
        "samples": samples.n,
        "features": int(prepared.n_features),
        "features_used": int(samples.X.shape[1]),
        "scaling": None if prepared.scaling is None else _words(prepared.scaling),
        "kernel": setting.kernel,
        "C": setting.C,
        "gamma": setting.gamma,
        "support_vectors": model.n_vectors if isinstance(model, KernelModel) else None,
        **of_task,
        **_evidence(fitted),
    }


def _evidence(fitted: Fitted) -> dict[str, Any]:
    solutions = fitted.solutions
    gaps = [abs(s.gap / s.objective) if s.objective else 0.0 for s in solutions]
    return {
        "status": max((s.status for s in solutions), key=lambda s: s.rank).name,
        "violation": max(s.violation for s in solutions),
        "gap": max(gaps),
    }


def _words(scaling: Scaling) -> str:
    if (scaling.low == -scaling.high).all():
        return "each feature divided by its largest magnitude"
    return f"each feature to [{scaling.lower:g}, {scaling.upper:g}]"


def report_lines(facts: dict[str, Any]) -> Iterator[str]:
    """One line a step, each with its name in front."""
    yield _line("data", f"{facts['data']}: {_data(facts)}")
    yield _line("scaling", facts["scaling"] or "none")
    yield _line("machine", _machine(facts))
    if facts["settings_tried"]:
        yield _line("search", _search(facts))
    yield _line("training", _training(facts))
    yield _line("solved", _solved(facts))
    yield _line("model", _model(facts["model"]))
    yield _line("took", f"{facts['seconds']:.2f} s")


def _line(name: str, text: str) -> str:
    return f"{name:<10}{text}"


def _data(facts: dict[str, Any]) -> str:
    size = f"{facts['samples']:,} samples, {facts['features']:,} features"
    if facts["features_used"] < facts["features"]:
        size += f" ({facts['features_used']:,} of them occur)"
    classes = facts["classes"]
    if classes is None:
        return f"{size}, numbers to predict"
    names = ", ".join(str(label) for label in classes[:MOST_SHOWN])
    more = ", ..." if len(classes) > MOST_SHOWN else ""
    return f"{size}, {len(classes)} classes ({names}{more})"


def _machine(facts: dict[str, Any]) -> str:
    kind = "classifier" if facts["classes"] is not None else "regression"
    if facts["kernel"] == "linear":
        text = f"linear {kind}, squared loss, C = {facts['C']:.4g}"
    else:
        text = f"{kind}, RBF kernel, C = {facts['C']:.4g}, gamma = {facts['gamma']:.4g}"
    if facts["epsilon"] is None:
        return text
    return f"{text}, epsilon = {facts['epsilon']:.4g}"


def _score(facts: dict[str, Any], name: str) -> str:
    if facts["classes"] is None:
        return f"mean squared error {facts[name]:.6g}"
    return f"accuracy {facts[name]:{PERCENT}}"


def _search(facts: dict[str, Any]) -> str:
    return (
        f"best of {_settings(facts)} in {facts['folds']}-fold "
        f"cross-validation: {_score(facts, 'cross_validated')}"
    )


def _settings(facts: dict[str, Any]) -> str:
    n_tried, n_planned = facts["settings_tried"], facts["settings_planned"]
    if n_tried < n_planned:
        return f"{n_tried} (of {n_planned} planned) settings"
    return f"{n_tried} settings"


def _training(facts: dict[str, Any]) -> str:
    text = f"{_score(facts, 'training')} on the samples themselves"
    if facts["support_vectors"] is None:
        return text
    return f"{text}; {facts['support_vectors']:,} support vectors"


def _model(path: str) -> str:
    return path if is_device(path) else f"{path} ({size_text(path)})"


def _solved(facts: dict[str, Any]) -> str:
    return (
        f"{facts['status']}: KKT violation {facts['violation']:.1e}, "
        f"relative duality gap {facts['gap']:.1e}"
    )
