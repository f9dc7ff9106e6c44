// Pair steps on all variables first. A problem that needs many goes on with those variables that may still move, whose
// part of the matrix is copied: steps on it read less memory. Where many more are needed, as with a large C, Newton
// steps on the free variables come between them. Then u and h of all variables are brought up to date.
#include "solve/stored.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "algebra/cholesky.hpp"
#include "algebra/infinity.hpp"
#include "simd/level_entries.hpp"

namespace mercer {
namespace {

// Elements that are summed or copied between two polls: less than a millisecond.
constexpr std::int64_t kElementsBetweenPolls = 1 << 20;
// Steps per variable before variables are dropped (a9a, 8,000 rows at C = 100: 65,000 steps, half the time).
constexpr std::int64_t kWholeSteps = 1;
// A part has at most this share of all variables (spam at C = 1,000 and more: 0.3 to 0.6 differ by no more than noise),
// and at most this many, which is 64 MB of float32.
constexpr double kPartShare = 0.4;
constexpr std::size_t kLargestPart = 4096;
// Steps per variable of a part before a Newton step (on the same: 3 to 12 differ by no more than noise).
constexpr std::int64_t kStepsBeforeNewton = 6;
// The most free variables of a Newton step: one factor takes a few hundredths of a second.
constexpr std::size_t kMostFree = 2048;
// Number of times that a Newton step is solved again because variables left the box.
constexpr int kRounds = 6;
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

// Some variables with their own copy of the matrix.
template <class T>
class Part {
public:
    std::vector<double> h, beta, lower, upper, d;

    Part(std::size_t m, const Level& level, Poll& poll)
        : h(m), beta(m), lower(m), upper(m), d(m), level_(level), poll_(poll), values_(m * m), group_(m) {}

    T* row(std::size_t a) { return values_.data() + a * size(); }
    std::int32_t& group(std::size_t a) { return group_[a]; }
    std::size_t size() const { return h.size(); }

    SmoResult steps(const SmoStop& stop) {
        const SmoProblem<T> problem{.kernel = values_.data(),
                                    .stride = static_cast<std::ptrdiff_t>(size()),
                                    .q = static_cast<std::int64_t>(size()),
                                    .h = h.data(),
                                    .beta = beta.data(),
                                    .lower = lower.data(),
                                    .upper = upper.data(),
                                    .d = d.data(),
                                    .group = group_.data()};
        const std::vector<double> before = beta;
        const SmoResult result = smo(problem, stop, level_, poll_);
        std::vector<double> change(size());
        for (std::size_t a = 0; a < size(); ++a) change[a] = beta[a] - before[a];
        add_product(change, -1.0, h);
        return result;
    }

    // A Newton step: the best change of the free variables within the box that keeps their sum. Variables that it would
    // take out of the box are held at their bounds, and the others solved for again, as long as there are two of them to
    // balance a sum; then, or after some rounds, the step ends at the first bound. Pair steps, which come next, let go of
    // variables that were held in error. Nothing changes where the problem has several sums, or no step is found.
    void climb() {
        std::vector<std::size_t> free;
        for (std::size_t a = 0; a < size(); ++a) {
            if (group_[a] != group_[0]) return;
            if (beta[a] > lower[a] && beta[a] < upper[a]) free.push_back(a);
        }
        if (free.size() > kMostFree) return;
        const std::size_t fewest = group_[0] >= 0 ? 2 : 1;  // that a step can be solved for
        std::vector<double> change(size(), 0.0), left = h;
        double held = 0.0;  // the sum of the changes that are held
        for (int round = 0; free.size() >= fewest; ++round) {
            const std::optional<std::vector<double>> found = unbounded(free, left, -held);
            if (!found) return;
            double length = 1.0;  // up to the first bound
            std::vector<std::size_t> inside;
            for (std::size_t r = 0; r < free.size(); ++r) {
                const std::size_t a = free[r];
                change[a] = (*found)[r];
                const double room = change[a] > 0.0 ? upper[a] - beta[a] : beta[a] - lower[a];
                if (std::abs(change[a]) < room) {
                    inside.push_back(a);
                } else {
                    length = std::min(length, room / std::abs(change[a]));
                }
            }
            if (inside.size() == free.size()) break;
            if (round + 1 == kRounds || (fewest == 2 && inside.size() < fewest)) {
                for (double& one : change) one *= length;
                break;
            }
            for (const std::size_t a : free) {
                const double room = change[a] > 0.0 ? upper[a] - beta[a] : lower[a] - beta[a];
                if (std::abs(change[a]) < std::abs(room)) continue;
                change[a] = room;
                held += room;
                const T* const k = row(a);
                for (const std::size_t b : inside) left[b] -= room * static_cast<double>(k[b]);
            }
            free = std::move(inside);
        }
        go(change);
    }

private:
    const Level& level_;
    Poll& poll_;
    std::vector<T> values_;
    std::vector<std::int32_t> group_;

