// Pairs by second-order working set selection (Fan, Chen, Lin 2005), steps in float64, passes in the kernel's own type.
#include "solve/smo.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "algebra/infinity.hpp"
#include "simd/level_entries.hpp"
#include "simd/padded.hpp"
#include "solve/steps.hpp"

namespace mercer {
namespace {

constexpr double kTiny = std::numeric_limits<double>::min();

// Curvature below this fraction of the diagonal is rounding error: for the step, which is computed in float64, and for
// the choice of a partner, which is made in the kernel's own type.
constexpr double kSingular = 1e-12;
// Rounding of a step and of the room it has: nearer to a bound than this share of its numbers a variable is on it.
constexpr double kBeside = 4.0 * std::numeric_limits<double>::epsilon();
template <class T>
constexpr double kSingularChoice = sizeof(T) == sizeof(float) ? 1e-7 : 1e-12;

// The gain of the dual is looked at once in this many steps per variable.
constexpr std::int64_t kWindow = 10;

// Windows in a row that may gain less than the dual's rounding error. The gain is known far more precisely than the
// dual, so a positive one is still progress: some problems need it for their last digits.
constexpr int kPatience = 20;

// The variables of one equality constraint (or of none), with masks over the aligned range that holds them.
template <class T>
struct Group {
    bool paired;
    std::int64_t begin = 0;  // a multiple of kPad
    std::int64_t count = 0;  // elements of the range, not beyond q
    T shift = 0;             // subtracted from h, so that float32 resolves small differences
    Padded<T> up, low;
    Extremes<T> seen{};

    double violation() const {
        const auto top = static_cast<double>(seen.max_up);
        const auto bottom = static_cast<double>(seen.min_low);
        return paired ? top - bottom : std::max(top, -bottom);
    }
};

template <class T>
class Smo {
public:
    Smo(const SmoProblem<T>& problem, const SmoStop& stop, const Level& level, Poll& poll)
        : in_(problem),
          stop_(stop),
          pass_(smo_passes_of<T>(level)),
          poll_(poll),
          q_(problem.q),
          beta_(problem.beta, problem.beta + q_),
          beta_exact_(beta_),
          h_exact_(problem.h, problem.h + q_),
          group_of_(static_cast<std::size_t>(q_)),
          kernel_diag_(static_cast<std::size_t>(q_)),
          h_(q_, T{0}),
          diag_(q_, T{1}),
          floor_(q_, T{1}) {
        make_groups();
        for (std::int64_t i = 0; i < q_; ++i) {
            const double k = in_.source == nullptr ? static_cast<double>(row(i)[i]) : in_.source->diagonal(i);
            kernel_diag_[static_cast<std::size_t>(i)] = k;
            diag_[i] = static_cast<T>(k + in_.d[i]);
            // At least d, for K counts as positive semi-definite, and never zero.
            floor_[i] = static_cast<T>(std::max({in_.d[i], kSingularChoice<T> * std::abs(k + in_.d[i]), 1e-30}));
        }
        reload();
    }

    SmoResult run() {
        const StopReason reason = finite_start() ? loop() : StopReason::nonfinite;
        // No NaN is ever the largest, so a gradient full of them would look converged.
        if (reason == StopReason::nonfinite || !finite_gradient()) return {steps_, std::nan(""), StopReason::nonfinite};
        std::copy(beta_.begin(), beta_.end(), in_.beta);
        return {steps_, std::max(0.0, worst().violation()), reason};
    }

private:
    const SmoProblem<T>& in_;
    const SmoStop& stop_;
    const SmoPasses<T>& pass_;
    Poll& poll_;
    const std::int64_t q_;
    std::vector<double> beta_;
    std::vector<double> beta_exact_;  // where h_exact_ was computed
    std::vector<double> h_exact_;
    std::vector<std::size_t> group_of_;
    std::vector<double> kernel_diag_;  // a copy: in K every element would be a cache miss
    std::vector<Group<T>> groups_;
    Padded<T> h_, diag_, floor_;
    std::int64_t steps_ = 0;
    const Stopwatch watch_;

