"""Learning theory as numbers: risks, complexities and bounds, with their assumptions and whether these hold."""

from typing import TYPE_CHECKING

from mercer.notes.theory.bound import Bound
from mercer.notes.theory.complexity import (
    ball_complexity,
    expectation_bound,
    finite_complexity,
    finite_complexity_bound,
    trace_bound,
    true_complexity_bound,
)
from mercer.notes.theory.early_stopping import iteration_path, stopping_step
from mercer.notes.theory.few_errors import fewest_errors, least_slack_power
from mercer.notes.theory.finite_sets import shattering
from mercer.notes.theory.insights import insight
from mercer.notes.theory.law import Law
from mercer.notes.theory.margin_bounds import (
    enclosing_ball,
    hard_margin_bound,
    leave_one_out_bound,
    mistake_bound,
    soft_margin_bound,
    support_vectors_bound,
)
from mercer.notes.theory.risks import (
    log_likelihood,
    log_posterior,
    off_training_error,
    risk,
)
from mercer.notes.theory.sample_bounds import (
    best_theta,
    chernoff,
    dichotomies,
    finite_rules_bound,
    glivenko_cantelli,
    hard_margin_samples,
    hoeffding,
    linear_rules_bound,
    mcdiarmid,
    soft_margin_expectation,
    soft_margin_samples,
    test_set_bound,
)
from mercer.notes.theory.tails import tail_probability, tail_samples
from mercer.runtime.missing_names import missing_name_error

__all__ = [
    "Bound",
    "Law",
    "ball_complexity",
    "best_theta",
    "chernoff",
    "dichotomies",
    "enclosing_ball",
    "expectation_bound",
    "fewest_errors",
    "finite_complexity",
    "finite_complexity_bound",
    "finite_rules_bound",
    "glivenko_cantelli",
    "hard_margin_bound",
    "hard_margin_samples",
    "hoeffding",
    "insight",
    "iteration_path",
    "least_slack_power",
    "leave_one_out_bound",
    "linear_rules_bound",
    "log_likelihood",
    "log_posterior",
    "mcdiarmid",
    "mistake_bound",
    "off_training_error",
    "risk",
    "shattering",
    "soft_margin_bound",
    "soft_margin_expectation",
    "soft_margin_samples",
    "stopping_step",
    "support_vectors_bound",
    "tail_probability",
    "tail_samples",
    "test_set_bound",
    "trace_bound",
    "true_complexity_bound",
]

if not TYPE_CHECKING:  # otherwise a type checker would accept every name

    def __getattr__(name: str) -> object:
        raise missing_name_error(__name__, name, __all__)
