// The general descent: any box, any epsilon. Passes over the active rows in random order; a full check before it ends.
#include "linear/descent.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "algebra/infinity.hpp"
#include "algebra/rounding.hpp"
#include "linear/descent_stop.hpp"
#include "linear/packed_csr.hpp"
#include "linear/packed_descent.hpp"
#include "linear/random_order.hpp"
#include "linear/row_access.hpp"
#include "threads/interrupt.hpp"

namespace mercer {
namespace {

// Rows are drawn and prefetched this many places ahead of the descent.
constexpr std::size_t kAhead = 3;

// How fast the objective falls as beta moves away from zero and towards it; -inf where the box ends.
struct Pull {
    double away, towards;
};

// `slope` is the derivative of the smooth part of what is minimised.
inline Pull pull(double slope, double beta, double lower, double upper, double epsilon) {
    const double up = beta < upper ? -(slope + (beta >= 0.0 ? epsilon : -epsilon)) : -kInfinity;
    const double down = beta > lower ? slope + (beta > 0.0 ? epsilon : -epsilon) : -kInfinity;
    if (beta > 0.0) return {up, down};
    if (beta < 0.0) return {down, up};
    return {std::max(up, down), -kInfinity};
}

// r moved towards zero by `width`, but not past it.
inline double shrunk(double r, double width) { return r > width ? r - width : r < -width ? r + width : 0.0; }

// A variable's share of the duality gap, never negative; r = p - f.
inline double gap_share(double r, double beta, double lower, double upper, double d, double epsilon) {
    const double beyond = shrunk(r, epsilon);
    const double at_bound = beyond > 0.0 ? upper : beyond < 0.0 ? lower : 0.0;
    const double best = d > 0.0 ? std::clamp(beyond / d, lower, upper) : at_bound;
    return best * (beyond - 0.5 * d * best) - beta * (r - 0.5 * d * beta) + epsilon * std::abs(beta);
}

template <class Rows>
class Descent {
public:
    Descent(const Rows& rows, const DcdProblem& problem, const DcdStop& stop, std::uint64_t* seed,
            const Threads& threads)
        : access_(rows, threads.level),
          problem_(problem),
          stop_(stop),
          seed_(seed),
          poll_(threads.poll),
          n_(rows.n),
          coupling_(problem.bias * problem.bias),
          order_(static_cast<std::size_t>(n_)),
          active_(order_.size()),
          violates_(order_.size()),
          b_(coupling_ * std::accumulate(problem.beta, problem.beta + n_, 0.0)),
          value_(problem.value - (coupling_ > 0.0 ? 0.5 * b_ * b_ / coupling_ : 0.0)) {
        std::iota(order_.begin(), order_.end(), std::int64_t{0});
        variables_.reserve(order_.size());
        for (std::int64_t i = 0; i < n_; ++i) {
            const double curvature = problem.lengths[i] + coupling_ + problem.d[i];
            const double inverse = curvature > 0.0 ? 1.0 / curvature : 0.0;
            variables_.push_back({problem.p[i], problem.lower[i], problem.upper[i], problem.d[i], problem.epsilon[i],
                                  curvature, inverse, problem.beta[i]});
        }
    }

    DcdResult run() {
        DescentStop stop(stop_, n_);
        while (true) {
            if (stop.exhausted(visits_)) return finish(StopReason::max_epochs);
            if (!pass()) return finish(StopReason::max_seconds);
            if (stop.should_check(worst_, gap_, value_, static_cast<std::int64_t>(active_), visits_)) {
                const FullCheck all = check_all();
                if (stop.met(all, value_) || stop.stalled(all, value_, visits_)) {
                    worst_ = all.violation, gap_ = all.gap;
                    return finish(StopReason::converged);
                }
                active_ = reactivate(&order_, active_, violates_);
            }
        }
    }

private:
    // All that a visit needs to know of a variable, in one cache line.
    struct alignas(64) Variable {
        double p, lower, upper, d, epsilon, curvature, inverse, beta;
    };

    // Fisher and Yates, ahead of the descent, so that rows are in the cache when their turn comes.
    void draw_ahead(std::size_t s) {
        for (std::size_t t = s == 0 ? 0 : s + kAhead; t <= s + kAhead && t < active_; ++t) {
            const std::int64_t offset = random_below(seed_, static_cast<std::int64_t>(active_ - t));
            std::swap(order_[t], order_[t + static_cast<std::size_t>(offset)]);
            access_.prefetch_row(order_[t]);
            prefetch(&variables_[static_cast<std::size_t>(order_[t])], sizeof(Variable));
        }
    }

    // The best value of one variable. A row of zeros without ridge is linear in its variable, and its box finite.
    static double best(const Variable& v, double slope) {
        if (v.curvature > 0.0) {
            return std::clamp(shrunk(v.beta - slope * v.inverse, v.epsilon * v.inverse), v.lower, v.upper);
        }
        return shrunk(-slope, v.epsilon) > 0.0 ? v.upper : v.lower;
    }

