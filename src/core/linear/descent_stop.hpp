// When a descent ends: what its passes add up tells when to look, a look at all rows decides.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "linear/linear.hpp"

namespace mercer {

// The violation and the duality gap of one and the same point, over all rows.
struct Truth {
    double violation, gap;
};

class DescentStop {
public:
    DescentStop(const DcdStop& stop, std::int64_t n) : stop_(stop), n_(n) {}

    // After a pass over `active` rows that added up `gap` and met `violation`. A row's share of the gap is seen before its step,
    // so that the gap is smaller at the end of a pass; and left-out rows may have part in it. One look costs about a quarter of a
    // pass over all rows.
    bool worth_a_look(double violation, double gap, double value, std::int64_t active, std::int64_t visits) {
        if (active == 0) return true;
        if (first_ || visits - looked_ >= n_ / 2) {
            if (violation <= stop_.tol && small(kSeen * gap, value)) return true;
        }
        // Now and then, lest the rows that were left out be found wanting only at the end.
        return active < n_ / 2 && gap <= 0.1 * gap_then_;
    }

    bool met(const Truth& truth, double value) const { return truth.violation <= stop_.tol && small(truth.gap, value); }

    // After a look that did not find the goal met: whether the last ones have gained nothing, so that only rounding may be left.
    bool idle(const Truth& truth, double value, std::int64_t visits) {
        const bool gained = first_ || value > value_then_ + 1e-15 * std::abs(value) || truth.gap < 0.99 * least_gap_ ||
                            truth.violation < 0.99 * least_violation_;
        least_gap_ = std::min(least_gap_, truth.gap), least_violation_ = std::min(least_violation_, truth.violation);
        first_ = false;
        idle_looks_ = gained ? 0 : idle_looks_ + 1;
        looked_ = visits, gap_then_ = truth.gap, value_then_ = value;
        return idle_looks_ >= 4;
    }

private:
    // An infinite share of a dual value of zero is no number.
    bool small(double gap, double value) const {
        return stop_.gap >= std::numeric_limits<double>::max() || gap <= stop_.gap * std::abs(value);
    }

    // Of what a pass adds up, at its end (0.35 to 0.9 on text).
    static constexpr double kSeen = 0.6;
    const DcdStop& stop_;
    const std::int64_t n_;
    bool first_ = true;
    std::int64_t looked_ = 0;
    double gap_then_ = std::numeric_limits<double>::infinity(), value_then_ = 0.0;
    double least_gap_ = gap_then_, least_violation_ = gap_then_;
    int idle_looks_ = 0;
};

// Rows behind the first `active` of the order come back where they offend; the new number of active ones.
template <class Index>
std::size_t wake(std::vector<Index>* order, std::size_t active, const std::vector<std::uint8_t>& offends) {
    for (std::size_t s = active; s < order->size(); ++s) {
        if (offends[static_cast<std::size_t>((*order)[s])]) std::swap((*order)[s], (*order)[active++]);
    }
    return active;
}

}  // namespace mercer
