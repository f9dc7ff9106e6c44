// Dual coordinate descent for classification on packed sparse rows: every variable is a = |beta| in [0, upper], so that a visit
// needs few branches. (Twenty passes take 0.64 of the general loop's time on a9a, 0.7 to 0.8 on text.)
//
// The bias is a feature that all rows have, and as the weight B^2 sum(beta) of one it makes coordinate steps slow: it follows
// every single step, and no variable can move far unless others move back. So b is held during a pass instead, or nearly. For a given b
// the best dual value phi(b) is convex, phi'(b) = b/B^2 - sum(beta), and after each pass b takes a Newton step on it. How much
// of sum(beta) a move of b brings about is between all of sum 1/q over the free variables (q: their curvature) and a small part
// of it, where w takes over; that part comes from the last two passes. (Passes to gaps of 1e-2 and 1e-4, squared hinge: reuters 7
// and 10 instead of 9 and 16, rtpolarity 4 and 7 instead of 7 and 20.) If b does not settle, it becomes a weight again.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "linear/descent_stop.hpp"
#include "linear/linear.hpp"
#include "linear/packed_csr.hpp"
#include "threads/pool.hpp"

namespace mercer {

// Whether every box has zero at one end, no variable has an epsilon, and all are curved (d > 0, no bound) or none is.
inline bool one_sided(const DcdProblem& problem, std::int64_t n) {
    const bool curved = n > 0 && problem.d[0] > 0.0;
    for (std::int64_t i = 0; i < n; ++i) {
        const double bound = std::max(problem.upper[i], -problem.lower[i]);
        if (std::min(problem.upper[i], -problem.lower[i]) != 0.0 || problem.epsilon[i] != 0.0) return false;
        if (curved ? !(problem.d[i] > 0.0 && bound > std::numeric_limits<double>::max()) : problem.d[i] != 0.0) {
            return false;
        }
    }
    return n > 0;
}

// `Below(seed, end)` draws an integer below `end`.
template <bool curved, class Below>
class PackedDescent {
public:
    PackedDescent(const PackedCsr& packed, std::int64_t n, std::int64_t d, const DcdProblem& problem,
                  const DcdStop& stop, std::uint64_t* seed, Below below, const LinearThreads& threads)
        : problem_(problem),
          stop_(stop),
          seed_(seed),
          below_(below),
          threads_(threads),
          n_(n),
          d_(d),
          weights_(problem.w, problem.w + d),
          b_(*problem.b),
          value_(problem.value) {
        weights_.push_back(0.0);  // where padding goes
        samples_.reserve(static_cast<std::size_t>(n));
        for (std::int64_t i = 0; i < n; ++i) {
            const bool positive = problem.upper[i] > 0.0;
            const double sign = positive ? 1.0 : -1.0;
            samples_.push_back({sign * problem.p[i], positive ? problem.upper[i] : -problem.lower[i], problem.d[i], 0.0,
                                sign * problem.beta[i], packed.row(i), packed.size(i),
                                static_cast<std::int32_t>(sign)});
            sum_ += problem.beta[i];
        }
        double all = 0.0;
        for (std::int64_t i = 0; i < n; ++i) {
            const double curvature = problem.lengths[i] + problem.d[i];
            all += curvature > 0.0 ? 1.0 / curvature : 0.0;
        }
        soft_ = all > 0.0 ? 1.0 / (kSoft * all) : 1.0;
        held_ = problem.hold && soft_ < kWorthwhile * problem.bias * problem.bias;
        if (!held_) b_ = problem.bias * problem.bias * sum_;
        stiffness_ = 1.0 / (problem.bias * problem.bias) + kLeast / soft_;
        curvatures();
        order_.resize(samples_.size());
        std::iota(order_.begin(), order_.end(), 0);
        active_ = order_.size();
        offends_.resize(order_.size());
    }

