"""What does a model file hold?"""

from typing import TYPE_CHECKING, Any

from maxmargin.cli.console import Context
from maxmargin.cli.flags import parse

if TYPE_CHECKING:
    from maxmargin.cli.model_files import ModelFile
    from maxmargin.models.kernel_model import KernelModel
    from maxmargin.models.linear_model import LinearModel

USAGE = """\
Usage: maxmargin inspect MODEL

Says what a model of maxmargin, LIBSVM or LIBLINEAR holds.

options:
  --json, --help
"""
FORMATS = {
    "native": "maxmargin's own",
    "libsvm": "LIBSVM's text format",
    "liblinear": "LIBLINEAR's text format",
}
MOST_SHOWN = 12  # classes


def run(arguments: list[str], context: Context) -> int:
    """Print facts, a line each."""
    told = parse(arguments, {}, USAGE, range(1, 2))
    from maxmargin.cli.model_files import read_model

    facts = facts_of(read_model(told.names[0]), told.names[0])
    for name, value in facts.items():
        if value is not None:
            context.say(f"{name.replace('_', ' '):<18}{_text(value)}")
    context.report(**facts)
    return 0


def facts_of(file: "ModelFile", path: str) -> dict[str, Any]:
    """Names and values, the most important first."""
    from maxmargin.models.kernel_model import KernelModel

    model = file.model
    facts: dict[str, Any] = {
        "file": path,
        "bytes": file.n_bytes,
        "format": FORMATS[file.form.value],
    }
    if isinstance(model, KernelModel):
        facts |= _kernel_facts(model)
    else:
        facts |= _linear_facts(model)
    if file.columns is not None:
        facts |= {"features": file.n_features, "features_used": model.n_features}
    if model.classes is not None:
        facts["classes"] = model.classes.tolist()
    if file.scaling is not None:
        varies = int(file.scaling.varies.sum())
        facts["scaling"] = (
            f"to [{file.scaling.lower:g}, {file.scaling.upper:g}], "
            f"{varies} features that vary"
        )
    return facts | {f"fitted_{name}": value for name, value in file.notes.items()}


def _kernel_facts(model: "KernelModel") -> dict[str, Any]:
    from maxmargin.interop.native_models import kernel_word

    kernel = {} if model.kernel is None else model.kernel._asdict()
    n_free = None
    if model.n_vectors and model.n_classes <= 2:
        sizes = abs(model.dual_coef[0])
        n_free = int((sizes < sizes.max()).sum())
    return {
        "machine": model.machine,
        "kernel": kernel_word(model.kernel),
        **kernel,
        "features": model.n_features,
        "support_vectors": model.n_vectors,
        "of_each_class": None if model.n_support is None else model.n_support.tolist(),
        "not_at_bound": n_free,
        "probabilities": "yes" if model.has_probabilities else "no",
    }


def _linear_facts(model: "LinearModel") -> dict[str, Any]:
    return {
        "machine": model.solver,
        "features": model.n_features,
        "hyperplanes": len(model.coef),
        "weights_not_zero": int((model.coef != 0.0).sum()),
        "bias": model.bias if model.bias >= 0.0 else "none",
        "probabilities": "yes" if model.is_logistic else "no",
    }


def _text(value: Any) -> str:
    if isinstance(value, list):
        more = f", ... ({len(value)})" if len(value) > MOST_SHOWN else ""
        return ", ".join(str(item) for item in value[:MOST_SHOWN]) + more
    return f"{value:.10g}" if isinstance(value, float) else str(value)