    // out += factor (K + diag d) change.
    void add_product(const std::vector<double>& change, double factor, std::vector<double>& out) {
        const auto subtract = smo_passes_of<T>(level_).subtract;
        for (std::size_t a = 0; a < size(); ++a) {
            if (change[a] == 0.0) continue;
            subtract(out.data(), row(a), -factor * change[a], static_cast<std::int64_t>(size()));
            out[a] += factor * d[a] * change[a];
        }
    }

    // As far along a change as the dual rises, and not beyond it: there all variables are inside the box.
    void go(const std::vector<double>& change) {
        std::vector<double> product(size(), 0.0);
        add_product(change, 1.0, product);
        double slope = 0.0, curvature = 0.0;
        for (std::size_t a = 0; a < size(); ++a) {
            slope += h[a] * change[a];
            curvature += product[a] * change[a];
        }
        if (!(slope > 0.0 && std::isfinite(slope) && std::isfinite(curvature))) return;
        const double length = curvature > slope ? slope / curvature : 1.0;
        for (std::size_t a = 0; a < size(); ++a) {
            if (change[a] == 0.0) continue;
            beta[a] = std::clamp(beta[a] + length * change[a], lower[a], upper[a]);
        }
        for (std::size_t a = 0; a < size(); ++a) h[a] -= length * product[a];
    }

    // x with (K + diag d) x = g on the `free` variables, up to a constant if their sum has to be `sum`. A ridge far
    // below the kernel's size makes the system solvable; nullopt if it does not.
    std::optional<std::vector<double>> unbounded(const std::vector<std::size_t>& free, const std::vector<double>& g,
                                                 double sum) {
        const std::size_t n = free.size();
        const auto rows = static_cast<std::int64_t>(n);
        const bool summed = group_[0] >= 0;
        const Threads threads{1, level_, poll_};
        double unit = 0.0, mean = 0.0;
        for (const std::size_t a : free) {
            unit = std::max(unit, static_cast<double>(row(a)[a]) + d[a]);
            mean += g[a] / static_cast<double>(n);
        }
        std::vector<T> matrix(n * n), right(2 * n);
        for (double ridge = sizeof(T) == sizeof(float) ? 1e-6 : 1e-12; ridge < 1e-3; ridge *= 100.0) {
            for (std::size_t r = 0; r < n; ++r) {
                const T* const k = row(free[r]);
                for (std::size_t c = 0; c < r; ++c) matrix[r * n + c] = k[free[c]];
                matrix[r * n + r] = static_cast<T>(static_cast<double>(k[free[r]]) + d[free[r]] + ridge * unit);
                right[2 * r] = static_cast<T>(g[free[r]] - (summed ? mean : 0.0));
                right[2 * r + 1] = T{1};
            }
            if (cholesky(matrix.data(), rows, rows, threads) >= 0) continue;
            cholesky_solve(matrix.data(), rows, rows, right.data(), 2, threads);
            double of_g = 0.0, of_one = 0.0;
            for (std::size_t r = 0; r < n; ++r) {
                of_g += static_cast<double>(right[2 * r]);
                of_one += static_cast<double>(right[2 * r + 1]);
            }
            const double constant = summed ? (of_g - sum) / of_one : 0.0;
            std::vector<double> x(n);
            double excess = 0.0;
            for (std::size_t r = 0; r < n; ++r) {
                x[r] = static_cast<double>(right[2 * r]) - constant * static_cast<double>(right[2 * r + 1]);
                excess += x[r];
            }
            excess = summed ? (excess - sum) / static_cast<double>(n) : 0.0;  // of rounding
            for (double& one : x) one -= excess;
            return std::isfinite(excess) ? std::optional(std::move(x)) : std::nullopt;
        }
        return std::nullopt;
    }
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
        SmoResult last = on_all();
        while (last.reason == StopReason::max_steps && steps_ < stop_.max_steps) {
            const std::vector<std::int64_t> part = survivors();
            const std::int64_t before = steps_;
            if (part.size() > kLargestPart || static_cast<double>(part.size()) > kPartShare * static_cast<double>(in_.q)) {
                last = on_all();
                continue;
            }
            last = on_part(part);
            if (last.reason != StopReason::converged) continue;
            last.violation = violation();
            if (last.violation <= stop_.tol) break;
            last.reason = StopReason::max_steps;  // a variable that was dropped has to come back
            if (steps_ == before) last = on_all();
        }
        last.steps = steps_;
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
    std::int64_t steps_ = 0;
    const Stopwatch watch_;