    DcdResult run(std::int64_t elements_per_poll) {
        const auto begun = Poll::Clock::now();
        const auto late = [&] {
            return std::chrono::duration<double>(Poll::Clock::now() - begun).count() > stop_.max_seconds;
        };
        DescentStop stop(stop_, n_);
        while (true) {
            if (visits_ >= stop_.max_epochs * n_) return finish("max_epochs");
            if (!pass(elements_per_poll, late)) return finish("max_seconds");
            const double unsettled = held_ ? unsettled_gap() : 0.0;
            const bool near = !held_ || std::abs(slope_of_b()) <= stop_.tol * stiffness_;
            bool idle = false;
            if (near &&
                stop.worth_a_look(worst_, gap_ + unsettled, value(), static_cast<std::int64_t>(active_), visits_)) {
                Truth truth = look();
                truth.gap += unsettled;
                idle = !stop.met(truth, value()) && stop.idle(truth, value(), visits_);
                if (stop.met(truth, value()) || (idle && !held_)) {
                    worst_ = truth.violation, gap_ = truth.gap;
                    return finish("converged");
                }
                active_ = wake(&order_, active_, offends_);
            }
            if (held_ && (idle || !move_bias(unsettled))) {
                b_ = best_b_;
                if (problem_.bias > std::numeric_limits<double>::max()) return finish("unsettled");
                held_ = false;
                b_ = problem_.bias * problem_.bias * sum_;
                curvatures();
            }
        }
    }

private:
    // All that a visit needs to know of a row besides its blocks, in one cache line.
    struct alignas(64) Sample {
        double target, upper, d, inverse, a;
        const CsrBlock* row;
        std::int32_t blocks, sign;
    };

    // Rows are dropped when they resist this part of what others still gave way to; looks bring back what should not have been.
    static constexpr double kResist = 0.3;
    // The part of the free variables' curvature that is supposed to answer a move of b, at first and at least.
    static constexpr double kAnswer = 0.3, kLeastAnswer = 0.03;
    // A first step of b at most, where outputs are to be 1 or -1, and what no step need be shorter than to go on.
    static constexpr double kReach = 1.0, kRestart = 0.05;
    // Visits of each row in which the gap must halve while b is held and causes most of it; four times as many if it does not.
    static constexpr int kPatience = 3;
    // A feature of the bias that is not much larger than the one it would have to give way as is no trouble.
    static constexpr double kWorthwhile = 0.1;
    // While b is held it still gives way a little, as the weight of a feature whose square is the inverse of this part of the sum
    // of 1/q over all rows; and phi'' is taken for no less than this part of that.
    static constexpr double kSoft = 0.1, kLeast = 0.2;

    double coupling() const { return held_ ? soft_ : problem_.bias * problem_.bias; }

    void curvatures() {
        for (std::int64_t i = 0; i < n_; ++i) {
            Sample& sample = samples_[static_cast<std::size_t>(i)];
            const double curvature = problem_.lengths[i] + coupling() + sample.d;
            sample.inverse = curvature > 0.0 ? 1.0 / curvature : 0.0;
        }
    }

    // Of the dual; where the bias is free it is one only as far as the sum of beta is zero.
    double value() const {
        const double own = problem_.bias <= std::numeric_limits<double>::max() ? problem_.bias * sum_ : 0.0;
        return value_ - 0.5 * own * own;
    }

    // phi'(b), for a bias that is held.
    double slope_of_b() const { return b_ / (problem_.bias * problem_.bias) - sum_; }

    // What b and the sum of beta disagree about, as a part of the duality gap.
    double unsettled_gap() const {
        const double slope = slope_of_b();
        const bool free = problem_.bias > std::numeric_limits<double>::max();
        return 0.5 * slope * slope * (free ? 1.0 / stiffness_ : problem_.bias * problem_.bias);
    }

