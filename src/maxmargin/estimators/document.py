"""What does each parameter and attribute mean? Said once, shown in every class."""

import inspect
from typing import TypeVar

Class = TypeVar("Class", bound=type)

PARAMETERS = {
    "C": "float > 0|How much a miss costs; inf allows none. Bounds the coefficients.",
    "nu": "float in (0, 1]|A ceiling on the share of misses and a floor on the share "
    "of support vectors.",
    "epsilon": "float >= 0|Half the width of the tube in which a miss costs nothing.",
    "kernel": "{'linear', 'poly', 'rbf', 'sigmoid', 'laplacian', 'precomputed'} or "
    "callable|How alike two samples are. A callable gets two sets of samples and "
    "returns their kernel matrix; it is called on blocks of samples, each against the "
    "whole training set, and may be given samples of any type.",
    "degree": "int >= 0|Degree of kernel 'poly'.",
    "gamma": "{'scale', 'auto'} or float >= 0|Factor inside every kernel but 'linear'. "
    "'scale' is 1 / (n_features * variance of X, sample weights counted), 'auto' is "
    "1 / n_features.",
    "coef0": "float|Added inside kernels 'poly' and 'sigmoid'.",
    "shrinking": "bool|Set variables aside that will not move again. Never changes the "
    "answer: all of them are looked at before the end.",
    "probability": "bool|Fit sigmoids, or for regression and novelty detection a "
    "distribution, so that probabilities can be told. Costs a few short fits more. "
    "'deprecated', the default of scikit-learn, is False.",
    "calibration": "{'folds', 'leave_one_out'}|Which decision values the sigmoids are "
    "fitted to: those of five folds held out, as in LIBSVM, or those of each sample "
    "held out alone, estimated without a refit.",
    "predict_by": "{'auto', 'decision', 'probability'}|What decides the class: "
    "decision values (of pairs, their votes), as in LIBSVM without -b; or the largest "
    "probability, as with -b 1. 'auto' is 'probability' with probability=True and "
    "'decision' without: the likeliest class is then always the predicted one.",
    "tol": "float > 0|Largest violation of the KKT conditions at the end, in float64; "
    "LIBSVM's stopping rule.",
    "cache_size": "'auto' or float|Most memory for the kernel rows that are kept, in "
    "MB, over all problems solved at once. 'auto' allows a quarter of the memory there "
    "is, and no more is taken than the whole kernel needs. Two rows are kept in any "
    "case; blocks of at most 32 MB come and go besides.",
    "class_weight": "dict, 'balanced' or None|Factor on the weight of every sample of "
    "a class; 'balanced' gives all classes the same total weight.",
    "verbose": "bool|Print a line of progress now and then.",
    "max_iter": "int|Most moves of the solver per problem; -1 sets no number, but "
    "ends a fit whose violation no longer decreases.",
    "decision_function_shape": "{'ovr', 'ovo'}|One column per class, or one per pair "
    "of classes, for more than two classes.",
    "break_ties": "bool|Let the decision function settle ties between votes.",
    "random_state": "int, RandomState or None|Decides the folds of probability=True; "
    "nothing else is random. None is always the same.",
    "solver": "{'auto', 'grow', 'smo'}|'smo' is sequential minimal optimisation, "
    "'grow' the same on a working set that grows to hold every free variable, with far "
    "fewer kernel rows; 'auto' grows from 300 samples on.",
    "working_set": "{'second_order', 'first_order'}|Choose the pair to move by the "
    "decrease it promises, or by its violation alone.",
    "fit_intercept": "bool|Without an intercept the decision passes through the origin "
    "of the kernel's feature space, and one variable moves at a time.",
    "time_limit": "float or None|Seconds of solving after which a fit is left as it "
    "is, with a ConvergenceWarning. Compilation, in the first process that needs the "
    "code, is not counted.",
    "warm_start": "bool|Start from where the last fit ended, if the samples, features "
    "and classes are the same; otherwise from zero, with a warning.",
    "callback": "callable or None|Called about ten times a second, and at the end, "
    "with n_iter, violation, objective, n_active, cache_hits and cache_misses of a "
    "problem; with several pairs of classes, from several threads.",
    "n_jobs": "int or None|Threads. None or -1 is all cores, but one inside a joblib "
    "worker. The answer does not depend on it by a single byte.",
}