    const T* row(std::int64_t i) const {
        return in_.source == nullptr ? in_.kernel + i * in_.stride : in_.source->row(i);
    }
    double kernel_diag(std::int64_t i) const { return kernel_diag_[static_cast<std::size_t>(i)]; }
    Group<T>& group(std::int64_t i) { return groups_[group_of_[static_cast<std::size_t>(i)]]; }
    double& beta(std::int64_t i) { return beta_[static_cast<std::size_t>(i)]; }

    // The first group spans everything, because its extremes come with the update; the others only their own range.
    void make_groups() {
        std::map<std::int32_t, std::size_t> ids;
        std::vector<std::int64_t> last;
        for (std::int64_t i = 0; i < q_; ++i) {
            const auto [it, fresh] = ids.try_emplace(in_.group[i], groups_.size());
            if (fresh) {
                groups_.emplace_back();
                groups_.back().paired = in_.group[i] >= 0;
                groups_.back().begin = groups_.size() == 1 ? 0 : i / kPad * kPad;
                last.push_back(i);
            }
            group_of_[static_cast<std::size_t>(i)] = it->second;
            last[it->second] = i;
        }
        for (std::size_t g = 0; g < groups_.size(); ++g) {
            Group<T>& group = groups_[g];
            group.count = (g == 0 ? q_ : last[g] + 1) - group.begin;
            group.up = Padded<T>(group.count, -std::numeric_limits<T>::infinity());
            group.low = Padded<T>(group.count, std::numeric_limits<T>::infinity());
        }
        for (std::int64_t i = 0; i < q_; ++i) mark(i);
    }

    void mark(std::int64_t i) {
        Group<T>& g = group(i);
        g.up[i - g.begin] = beta(i) < in_.upper[i] ? T{0} : -std::numeric_limits<T>::infinity();
        g.low[i - g.begin] = beta(i) > in_.lower[i] ? T{0} : std::numeric_limits<T>::infinity();
    }

    void find_extremes(Group<T>& g) {
        pass_.extremes(h_.data() + g.begin, g.up.data(), g.low.data(), g.count, &g.seen);
    }

    // h from h_exact, each paired group shifted by the middle of its extremes.
    void reload() {
        for (Group<T>& g : groups_) g.shift = 0;
        std::vector<double> top(groups_.size(), -kInfinity), bottom(groups_.size(), kInfinity);
        for (std::int64_t i = 0; i < q_; ++i) {
            const auto k = static_cast<std::size_t>(i);
            const std::size_t g = group_of_[k];
            if (beta_[k] < in_.upper[i]) top[g] = std::max(top[g], h_exact_[k]);
            if (beta_[k] > in_.lower[i]) bottom[g] = std::min(bottom[g], h_exact_[k]);
        }
        for (std::size_t g = 0; g < groups_.size(); ++g) {
            const bool both = std::isfinite(top[g]) && std::isfinite(bottom[g]);
            if (groups_[g].paired && both) groups_[g].shift = static_cast<T>(top[g] + 0.5 * (bottom[g] - top[g]));
        }
        for (std::int64_t i = 0; i < q_; ++i) {
            h_[i] = static_cast<T>(h_exact_[static_cast<std::size_t>(i)] - static_cast<double>(group(i).shift));
        }
        for (Group<T>& g : groups_) find_extremes(g);
    }

    bool finite_start() const {
        for (std::int64_t i = 0; i < q_; ++i) {
            if (!std::isfinite(in_.h[i]) || !std::isfinite(in_.beta[i]) || !std::isfinite(in_.d[i])) return false;
        }
        return true;
    }

    bool finite_gradient() const {
        for (std::int64_t i = 0; i < q_; ++i) {
            if (!std::isfinite(h_[i])) return false;
        }
        return true;
    }