    // A Newton step on phi; false where b has not settled for too long.
    bool move_bias(double unsettled) {
        const double slope = slope_of_b(), own = 1.0 / (problem_.bias * problem_.bias);
        if (passes_ > 0 && b_ != last_b_ && freedom_ > 0.0) {
            const double seen = (slope - last_slope_ - own * (b_ - last_b_)) / (b_ - last_b_) / freedom_;
            answer_ = std::sqrt(answer_ * std::clamp(seen, kLeastAnswer, 1.0));
        }
        const double whole = gap_ + unsettled;
        if (whole < best_gap_) best_gap_ = whole, best_b_ = b_;
        if (!(whole > 0.5 * mark_)) mark_ = whole, marked_ = visits_;
        last_b_ = b_, last_slope_ = slope;
        ++passes_;
        stiffness_ = own + std::max(answer_ * freedom_, kLeast / soft_);
        const std::int64_t patience = unsettled > 0.5 * whole ? kPatience : 4 * kPatience;
        if (visits_ - marked_ > patience * n_ || !std::isfinite(whole)) return false;
        // Where all free variables have gone to bounds a step would be far too long: each may be twice the last one, or half of
        // it the other way.
        const double step = -slope / stiffness_;
        const double reach = last_step_ == 0.0         ? kReach
                             : step * last_step_ < 0.0 ? 0.5 * std::abs(last_step_)
                                                       : std::max(2.0 * std::abs(last_step_), kRestart);
        last_step_ = std::clamp(step, -reach, reach);
        b_ += last_step_;
        // Rows were left out by this margin at least when b was there; beyond it they all come back.
        const double margin = std::min(resists_away_, resists_towards_);
        if (active_ == order_.size()) b_then_ = b_, margin_ = margin;
        margin_ = std::min(margin_, margin);
        if (std::abs(b_ - b_then_) > margin_) {
            active_ = order_.size();
            b_then_ = b_, margin_ = margin;
        }
        return true;
    }

    static void fetch(const void* at, std::int64_t bytes) {
#if defined(__GNUC__)
        for (std::int64_t b = 0; b < bytes; b += 64) __builtin_prefetch(static_cast<const char*>(at) + b);
#else
        (void)at, (void)bytes;
#endif
    }

    // False where the time is over.
    template <class Late>
    bool pass(std::int64_t elements_per_poll, Late late) {
        // Members would be written to memory at every step: a store to a weight might mean them.
        Sample* const samples = samples_.data();
        std::int32_t* const order = order_.data();
        double* const w = weights_.data();
        const double coupling = this->coupling(), resists_away = resists_away_, resists_towards = resists_towards_;
        std::uint64_t seed = *seed_;
        std::size_t active = active_;
        std::int64_t visits = 0, since_poll = 0;
        double b = b_, sum = sum_, value = value_, gap = 0.0, freedom = 0.0, worst_away = 0.0, worst_towards = 0.0;
        bool in_time = true;
        for (std::size_t s = 0; s < active; ++s) {
            // Fisher and Yates, some places ahead of the descent, so that the rows can be on their way.
            constexpr std::size_t kFar = 8, kNear = 3;
            for (std::size_t t = s == 0 ? 0 : s + kFar; t <= s + kFar && t < active; ++t) {
                std::swap(order[t],
                          order[t + static_cast<std::size_t>(below_(&seed, static_cast<std::int64_t>(active - t)))]);
                fetch(&samples[order[t]], 64);
            }
            if (s + kNear < active) {
                const Sample& next = samples[order[s + kNear]];
                fetch(next.row, std::min<std::int32_t>(next.blocks, 16) * static_cast<std::int64_t>(sizeof(CsrBlock)));
            }
            Sample& sample = samples[order[s]];
            const double a = sample.a, sign = sample.sign;
            // r = target - sign f; the objective's derivative at a is d a - r.
            const double r = sample.target - sign * (block_dot(sample.row, sample.blocks, w) + b);
            const double slope = sample.d * a - r;
            ++visits;
            since_poll += 4 * sample.blocks + 8;
            const bool at_zero = a == 0.0, at_upper = !curved && a == sample.upper;
            if ((at_zero && slope > resists_away) || (at_upper && -slope > resists_towards)) {
                --active;
                std::swap(order[s], order[active]);
                --s;
                continue;
            }
            gap += share(sample, a, r);
            worst_away = std::max(worst_away, at_upper ? 0.0 : -slope);
            worst_towards = std::max(worst_towards, at_zero ? 0.0 : slope);
            // A row of zeros without ridge is linear in its variable, and its box finite.
            const double to = sample.inverse > 0.0 ? std::min(std::max(a - slope * sample.inverse, 0.0), sample.upper)
                                                   : (slope < 0.0   ? sample.upper
                                                      : slope > 0.0 ? 0.0
                                                                    : a);
            const double step = to - a;
            freedom += to > 0.0 && to < sample.upper ? sample.inverse : 0.0;
            if (step != 0.0) {
                sample.a = to;
                // Without what b has to do with it.
                const double curvature = sample.inverse > 0.0 ? 1.0 / sample.inverse - coupling : 0.0;
                value -= step * (slope - sign * b + 0.5 * curvature * step);
                block_add(sample.row, sample.blocks, step * sign, w);
                sum += step * sign;
                b += step * sign * coupling;
            }
            if (since_poll > elements_per_poll) {
                since_poll = 0;
                threads_.poll.check();
                if (late()) {
                    in_time = false;
                    break;
                }
            }
        }
        *seed_ = seed;
        active_ = active;
        visits_ += visits;
        b_ = b, sum_ = sum, value_ = value, gap_ = gap, freedom_ = freedom;
        worst_ = std::max(worst_away, worst_towards);
        if (stop_.shrinking) {
            resists_away_ = worst_towards > 0.0 ? kResist * worst_towards : std::numeric_limits<double>::infinity();
            resists_towards_ = worst_away > 0.0 ? kResist * worst_away : std::numeric_limits<double>::infinity();
        }
        return in_time;
    }

