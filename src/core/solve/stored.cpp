// Pair steps on all variables first. A problem that needs many goes on with those variables that may still move, whose
// part of the matrix is copied: steps on it read less memory. Then u and h of all variables are brought up to date.
#include "solve/stored.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <vector>

#include "algebra/infinity.hpp"
#include "simd/level_entries.hpp"

namespace mercer {
namespace {

// Elements that are summed or copied between two polls: less than a millisecond.
constexpr std::int64_t kElementsBetweenPolls = 1 << 20;
// Steps per variable before variables are dropped (a9a, 8,000 rows at C = 100: 65,000 steps, half the time).
constexpr std::int64_t kWholeSteps = 1;
// A part pays if it has at most this share of all variables; it has at most so many, which is 64 MB of float32.
constexpr double kPartShare = 0.6;
constexpr std::size_t kLargestPart = 4096;
// A variable is dropped if its gradient is outside the ends of its group by this share of the violation.
constexpr double kMarginShare = 0.1;

template <class T>
class StoredRows final : public RowSource<T> {
public:
    explicit StoredRows(const StoredProblem<T>& problem) : in_(problem) {}
    const T* row(std::int64_t i) override { return in_.kernel + in_.which[i] * in_.stride; }
    double diagonal(std::int64_t i) const override {
        return static_cast<double>(in_.kernel[in_.which[i] * in_.stride + i]);
    }

private:
    const StoredProblem<T>& in_;
};

// The largest h of a group that may grow, and the smallest that may shrink. A variable without a group has 0 as the
// other end.
struct GroupEnds {
    double top = -kInfinity, bottom = kInfinity;
};

template <class T>
class Stored {
public:
    Stored(const StoredProblem<T>& problem, const SmoStop& stop, const Level& level, Poll& poll)
        : in_(problem),
          stop_(stop),
          level_(level),
          poll_(poll),
          rows_(problem),
          beta_(problem.beta, problem.beta + problem.q),
          u_(problem.u, problem.u + problem.q),
          h_(static_cast<std::size_t>(problem.q)) {
        find_gradient();
    }

    SmoResult run() {
        SmoResult last = on_all(std::min(stop_.max_steps, kWholeSteps * in_.q));
        while (std::string_view(last.reason) == "max_steps" && steps_ < stop_.max_steps) {
            const std::vector<std::int64_t> part = survivors();
            const std::int64_t before = steps_;
            if (part.size() > kLargestPart || static_cast<double>(part.size()) > kPartShare * static_cast<double>(in_.q)) {
                last = on_all(stop_.max_steps - steps_);
                break;
            }
            last = on_part(part);
            if (std::string_view(last.reason) != "converged") continue;
            last.violation = violation();
            if (last.violation <= stop_.tol) break;
            last.reason = "max_steps";  // a variable that was dropped has to come back
            if (steps_ == before) last = on_all(stop_.max_steps - steps_);
        }
        last.steps = steps_;
        if (moves_ > 1) restate();
        std::copy(beta_.begin(), beta_.end(), in_.beta);
        std::copy(u_.begin(), u_.end(), in_.u);
        return last;
    }

private:
    const StoredProblem<T>& in_;
    const SmoStop& stop_;
    const Level& level_;
    Poll& poll_;
    StoredRows<T> rows_;
    std::vector<double> beta_, u_, h_;
    std::int64_t steps_ = 0, moves_ = 0;
    const Stopwatch watch_;

    SmoStop limits(std::int64_t steps) const { return {stop_.tol, steps, stop_.max_seconds - watch_.seconds()}; }

    SmoResult on_all(std::int64_t steps) {
        std::vector<double> beta = beta_;
        const SmoProblem<T> problem{.kernel = nullptr,
                                    .stride = 0,
                                    .q = in_.q,
                                    .h = h_.data(),
                                    .beta = beta.data(),
                                    .lower = in_.lower,
                                    .upper = in_.upper,
                                    .d = in_.d,
                                    .group = in_.group,
                                    .source = &rows_};
        const SmoResult result = smo(problem, limits(steps), level_, poll_);
        steps_ += result.steps;
        move(beta);
        return result;
    }

