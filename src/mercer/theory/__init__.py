"""Learning theory as numbers: risks, complexities and bounds, each with what it rests on and whether that holds."""

from typing import TYPE_CHECKING

from mercer.on_demand import suggesting
from mercer.theory.bound import Assumption, Bound
from mercer.theory.complexity import (
    Complexity,
    ball_complexity,
    expectation_bound,
    finite_class_bound,
    finite_complexity,
    trace_bound,
    true_complexity_bound,
)
from mercer.theory.complexity_rules import (
    contraction_rule,
    convex_hull_rule,
    multiple_rule,
    power_rule,
    shift_rule,
    subset_rule,
    union_rule,
)
from mercer.theory.concentration import (
    chernoff,
    distance_of_distributions,
    glivenko_cantelli,
    hoeffding,
    mcdiarmid,
    test_set_bound,
)
from mercer.theory.early_stopping import IterationPath, iteration_path, stopping_step
from mercer.theory.fewest_errors import fewest_errors, slack_power_sum
from mercer.theory.gaussian_process import GaussianProcess
from mercer.theory.likelihood import log_likelihood, log_posterior, most_likely_variance
from mercer.theory.margin_bounds import hard_margin_bound, leave_one_out_bound, radius_margin, soft_margin_bound
from mercer.theory.no_free_lunch import off_training_error
from mercer.theory.of_machine import Insight, insight
from mercer.theory.perceptron import Perceptron, mistake_bound, perceptron
from mercer.theory.radius import Ball, enclosing_ball, origin_radius
from mercer.theory.risks import losses, regularised_risk, risk
from mercer.theory.sample_complexity import (
    best_lam,
    hard_margin_samples,
    hinge_lipschitz,
    soft_margin_excess,
    soft_margin_expectation,
    soft_margin_samples,
)
from mercer.theory.sparseness import support_vectors_bound
from mercer.theory.vc import dichotomies, dichotomies_chain, finite_rules_bound, linear_rules_bound

__all__ = [
    "Assumption",
    "Ball",
    "Bound",
    "Complexity",
    "GaussianProcess",
    "Insight",
    "IterationPath",
    "Perceptron",
    "ball_complexity",
    "best_lam",
    "chernoff",
    "contraction_rule",
    "convex_hull_rule",
    "dichotomies",
    "dichotomies_chain",
    "distance_of_distributions",
    "enclosing_ball",
    "expectation_bound",
    "fewest_errors",
    "finite_class_bound",
    "finite_complexity",
    "finite_rules_bound",
    "glivenko_cantelli",
    "hard_margin_bound",
    "hard_margin_samples",
    "hinge_lipschitz",
    "hoeffding",
    "insight",
    "iteration_path",
    "leave_one_out_bound",
    "linear_rules_bound",
    "log_likelihood",
    "log_posterior",
    "losses",
    "mcdiarmid",
    "mistake_bound",
    "most_likely_variance",
    "multiple_rule",
    "off_training_error",
    "origin_radius",
    "perceptron",
    "power_rule",
    "radius_margin",
    "regularised_risk",
    "risk",
    "shift_rule",
    "slack_power_sum",
    "soft_margin_bound",
    "soft_margin_excess",
    "soft_margin_expectation",
    "soft_margin_samples",
    "stopping_step",
    "subset_rule",
    "support_vectors_bound",
    "test_set_bound",
    "trace_bound",
    "true_complexity_bound",
    "union_rule",
]

if not TYPE_CHECKING:  # a checker would take every name for one that may be there
    __getattr__ = suggesting(__name__, __all__)
