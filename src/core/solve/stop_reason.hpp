// Reasons for which a solver ends.
#pragma once

namespace mercer {

enum class StopReason {
    nonfinite,  // a number is not finite; the first, so that a result that was never written claims nothing
    converged,
    max_steps,
    max_epochs,
    max_seconds,
    stalled,    // float64 resolves no further step
    unbounded,  // a step without an end raises the dual
    unsettled,  // a free bias that coordinate descent cannot find
};

}  // namespace mercer