    SmoResult on_part(const std::vector<std::int64_t>& part) {
        const std::size_t m = part.size();
        std::vector<T> values(m * m);
        std::vector<double> h(m), beta(m), lower(m), upper(m), d(m);
        std::vector<std::int32_t> group(m);
        std::int64_t untouched = kElementsBetweenPolls;
        for (std::size_t a = 0; a < m; ++a) {
            const std::int64_t i = part[a];
            const T* const row = rows_.row(i);
            for (std::size_t b = 0; b < m; ++b) values[a * m + b] = row[part[b]];
            h[a] = h_[static_cast<std::size_t>(i)];
            beta[a] = beta_[static_cast<std::size_t>(i)];
            lower[a] = in_.lower[i];
            upper[a] = in_.upper[i];
            d[a] = in_.d[i];
            group[a] = in_.group[i];
            if ((untouched -= static_cast<std::int64_t>(m)) < 0) {
                poll_.check();
                untouched = kElementsBetweenPolls;
            }
        }
        const SmoProblem<T> problem{.kernel = values.data(),
                                    .stride = static_cast<std::ptrdiff_t>(m),
                                    .q = static_cast<std::int64_t>(m),
                                    .h = h.data(),
                                    .beta = beta.data(),
                                    .lower = lower.data(),
                                    .upper = upper.data(),
                                    .d = d.data(),
                                    .group = group.data()};
        const SmoResult result = smo(problem, limits(stop_.max_steps - steps_), level_, poll_);
        steps_ += result.steps;
        std::vector<double> moved = beta_;
        for (std::size_t a = 0; a < m; ++a) moved[static_cast<std::size_t>(part[a])] = beta[a];
        move(moved);
        return result;
    }

    // Takes over beta, and brings u and h up to date.
    void move(const std::vector<double>& beta) {
        add_change(beta.data(), beta_.data());
        beta_ = beta;
        ++moves_;
        find_gradient();
    }

    // u from that of the start in one sum, whose rounding errors do not depend on what steps took back on the way.
    void restate() {
        std::copy(in_.u, in_.u + in_.q, u_.begin());
        add_change(beta_.data(), in_.beta);
    }

    // u += K(after - before), in float64.
    void add_change(const double* after, const double* before) {
        const auto subtract = smo_passes_of<T>(level_).subtract;
        std::int64_t untouched = kElementsBetweenPolls;
        for (std::int64_t i = 0; i < in_.q; ++i) {
            const double change = after[i] - before[i];
            if (change == 0.0) continue;
            subtract(u_.data(), rows_.row(i), -change, in_.q);
            if ((untouched -= in_.q) < 0) {
                poll_.check();
                untouched = kElementsBetweenPolls;
            }
        }
    }

    void find_gradient() {
        for (std::int64_t i = 0; i < in_.q; ++i) {
            const auto k = static_cast<std::size_t>(i);
            h_[k] = in_.p[i] - u_[k] - in_.d[i] * beta_[k];
        }
    }

    bool may_grow(std::int64_t i) const { return beta_[static_cast<std::size_t>(i)] < in_.upper[i]; }
    bool may_shrink(std::int64_t i) const { return beta_[static_cast<std::size_t>(i)] > in_.lower[i]; }

    std::map<std::int32_t, GroupEnds> ends() const {
        std::map<std::int32_t, GroupEnds> found;
        for (std::int64_t i = 0; i < in_.q; ++i) {
            GroupEnds& own = found[in_.group[i]];
            const double h = h_[static_cast<std::size_t>(i)];
            if (may_grow(i)) own.top = std::max(own.top, h);
            if (may_shrink(i)) own.bottom = std::min(own.bottom, h);
        }
        if (const auto alone = found.find(-1); alone != found.end()) {
            alone->second = {std::max(alone->second.top, 0.0), std::min(alone->second.bottom, 0.0)};
        }
        return found;
    }

    static double violation(const std::map<std::int32_t, GroupEnds>& ends) {
        double largest = 0.0;
        for (const auto& [group, own] : ends) {
            const double here = group < 0 ? std::max(own.top, -own.bottom) : own.top - own.bottom;
            if (std::isfinite(here)) largest = std::max(largest, here);
        }
        return largest;
    }
    double violation() const { return violation(ends()); }

    // The variables that are free, or that a step could choose.
    std::vector<std::int64_t> survivors() const {
        const std::map<std::int32_t, GroupEnds> found = ends();
        const double margin = kMarginShare * violation(found);
        std::vector<std::int64_t> part;
        for (std::int64_t i = 0; i < in_.q; ++i) {
            const bool up = may_grow(i), low = may_shrink(i);
            const GroupEnds& own = found.at(in_.group[i]);
            const double h = h_[static_cast<std::size_t>(i)];
            const double least = in_.group[i] < 0 ? 0.0 : own.bottom, most = in_.group[i] < 0 ? 0.0 : own.top;
            if ((up && low) || (up && h >= least - margin) || (low && h <= most + margin)) part.push_back(i);
        }
        return part;
    }
};

}  // namespace

template <class T>
SmoResult solve_stored(const StoredProblem<T>& problem, const SmoStop& stop, const Level& level, Poll& poll) {
    if (problem.q == 0) return {0, 0.0, "converged"};
    return Stored<T>(problem, stop, level, poll).run();
}

template SmoResult solve_stored(const StoredProblem<float>&, const SmoStop&, const Level&, Poll&);
template SmoResult solve_stored(const StoredProblem<double>&, const SmoStop&, const Level&, Poll&);

}  // namespace mercer