ATTRIBUTES = {
    "support_": "int32 array of shape (n_SV,)|Rows of X that are support vectors.",
    "support_vectors_": "array or sparse matrix of shape (n_SV, n_features)|Those "
    "rows, in the type X had; empty for a precomputed or callable kernel.",
    "n_support_": "int32 array|Number of support vectors, per class for classifiers.",
    "dual_coef_": "array or sparse matrix of shape (n_classes - 1 or 1, n_SV)|Their "
    "coefficients in the decision function.",
    "intercept_": "array of shape (n_problems,)|Constants of the decision function.",
    "coef_": "array or sparse matrix|Weights of the features, for kernel='linear'.",
    "objective_": "float, or array with one value per pair|The dual objective, as "
    "LIBSVM prints it.",
    "dual_gap_": "float or array|Primal minus dual objective: 0 at the optimum only.",
    "kkt_violation_": "float or array|What tol bounds, recomputed in float64.",
    "status_": "Status|How the fit ended; of several problems, the worst.",
    "n_iter_": "int, or int32 array with one value per pair|Moves of the solver.",
    "fit_status_": "int|0 if the fit converged, 1 if not.",
    "shape_fit_": "tuple|Shape of the X of fit.",
    "n_features_in_": "int|Number of features of X.",
}
CLASSIFIER_ATTRIBUTES = {
    "classes_": "array of shape (n_classes,)|The labels, in order.",
    "class_weight_": "array of shape (n_classes,)|The factor on each class.",
    "probA_": "array of shape (n_problems,)|With probability=True: slopes of the "
    "sigmoids 1 / (1 + exp(probA_ * decision + probB_)), with LIBSVM's signs.",
    "probB_": "array of shape (n_problems,)|With probability=True: their offsets.",
    "prob_power_": "float|With probability=True and more than two classes: the power "
    "to which probabilities are raised before they are divided by their sum. Set it to "
    "1 to have those of LIBSVM.",
}
REGRESSOR_ATTRIBUTES = {
    "laplace_scale_": "float|With probability=True: the scale of the errors, LIBSVM's "
    "sigma. probA_ holds the same.",
    "conformal_residuals_": "array|Sorted errors on held-out samples: those of "
    "probability=True, or of the last call of calibrate.",
}
MARKS = {
    "prob_density_marks_": "array of shape (10,)|With probability=True: marks on the "
    "decision value, as in LIBSVM.",
}
OFFSET = {"offset_": "array of shape (1,)|Minus intercept_: score_samples at the edge."}


LINEAR_PARAMETERS = PARAMETERS | {
    "C": "float > 0|How much a miss costs, beside the penalty on the weights.",
    "penalty": "{'l2', 'l1'}|Squares of the weights, or their sizes, which makes many "
    "of them zero.",
    "l1_ratio": "0 or 1|1 is penalty='l1', as in scikit-learn; 0 leaves it to penalty.",
    "loss": "str|What a miss costs: for LinearSVC 'hinge' or 'squared_hinge', for "
    "LinearSVR 'epsilon_insensitive' or 'squared_epsilon_insensitive'.",
    "dual": "'auto' or bool|Begin with coordinate descent in the dual (True) or with "
    "Newton's method in the primal (False). The answer is the same; 'auto' looks "
    "at the data.",
    "tol": "float > 0|Largest violation of the KKT conditions at the end, in float64 "
    "and in units of the margin (for regression, of the mean of |y|); and the largest "
    "duality gap, as a share of the objective.",
    "multi_class": "{'ovr', 'crammer_singer'}|More than two classes: each against the "
    "rest, or all in one problem, for which loss, penalty and dual are ignored.",
    "fit_intercept": "bool|Without an intercept the hyperplane passes through the "
    "origin.",
    "intercept_scaling": "float > 0|Value of the constant feature whose weight makes "
    "the intercept: the larger, the less its penalty matters.",
    "penalize_intercept": "bool|Whether that weight is penalised like the others, as "
    "in LIBLINEAR. False leaves the intercept free, as in SVC and SVR.",
    "random_state": "int, RandomState or None|Decides the order in which samples or "
    "features are visited, where a solver wants a random one. None is always the same.",
    "max_iter": "int|Most iterations per problem, sweeps over the samples or Newton "
    "steps; -1 is 100,000.",
    "solver": "str|'auto', or 'dcd' (dual coordinate descent), 'newton' (the matrix of "
    "second derivatives is formed), 'newton-cg' (only multiplied with), 'interior' "
    "(interior point), 'proximal' (method of multipliers), 'cd' (for penalty='l1'). "
    "Newton's methods are for smooth losses, interior and proximal for the others.",
    "warm_start": "bool|Start from where the last fit ended, if that had warm_start "
    "too and the samples, features, classes and formulation are the same; otherwise "
    "from zero, with a warning.",
    "callback": "callable or None|Called about ten times a second, and at the end, "
    "with n_iter, violation, objective and n_active of a problem; with more than two "
    "classes, from several threads.",
}
LINEAR_ATTRIBUTES = {
    "intercept_": "array of shape (n_problems,), or 0.0 without an intercept|Constants "
    "of the decision function.",
    "objective_": "float, or array with one value per problem|The primal objective.",
    **{
        name: ATTRIBUTES[name]
        for name in ("dual_gap_", "kkt_violation_", "status_", "n_features_in_")
    },
    "n_iter_": "int|Iterations; of several problems, the most.",
}
LINEAR_CLASSIFIER_ATTRIBUTES = CLASSIFIER_ATTRIBUTES | {
    "coef_": "array of shape (n_classes, n_features), or (1, n_features) for two "
    "classes|Weights of the features. Predictions read coef_ and intercept_.",
}
LINEAR_REGRESSOR_ATTRIBUTES = {
    "coef_": "array of shape (n_features,)|Weights of the features.",
}
LINEAR_ONE_CLASS_ATTRIBUTES = OFFSET | {
    "coef_": "array of shape (1, n_features)|Weights of the features.",
}