    SmoStop limits(std::int64_t steps) const { return {stop_.tol, steps, stop_.max_seconds - watch_.seconds()}; }

    SmoResult on_all() {
        const std::int64_t steps = std::min(stop_.max_steps - steps_, kWholeSteps * in_.q);
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
        move(std::move(beta));
        return result;
    }

    SmoResult on_part(const std::vector<std::int64_t>& places) {
        const std::size_t m = places.size();
        Part<T> part(m, level_, poll_);
        std::int64_t untouched = kElementsBetweenPolls;
        for (std::size_t a = 0; a < m; ++a) {
            const std::int64_t i = places[a];
            const T* const row = rows_.row(i);
            T* const own = part.row(a);
            for (std::size_t b = 0; b < m; ++b) own[b] = row[places[b]];
            part.h[a] = h_[static_cast<std::size_t>(i)];
            part.beta[a] = beta_[static_cast<std::size_t>(i)];
            part.lower[a] = in_.lower[i];
            part.upper[a] = in_.upper[i];
            part.d[a] = in_.d[i];
            part.group(a) = in_.group[i];
            if ((untouched -= static_cast<std::int64_t>(m)) < 0) {
                poll_.check();
                untouched = kElementsBetweenPolls;
            }
        }
        SmoResult result;
        for (;;) {
            const std::int64_t left = stop_.max_steps - steps_;
            const std::int64_t most = std::min(left, kStepsBeforeNewton * static_cast<std::int64_t>(m));
            result = part.steps(limits(most));
            steps_ += result.steps;
            if (result.reason != StopReason::max_steps || most == left) break;
            part.climb();
        }
        std::vector<double> moved = beta_;
        for (std::size_t a = 0; a < m; ++a) moved[static_cast<std::size_t>(places[a])] = part.beta[a];
        move(std::move(moved));
        return result;
    }

    // Takes over beta, and brings u and h up to date: u from that of the start in one sum, whose rounding errors do not
    // depend on what steps took back on the way.
    void move(std::vector<double> beta) {
        beta_ = std::move(beta);
        std::copy(in_.u, in_.u + in_.q, u_.begin());
        add_change(beta_.data(), in_.beta);
        find_gradient();
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
    if (problem.q == 0) return {0, 0.0, StopReason::converged};
    return Stored<T>(problem, stop, level, poll).run();
}

template SmoResult solve_stored(const StoredProblem<float>&, const SmoStop&, const Level&, Poll&);
template SmoResult solve_stored(const StoredProblem<double>&, const SmoStop&, const Level&, Poll&);

}  // namespace mercer
