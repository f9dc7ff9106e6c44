// Passes over the rows in random order; each visit solves one row's part of the dual. Rows that have settled are left
// out until the others have: only a pass over all rows ends the descent.
#include "linear/joint_descent.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "algebra/infinity.hpp"
#include "linear/random_order.hpp"
#include "linear/row_access.hpp"
#include "threads/interrupt.hpp"

namespace mercer {
namespace {

// The level at which sum over k of max(0, level - limit_k) is `volume`; `sorted` is room for as many numbers.
double water_level(const std::vector<double>& limit, double volume, std::vector<double>& sorted) {
    sorted = limit;
    std::sort(sorted.begin(), sorted.end());
    double sum = volume + sorted[0], level = sum;
    for (std::size_t r = 1; r < sorted.size() && sorted[r] < level; ++r) {
        sum += sorted[r];
        level = sum / static_cast<double>(r + 1);
    }
    return level;
}

template <class Rows>
class JointDescent {
public:
    JointDescent(const Rows& rows, const JointDcdProblem& problem, const DcdStop& stop, std::uint64_t* seed,
                 const Threads& threads)
        : access_(rows, threads.level),
          problem_(problem),
          stop_(stop),
          seed_(seed),
          poll_(threads.poll),
          n_(rows.n),
          d_(rows.d),
          classes_(static_cast<std::size_t>(problem.classes)),
          order_(static_cast<std::size_t>(n_)),
          excess_(classes_),
          limit_(classes_),
          sorted_(classes_),
          step_(classes_) {
        std::iota(order_.begin(), order_.end(), std::int64_t{0});
    }

    DcdResult run() {
        std::int64_t visits = 0;
        const auto epochs = [&] { return n_ ? (visits + n_ - 1) / n_ : visits; };
        while (epochs() < stop_.max_epochs) {
            const bool all = active_ == order_.size();
            const auto wanted = static_cast<std::int64_t>(active_);
            if (!pass()) return {epochs() + 1, worst_, gap_, StopReason::max_seconds};
            visits += std::max<std::int64_t>(wanted, 1);
            if (is_small()) {
                if (all) return {epochs(), worst_, gap_, StopReason::converged};
                active_ = order_.size(), margin_ = kInfinity;
            } else {
                margin_ = stop_.shrinking ? worst_ : kInfinity;
            }
        }
        return {std::max<std::int64_t>(stop_.max_epochs, 0), worst_, gap_, StopReason::max_epochs};
    }

private:
    bool is_small() const {
        return worst_ <= stop_.tol && (stop_.gap == kInfinity || gap_ <= stop_.gap * std::abs(dual_value()));
    }

    // Visits every active row once; false where the time is over.
    bool pass() {
        worst_ = gap_ = 0.0;
        for (std::size_t s = 0; s < active_;) {
            const std::int64_t offset = random_below(seed_, static_cast<std::int64_t>(active_ - s));
            std::swap(order_[s], order_[s + static_cast<std::size_t>(offset)]);
            if (visit(order_[s])) {
                ++s;
            } else {
                std::swap(order_[s], order_[--active_]);
            }
            if (since_poll_ > kElementsPerPoll) {
                since_poll_ = 0;
                poll_.check();
                if (watch_.seconds() > stop_.max_seconds) return false;
            }
        }
        return true;
    }

    // Returns whether the row stays active. It settles where a single class may take more, so that nothing can be
    // exchanged, and that class leads by more than any row missed in the pass before.
    bool visit(std::int64_t i) {
        const auto classes = static_cast<std::int64_t>(classes_), own = problem_.y[i];
        const double C = problem_.C[i];
        const double* beta = problem_.beta + i * classes;
        // excess_k = f_k + 1 - [k = y].
        for (std::size_t k = 0; k < classes_; ++k) {
            const bool is_own = static_cast<std::int64_t>(k) == own;
            excess_[k] = (is_own ? 0.0 : 1.0) + problem_.bias * problem_.w_bias[k];
        }
        access_.each(i, [&](std::int64_t j, double x) {
            const double* w = problem_.w + j * classes;
            for (std::size_t k = 0; k < classes_; ++k) excess_[k] += x * w[k];
        });
        const double own_excess = excess_[static_cast<std::size_t>(own)];
        double top = -kInfinity, top_without = -kInfinity, bottom = kInfinity, paid = 0.0;
        int room = 0;
        for (std::int64_t k = 0; k < classes; ++k) {
            const double excess = excess_[static_cast<std::size_t>(k)];
            top = std::max(top, excess);
            if (beta[k] < (k == own ? C : 0.0)) {
                bottom = std::min(bottom, excess);
                ++room;
            } else {
                top_without = std::max(top_without, excess);
            }
            paid -= beta[k] * (excess - own_excess);
        }
        worst_ = std::max(worst_, top - bottom);
        gap_ += std::max(0.0, C * (top - own_excess) - paid);
        since_poll_ += (access_.stored(i) + 2) * classes;
        if (top > bottom) step(i);
        return room != 1 || bottom - top_without <= margin_;
    }