    Group<T>& worst() {
        return *std::max_element(groups_.begin(), groups_.end(),
                                 [](const auto& a, const auto& b) { return a.violation() < b.violation(); });
    }

    StopReason loop() {
        const std::int64_t between_polls = 1 + kTouchedPerPoll / q_;
        const std::int64_t window = kWindow * q_;
        std::int64_t next_poll = 0;
        std::int64_t next_refresh = window;
        double gained = 0.0;
        double least = kInfinity;
        int idle = 0;
        for (;;) {
            Group<T>& g = worst();
            if (!(g.violation() > stop_.tol)) return StopReason::converged;
            if (steps_ >= stop_.max_steps) return StopReason::max_steps;
            if (steps_ >= next_poll) {
                next_poll = steps_ + between_polls;
                poll_.check();
                if (watch_.seconds() > stop_.max_seconds) return StopReason::max_seconds;
                if (!finite_gradient()) return StopReason::nonfinite;
            }
            if (steps_ >= next_refresh) {
                next_refresh = steps_ + window;
                // The gain is measured with the exact gradient. With that of the passes, steps can go round in circles
                // of rounding errors, each of which looks like an increase.
                const double gain = refresh();
                gained += gain;
                const double violation = worst().violation();
                const bool rising = gain > std::numeric_limits<double>::epsilon() * (std::abs(gained) + kTiny);
                idle = rising || violation < 0.99 * least ? 0 : idle + 1;
                if (idle > 0 && (!(gain > 0.0) || idle == kPatience)) return StopReason::stalled;
                least = std::min(least, violation);
                continue;
            }
            if (const auto reason = g.paired ? step_pair(g) : step_one(g)) return *reason;
            ++steps_;
        }
    }

    // h at beta, in float64 from the kernel; returns how much the dual has grown since the last time.
    double refresh() {
        std::vector<double> h = h_exact_;
        std::int64_t untouched = kTouchedPerPoll;
        for (std::int64_t i = 0; i < q_; ++i) {
            const auto k = static_cast<std::size_t>(i);
            const double change = beta_[k] - beta_exact_[k];
            if (change == 0.0) continue;
            pass_.subtract(h.data(), row(i), change, q_);
            h[k] -= in_.d[i] * change;
            if ((untouched -= q_) < 0) {
                poll_.check();
                untouched = kTouchedPerPoll;
            }
        }
        // D(b) - D(b0) = 1/2 (b - b0)'(h + h0); within a group with an equality any constant may be subtracted from h.
        double gain = 0.0;
        for (std::int64_t i = 0; i < q_; ++i) {
            const auto k = static_cast<std::size_t>(i);
            gain += (beta_[k] - beta_exact_[k]) * (0.5 * (h[k] + h_exact_[k]) - static_cast<double>(group(i).shift));
        }
        h_exact_ = std::move(h);
        beta_exact_ = beta_;
        reload();
        return gain;
    }

    // The curvature to divide by: K's, at least zero, plus d. `singular`: only the box bounds the step.
    static double curvature(double of_kernel, double d, double scale, bool* singular) {
        const double floor = d > 0.0 ? d : std::max(kSingular * scale, kTiny);
        const double eta = of_kernel + d;
        *singular = !(eta > floor) && !(d > 0.0);
        return eta > floor ? eta : floor;
    }

    // Whether a step ends on the bound that is `room` away. A variable that rounding leaves beside its bound would be a
    // free one, whose gradient alone decides the bias.
    static bool reaches(double step, double room, double old) {
        return room - step <= kBeside * std::max(std::abs(old), step);
    }