    // Visits the active rows once; false where the time is over.
    bool pass() {
        // Local copies: the compiler must assume that a store to a weight changes a member.
        double* const w = problem_.w;
        Variable* const variables = variables_.data();
        const double coupling = coupling_, shrink_away = shrink_away_, shrink_towards = shrink_towards_;
        double b = b_, value = value_, gap = 0.0, worst_away = 0.0, worst_towards = 0.0;
        bool in_time = true;
        for (std::size_t s = 0; s < active_ && in_time; ++s) {
            draw_ahead(s);
            const std::int64_t i = order_[s];
            Variable& v = variables[i];
            const double beta = v.beta, epsilon = v.epsilon;
            const double slope = access_.dot(i, w) + b + v.d * beta - v.p;
            const Pull now = pull(slope, beta, v.lower, v.upper, epsilon);
            ++visits_;
            since_poll_ += access_.stored(i) + 8;
            if (-now.away > shrink_away && -now.towards > shrink_towards) {
                --active_;
                std::swap(order_[s], order_[active_]);
                --s;
                continue;
            }
            gap += gap_share(v.d * beta - slope, beta, v.lower, v.upper, v.d, epsilon);
            worst_away = std::max(worst_away, now.away);
            worst_towards = std::max(worst_towards, now.towards);
            if (now.away > 0.0 || now.towards > 0.0) {
                const double to = best(v, slope), step = to - beta;
                if (step != 0.0) {
                    v.beta = to;
                    value -= step * (slope + 0.5 * v.curvature * step) + epsilon * (std::abs(to) - std::abs(beta));
                    access_.add(i, step, w);
                    b += step * coupling;
                    since_poll_ += access_.stored(i);
                }
            }
            if (poll_is_due()) {
                poll_.check();
                in_time = watch_.seconds() <= stop_.max_seconds;
            }
        }
        b_ = b, value_ = value, gap_ = gap;
        if (!in_time) return false;
        worst_ = std::max(worst_away, worst_towards);
        if (stop_.shrinking) {
            shrink_away_ = worst_towards > 0.0 ? worst_towards : kInfinity;
            shrink_towards_ = worst_away > 0.0 ? worst_away : kInfinity;
        }
        return true;
    }

    // Violation and gap over all rows at the present point.
    FullCheck check_all() {
        FullCheck all{};
        for (std::size_t i = 0; i < variables_.size(); ++i) {
            const Variable& v = variables_[i];
            const auto row = static_cast<std::int64_t>(i);
            const double slope = access_.dot(row, problem_.w) + b_ + v.d * v.beta - v.p;
            const Pull now = pull(slope, v.beta, v.lower, v.upper, v.epsilon);
            all.gap += gap_share(v.d * v.beta - slope, v.beta, v.lower, v.upper, v.d, v.epsilon);
            const double violation = std::max({0.0, now.away, now.towards});
            all.violation = std::max(all.violation, violation);
            violates_[i] = violation > 0.0;
            since_poll_ += access_.stored(row);
            if (poll_is_due()) poll_.check();
        }
        return all;
    }

    bool poll_is_due() {
        if (since_poll_ <= kElementsPerPoll) return false;
        since_poll_ = 0;
        return true;
    }

    DcdResult finish(StopReason reason) {
        *problem_.b = b_;
        for (std::size_t i = 0; i < variables_.size(); ++i) problem_.beta[i] = variables_[i].beta;
        return {n_ == 0 ? 0 : ceil_div(visits_, n_), worst_, gap_, reason};
    }

    const RowAccess<Rows> access_;
    const DcdProblem& problem_;
    const DcdStop& stop_;
    std::uint64_t* const seed_;
    Poll& poll_;
    const Stopwatch watch_;
    const std::int64_t n_;
    const double coupling_;
    std::vector<std::int64_t> order_;  // the active rows come first
    std::size_t active_;
    std::vector<Variable> variables_;
    std::vector<std::uint8_t> violates_;
    // A row leaves the active ones where its objective rises faster than this both ways.
    double shrink_away_ = kInfinity, shrink_towards_ = kInfinity;
    double b_, value_, worst_ = 0.0, gap_ = 0.0;
    std::int64_t visits_ = 0, since_poll_ = 0;
};

}  // namespace

template <class Rows>
DcdResult linear_dcd(const Rows& rows, PackedCsr& packed, const DcdProblem& problem, const DcdStop& stop,
                     std::uint64_t* seed, const Threads& threads) {
    if constexpr (requires { rows.starts; }) {
        if (PackedCsr::possible(rows) && one_sided(problem, rows.n)) {
            return packed_descent(packed.of(rows, threads.count, threads.poll), rows.n, rows.d, problem, stop, seed,
                                  threads);
        }
    }
    if (problem.bias > std::numeric_limits<double>::max()) return {0, 0.0, 0.0, StopReason::unsettled};
    return Descent<Rows>(rows, problem, stop, seed, threads).run();
}

#define MERCER_INSTANTIATE(Rows)                                                                              \
    template DcdResult linear_dcd(const Rows&, PackedCsr&, const DcdProblem&, const DcdStop&, std::uint64_t*, \
                                  const Threads&);
MERCER_FOR_LINEAR_ROWS(MERCER_INSTANTIATE)
#undef MERCER_INSTANTIATE

}  // namespace mercer