    // Solves row i's part and lets w follow.
    void step(std::int64_t i) {
        const auto classes = static_cast<std::int64_t>(classes_), own = problem_.y[i];
        const double C = problem_.C[i], A = problem_.lengths[i] + problem_.bias * problem_.bias;
        double* beta = problem_.beta + i * classes;
        const auto move_to = [&](std::int64_t k, double to) {
            step_[static_cast<std::size_t>(k)] = to - beta[k];
            beta[k] = to;
        };
        if (A > 0.0) {
            // The new beta_k = min(cap_k, (A beta_k - excess_k - level) / A), cap = C for the label and 0 for others.
            // Its sum is zero where sum over k of max(0, level - limit_k) is A C, limit = A beta - excess - A cap.
            for (std::int64_t k = 0; k < classes; ++k) {
                const auto c = static_cast<std::size_t>(k);
                limit_[c] = A * beta[k] - excess_[c] - (k == own ? A * C : 0.0);
            }
            const double level = water_level(limit_, A * C, sorted_);
            for (std::int64_t k = 0; k < classes; ++k) {
                move_to(k, (k == own ? C : 0.0) + std::min(0.0, limit_[static_cast<std::size_t>(k)] - level) / A);
            }
        } else {
            // A row of zeros: its outputs never change, and all of C goes to the largest.
            const auto best = std::max_element(excess_.begin(), excess_.end()) - excess_.begin();
            for (std::int64_t k = 0; k < classes; ++k) move_to(k, (k == own ? C : 0.0) - (k == best ? C : 0.0));
        }
        access_.each(i, [&](std::int64_t j, double x) {
            double* w = problem_.w + j * classes;
            for (std::size_t k = 0; k < classes_; ++k) w[k] += x * step_[k];
        });
        for (std::size_t k = 0; k < classes_; ++k) problem_.w_bias[k] += problem_.bias * step_[k];
        since_poll_ += access_.stored(i) * classes;
    }

    double dual_value() const {
        const auto classes = static_cast<std::int64_t>(classes_);
        double value = 0.0;
        for (std::int64_t i = 0; i < n_; ++i) value += problem_.beta[i * classes + problem_.y[i]];
        for (std::int64_t k = 0; k < d_ * classes; ++k) value -= 0.5 * problem_.w[k] * problem_.w[k];
        for (std::int64_t k = 0; k < classes; ++k) value -= 0.5 * problem_.w_bias[k] * problem_.w_bias[k];
        return value;
    }

    const RowAccess<Rows> access_;
    const JointDcdProblem& problem_;
    const DcdStop& stop_;
    std::uint64_t* const seed_;
    Poll& poll_;
    const Stopwatch watch_;
    const std::int64_t n_, d_;
    const std::size_t classes_;
    std::vector<std::int64_t> order_;
    std::vector<double> excess_, limit_, sorted_, step_;
    std::size_t active_ = order_.size();
    double worst_ = 0.0, gap_ = 0.0, margin_ = kInfinity;
    std::int64_t since_poll_ = 0;
};

}  // namespace

template <class Rows>
DcdResult linear_joint_dcd(const Rows& rows, const JointDcdProblem& problem, const DcdStop& stop, std::uint64_t* seed,
                           const Threads& threads) {
    return JointDescent<Rows>(rows, problem, stop, seed, threads).run();
}

#define MERCER_INSTANTIATE(Rows)                                                                             \
    template DcdResult linear_joint_dcd(const Rows&, const JointDcdProblem&, const DcdStop&, std::uint64_t*, \
                                        const Threads&);
MERCER_FOR_LINEAR_ROWS(MERCER_INSTANTIATE)
#undef MERCER_INSTANTIATE

}  // namespace mercer