    std::optional<StopReason> step_pair(Group<T>& g) {
        const std::int64_t i = g.begin + g.seen.i_up;
        const std::int64_t found =
            pass_.partner(h_.data() + g.begin, row(i) + g.begin, g.low.data(), diag_.data() + g.begin,
                          floor_.data() + g.begin, h_[i], diag_[i], floor_[i], g.count);
        if (found < 0) return StopReason::stalled;  // the square of the gap underflows
        const std::int64_t j = g.begin + found;

        const double gap = static_cast<double>(h_[i]) - static_cast<double>(h_[j]);
        const double kii = kernel_diag(i), kjj = kernel_diag(j), kij = static_cast<double>(row(i)[j]);
        if (!std::isfinite(gap) || !std::isfinite(kii + kjj - 2.0 * kij)) return StopReason::nonfinite;
        bool singular;
        const double scale = std::abs(kii) + std::abs(kjj);
        const double eta = curvature(kii + kjj - 2.0 * kij, in_.d[i] + in_.d[j], scale, &singular);
        const double room_i = in_.upper[i] - beta(i);
        const double room_j = beta(j) - in_.lower[j];
        const double room = std::min(room_i, room_j);
        const double step = std::min(gap / eta, room);
        if ((singular && room == kInfinity) || !std::isfinite(step)) return StopReason::unbounded;

        const double old_i = beta(i), old_j = beta(j);
        beta(i) = reaches(step, room_i, old_i) ? in_.upper[i] : old_i + step;
        beta(j) = reaches(step, room_j, old_j) ? in_.lower[j] : old_j - step;
        if (beta(i) == old_i && beta(j) == old_j) return StopReason::stalled;
        mark(i);
        mark(j);
        if (in_.d[i] != 0.0) h_[i] = static_cast<T>(static_cast<double>(h_[i]) - step * in_.d[i]);
        if (in_.d[j] != 0.0) h_[j] = static_cast<T>(static_cast<double>(h_[j]) + step * in_.d[j]);
        apply(row(i), row(j), step);
        return std::nullopt;
    }

    std::optional<StopReason> step_one(Group<T>& g) {
        const std::int64_t found = pass_.coordinate(h_.data() + g.begin, g.up.data(), g.low.data(),
                                                    diag_.data() + g.begin, floor_.data() + g.begin, g.count);
        if (found < 0) return StopReason::stalled;
        const std::int64_t i = g.begin + found;

        const double slope = static_cast<double>(h_[i]);
        const double kii = kernel_diag(i);
        if (!std::isfinite(slope) || !std::isfinite(kii)) return StopReason::nonfinite;
        bool singular;
        const double eta = curvature(kii, in_.d[i], std::abs(kii), &singular);
        const double bound = slope > 0.0 ? in_.upper[i] : in_.lower[i];
        const double room = std::abs(bound - beta(i));
        const double size = std::min(std::abs(slope) / eta, room);
        if ((singular && room == kInfinity) || !std::isfinite(size)) return StopReason::unbounded;

        const double old = beta(i);
        const double step = slope > 0.0 ? size : -size;
        beta(i) = reaches(size, room, old) ? bound : old + step;
        if (beta(i) == old) return StopReason::stalled;
        mark(i);
        if (in_.d[i] != 0.0) h_[i] = static_cast<T>(slope - step * in_.d[i]);
        apply(row(i), nullptr, step);
        return std::nullopt;
    }

    void apply(const T* ki, const T* kj, double step) {
        Group<T>& fused = groups_.front();
        pass_.update(h_.data(), ki, kj, static_cast<T>(step), fused.up.data(), fused.low.data(), q_, &fused.seen);
        for (std::size_t g = 1; g < groups_.size(); ++g) find_extremes(groups_[g]);
    }
};

}  // namespace

template <class T>
SmoResult smo(const SmoProblem<T>& problem, const SmoStop& stop, const Level& level, Poll& poll) {
    if (problem.q == 0) return {0, 0.0, StopReason::converged};
    return Smo<T>(problem, stop, level, poll).run();
}

template SmoResult smo(const SmoProblem<float>&, const SmoStop&, const Level&, Poll&);
template SmoResult smo(const SmoProblem<double>&, const SmoStop&, const Level&, Poll&);

}  // namespace mercer