    static double share(const Sample& sample, double a, double r) {
        const double beyond = std::max(r, 0.0);
        if constexpr (curved) return 0.5 * beyond * beyond / sample.d - a * (r - 0.5 * sample.d * a);
        return sample.upper * beyond - a * r;
    }

    // All rows at the weights as they are now, and which of them would move.
    Truth look() {
        constexpr std::int64_t kRows = 2048;
        std::vector<Truth> parts(static_cast<std::size_t>((n_ + kRows - 1) / kRows));
        parallel_for(
            static_cast<std::int64_t>(parts.size()), threads_.n_threads,
            [&](std::int64_t c) {
                Truth sum{};
                for (std::int64_t i = c * kRows; i < std::min(n_, (c + 1) * kRows); ++i) {
                    const Sample& sample = samples_[static_cast<std::size_t>(i)];
                    const double r =
                        sample.target - sample.sign * (block_dot(sample.row, sample.blocks, weights_.data()) + b_);
                    const double slope = sample.d * sample.a - r;
                    sum.gap += share(sample, sample.a, r);
                    const bool up = curved || sample.a < sample.upper;
                    const double violation = std::max({0.0, up ? -slope : 0.0, sample.a > 0.0 ? slope : 0.0});
                    sum.violation = std::max(sum.violation, violation);
                    offends_[static_cast<std::size_t>(i)] = violation > 0.0;
                }
                parts[static_cast<std::size_t>(c)] = sum;
            },
            threads_.poll);
        Truth all{};
        for (const Truth& part : parts) {
            all.gap += part.gap;
            all.violation = std::max(all.violation, part.violation);
        }
        return all;
    }

    DcdResult finish(const char* reason) {
        *problem_.b = b_;
        std::copy_n(weights_.data(), d_, problem_.w);
        for (std::int64_t i = 0; i < n_; ++i) {
            const Sample& sample = samples_[static_cast<std::size_t>(i)];
            problem_.beta[i] = sample.a * sample.sign;
        }
        return {(visits_ + n_ - 1) / n_, worst_, gap_, reason};
    }

    const DcdProblem& problem_;
    const DcdStop& stop_;
    std::uint64_t* const seed_;
    const Below below_;
    const LinearThreads& threads_;
    const std::int64_t n_, d_;
    bool held_ = false;  // whether b is held during a pass, or the weight of a feature
    std::vector<double> weights_;
    std::vector<Sample> samples_;
    std::vector<std::int32_t> order_;
    std::size_t active_ = 0;
    std::vector<std::uint8_t> offends_;
    double resists_away_ = std::numeric_limits<double>::infinity(), resists_towards_ = resists_away_;
    double b_, value_, sum_ = 0.0, worst_ = 0.0, gap_ = 0.0;
    std::int64_t visits_ = 0;
    // Of the bias: sum 1/q over the free variables, the part of it that answers, phi'' as it is supposed to be.
    double soft_ = 0.0, freedom_ = 0.0, answer_ = kAnswer, stiffness_ = 0.0;
    double last_b_ = 0.0, last_slope_ = 0.0, last_step_ = 0.0, mark_ = std::numeric_limits<double>::infinity();
    double best_gap_ = mark_, best_b_ = 0.0;
    std::int64_t marked_ = 0;
    double b_then_ = 0.0, margin_ = std::numeric_limits<double>::infinity();
    int passes_ = 0;
};

}  // namespace mercer
