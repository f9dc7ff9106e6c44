"""Learning theory as numbers: risks, complexities and bounds, each with what it rests on and whether that holds."""

from typing import TYPE_CHECKING

from mercer.runtime.missing_names import missing_name
from mercer.theory.bound import Assumption, Bound
from mercer.theory.complexity import (
    Complexity,
    ball_complexity,
    contraction_rule,
    convex_hull_rule,
    expectation_bound,
    finite_class_bound,
    finite_complexity,
    multiple_rule,
    power_rule,
    shift_rule,
    subset_rule,
    trace_bound,
    true_complexity_bound,
    union_rule,
)
from mercer.theory.early_stopping import IterationPath, iteration_path, stopping_step
from mercer.theory.few_errors import FewestErrors, SlackPower, fewest_errors, least_slack_power, slack_power_sum
from mercer.theory.margin_bounds import (
    Ball,
    enclosing_ball,
    hard_margin_bound,
    leave_one_out_bound,
    mistake_bound,
    origin_radius,
    radius_margin,
    soft_margin_bound,
    support_vectors_bound,
)
from mercer.theory.of_machine import Insight, insight
from mercer.theory.risks import (
    log_likelihood,
    log_posterior,
    losses,
    most_likely_variance,
    off_training_error,
    regularised_risk,
    risk,
)
from mercer.theory.sample_bounds import (
    best_theta,
    chernoff,
    dichotomies,
    dichotomies_chain,
    distance_of_distributions,
    finite_rules_bound,
    glivenko_cantelli,
    hard_margin_samples,
    hinge_lipschitz,
    hoeffding,
    linear_rules_bound,
    mcdiarmid,
    soft_margin_excess,
    soft_margin_expectation,
    soft_margin_samples,
    test_set_bound,
)

__all__ = [
    "Assumption",
    "Ball",
    "Bound",
    "Complexity",
    "FewestErrors",
    "Insight",
    "IterationPath",
    "SlackPower",
    "ball_complexity",
    "best_theta",
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
    "least_slack_power",
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

    def __getattr__(name: str) -> object:
        raise missing_name(__name__, name, __all__)
