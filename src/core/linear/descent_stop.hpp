// When a descent ends. The sums of a pass say when a check of all rows is worthwhile; the check decides.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "linear/descent.hpp"

namespace mercer {

// The largest violation and the duality gap at one point, over all rows.
struct FullCheck {
    double violation, gap;
};

class DescentStop {
public:
    DescentStop(const DcdStop& stop, std::int64_t n) : stop_(stop), n_(n) {}

    // Whether max_epochs passes are done. The product max_epochs * n could overflow; a quotient cannot.
    bool exhausted(std::int64_t visits) const { return n_ == 0 || visits / n_ >= stop_.max_epochs; }

    // After a pass over `active` rows whose violations and gap shares, each taken just before the row's step, came to
    // `violation` and `gap`. A check costs about a quarter of a pass over all rows.
    bool should_check(double violation, double gap, double value, std::int64_t active, std::int64_t visits) {
        if (active == 0) return true;
        if (first_ || visits - checked_at_ >= n_ / 2) {
            if (violation <= stop_.tol && is_small(kGapAfterPass * gap, value)) return true;
        }
        // Shrinking may have dropped rows too soon: find out before the end.
        return active < n_ / 2 && gap <= 0.1 * last_gap_;
    }

    bool met(const FullCheck& all, double value) const {
        return all.violation <= stop_.tol && is_small(all.gap, value);
    }

    // After a check that did not meet the tolerances: whether the last kStalledChecks gained nothing, so that only
    // rounding may be left.
    bool stalled(const FullCheck& all, double value, std::int64_t visits) {
        const bool gained = first_ || value > last_value_ + kRounding * std::abs(value) ||
                            all.gap < kGain * least_gap_ || all.violation < kGain * least_violation_;
        least_gap_ = std::min(least_gap_, all.gap), least_violation_ = std::min(least_violation_, all.violation);
        first_ = false;
        stalled_checks_ = gained ? 0 : stalled_checks_ + 1;
        checked_at_ = visits, last_gap_ = all.gap, last_value_ = value;
        return stalled_checks_ >= kStalledChecks;
    }

private:
    // An infinite tolerance times a dual value of zero would be NaN.
    bool is_small(double gap, double value) const {
        return stop_.gap >= std::numeric_limits<double>::max() || gap <= stop_.gap * std::abs(value);
    }

    // The gap after a pass over the sum of shares seen during it: 0.35 to 0.9 on text (compare_linear.py).
    static constexpr double kGapAfterPass = 0.6;
    // What counts as a gain: a dual value up by more than its rounding error, or a gap or violation down by 1 %.
    static constexpr double kRounding = 1e-15, kGain = 0.99;
    static constexpr int kStalledChecks = 4;

    const DcdStop& stop_;
    const std::int64_t n_;
    bool first_ = true;
    std::int64_t checked_at_ = 0;
    double last_gap_ = std::numeric_limits<double>::infinity(), last_value_ = 0.0;
    double least_gap_ = last_gap_, least_violation_ = last_gap_;
    int stalled_checks_ = 0;
};

// Rows behind the first `active` of the order become active again where they violate; the new number of active rows.
template <class Index>
std::size_t reactivate(std::vector<Index>* order, std::size_t active, const std::vector<std::uint8_t>& violates) {
    for (std::size_t s = active; s < order->size(); ++s) {
        if (violates[static_cast<std::size_t>((*order)[s])]) std::swap((*order)[s], (*order)[active++]);
    }
    return active;
}

}  // namespace mercer