SEARCH_PARAMETERS = {
    "Cs": "int or list of float|Values of C to try; a number means as many powers of "
    "two, from 2^-5 to 2^15, of linear machines from 2^-10 to 2^10.",
    "gammas": "int or list|Values of gamma to try; a number means as many from 1/64 to "
    "64 times gamma='scale'. Without effect where the kernel has no gamma.",
    "epsilons": "int or list of float|Tubes to try; a number means as many, as shares "
    "from 1/64 to 1/2 of the deviation of y.",
    "nus": "int or list of float|Values of nu to try; a number means as many, evenly "
    "from 1/10 to 9/10 of the largest that has a solution.",
    "cv": "int, splitter, list of splits or None|Folds; a number, or None for 5, means "
    "scikit-learn's: stratified for classifiers.",
    "scoring": "str, callable or None|What to maximise: accuracy or R², or a scorer of "
    "scikit-learn that needs predictions or decision values.",
    "search": "{'grid', 'coarse-to-fine', 'halving', 'optuna'}|All points; every "
    "second or fourth and then finer around the best; all on few samples, the best "
    "third of them on three times as many, and so on; or wherever optuna looks between "
    "the ends of the lists.",
    "n_trials": "int|Points that search='optuna' tries.",
    "time_limit": "float or None|Seconds of solving after which no further point is "
    "tried, compilation not counted. The best so far is fitted to all samples after "
    "that, and a warning says how many were tried; cv_results_['is_tried'] says which.",
    "random_state": "int or None|Seed of shuffled folds, and of search='optuna'; None "
    "leaves samples in order.",
    "verbose": "bool or int|1: a progress bar at a terminal where rich is installed, "
    "else a line for every point; 2: lines in any case.",
    "callback": "callable or None|Called after every point with params, score, n_done, "
    "n_points, best_score and best_params.",
}
SELECTION_ATTRIBUTES = {
    "best_estimator_": "estimator|The machine with the best parameters, fitted to all "
    "samples.",
    "best_params_": "dict|Its parameters; each also as an attribute, such as C_.",
    "best_score_": "float|Mean score of the best point over the folds.",
    "best_index_": "int|Its place in cv_results_: the first of equals.",
    "cv_results_": "dict of arrays|As of GridSearchCV; kkt_violation is the largest of "
    "all machines of a point, is_tried is False where time_limit left no time for it.",
    "n_splits_": "int|Number of folds.",
    "refit_time_": "float|Seconds for the last fit.",
    "status_": "Status|How the last fit ended.",
    "kkt_violation_": "float or array|What tol bounds, of the last fit.",
    "n_iter_": "int or array|Iterations of the last fit.",
    "n_features_in_": "int|Number of features of X.",
}


def documented_selection(**attributes: str) -> "Documenter":
    """The same for a search."""
    return Documenter(PARAMETERS | SEARCH_PARAMETERS, attributes)


def documented_linear_selection(**attributes: str) -> "Documenter":
    """The same for a search over linear machines."""
    return Documenter(LINEAR_PARAMETERS | SEARCH_PARAMETERS, attributes)


def documented(**more: str) -> "Documenter":
    """Add sections Parameters and Attributes to the docstring of a kernel machine."""
    return Documenter(PARAMETERS, ATTRIBUTES | more)


def documented_linear(**more: str) -> "Documenter":
    """The same for a linear machine."""
    return Documenter(LINEAR_PARAMETERS, LINEAR_ATTRIBUTES | more)


class Documenter:
    """Writes what the constructor's signature says into the class docstring."""

    def __init__(self, parameters: dict[str, str], attributes: dict[str, str]) -> None:
        self.parameters, self.attributes = parameters, attributes

    def __call__(self, described: Class) -> Class:
        signature = inspect.signature(described.__init__)  # type: ignore[misc]
        defaults = {
            name: parameter.default
            for name, parameter in signature.parameters.items()
            if name != "self"
        }
        parameters = [
            _entry(
                name, self.parameters[name].replace("|", f", default {default!r}|", 1)
            )
            for name, default in defaults.items()
        ]
        attributes = [_entry(name, text) for name, text in self.attributes.items()]
        described.__doc__ = "\n".join(
            (
                inspect.cleandoc(described.__doc__ or ""),
                "\nParameters\n----------",
                *parameters,
                "\nAttributes\n----------",
                *attributes,
            )
        )
        return described


def _entry(name: str, text: str) -> str:
    kind, meaning = text.split("|", 1)
    return f"{name} : {kind}\n    {meaning}"
