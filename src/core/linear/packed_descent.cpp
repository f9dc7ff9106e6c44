// Passes over the active rows in random order; after each, a full check where one is due, and a step of the bias.
#include "linear/packed_descent.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "algebra/infinity.hpp"
#include "algebra/rounding.hpp"
#include "linear/descent_stop.hpp"
#include "linear/random_order.hpp"
#include "linear/row_access.hpp"
#include "threads/pool.hpp"

namespace mercer {
namespace {

// To re-tune any of these, count passes to gaps of 1e-2 and 1e-4 on the sparse sets of benchmarks/compare_linear.py
// (a9a, w8a, reuters, rtpolarity), and problems that stay open: of 236 random sparse ones 21 after 2000 passes, and 31
// before b could become a weight again.

// Shrink a bounded row once its gradient points outward by this fraction of the largest gradient that points inward.
// Full checks bring mistakes back, so it may be below 1.
constexpr double kShrinkMargin = 0.3;

// The fraction of sum 1/q over the free variables by which sum(beta) responds to a move of b: the first guess, and the
// least that is believed.
constexpr double kFirstResponse = 0.3, kLeastResponse = 0.03;

// The longest first step of b, and a length that later steps may always have unless they turn back, on the scale of the
// targets 1 and -1.
constexpr double kFirstReach = 1.0, kLeastReach = 0.05;

// Visits per row within which the gap must halve for b to stay held: the first where b causes most of the gap, the
// second where the rows do.
constexpr std::int64_t kPatience = 3, kPatienceWithRows = 12;

// While b is held it still follows the steps a little, by a coupling in place of B^2 that is the inverse of this
// fraction of sum 1/q over all rows. phi'' is taken to be at least kLeastCurvature over that coupling.
constexpr double kHeldCoupling = 0.1, kLeastCurvature = 0.2;

// Hold b only where that coupling is below this fraction of B^2: otherwise B^2 is no trouble.
constexpr double kWorthHolding = 0.1;

// Places ahead of the descent at which a row is drawn and its Sample prefetched, and at which its entries are.
constexpr std::size_t kDrawAhead = 8, kFetchAhead = 3;
// Blocks of a row that are prefetched at most.
constexpr std::int32_t kPrefetchedBlocks = 16;

// Rows per chunk of a full check.
constexpr std::int64_t kRowsPerChunk = 2048;

template <bool curved>
class PackedDescent {
public:
    PackedDescent(const PackedCsr& packed, std::int64_t n, std::int64_t d, const DcdProblem& problem,
                  const DcdStop& stop, std::uint64_t* seed, const Threads& threads)
        : problem_(problem),
          stop_(stop),
          seed_(seed),
          threads_(threads),
          n_(n),
          d_(d),
          weights_(problem.w, problem.w + d),
          b_(*problem.b),
          value_(problem.value) {
        weights_.push_back(0.0);  // where padding goes
        samples_.reserve(static_cast<std::size_t>(n));
        double weights = 1.0 / (problem.bias * problem.bias), moment = 0.0;
        bool is_cold = b_ == 0.0;
        for (std::int64_t i = 0; i < n; ++i) {
            const bool positive = problem.upper[i] > 0.0;
            const double sign = positive ? 1.0 : -1.0;
            samples_.push_back({sign * problem.p[i], positive ? problem.upper[i] : -problem.lower[i], problem.d[i], 0.0,
                                sign * problem.beta[i], packed.row(i), packed.size(i),
                                static_cast<std::int32_t>(sign), 0});
            sum_ += problem.beta[i];
            const double weight = curved ? 1.0 / problem.d[i] : samples_.back().upper;
            weights += weight, moment += weight * problem.p[i];
            is_cold = is_cold && problem.beta[i] == 0.0;
            if (i > 0 && are_twins(i - 1)) {
                samples_[static_cast<std::size_t>(i - 1)].twin = static_cast<std::int32_t>(i);
            }
        }
        double inverses = 0.0;
        for (std::int64_t i = 0; i < n; ++i) {
            const double curvature = problem.lengths[i] + problem.d[i];
            inverses += curvature > 0.0 ? 1.0 / curvature : 0.0;
        }
        held_coupling_ = inverses > 0.0 ? 1.0 / (kHeldCoupling * inverses) : 1.0;
        held_ = problem.hold && held_coupling_ < kWorthHolding * problem.bias * problem.bias;
        // The best b at w = 0 for squared residuals. (On reuters, 7 % of whose labels are 1, this saves half a pass.)
        const double constant = moment / weights;
        if (is_cold && std::isfinite(constant)) b_ = constant;
        if (!held_) b_ = problem.bias * problem.bias * sum_;
        curvature_of_b_ = 1.0 / (problem.bias * problem.bias) + kLeastCurvature / held_coupling_;
        set_inverses();
        order_.reserve(samples_.size());
        for (std::int32_t i = 0; i < static_cast<std::int32_t>(n); ++i) {
            order_.push_back(i);
            if (samples_[static_cast<std::size_t>(i)].twin > 0) ++i;
        }
        active_ = order_.size();
        violates_.resize(samples_.size());
    }

    DcdResult run() {
        DescentStop stop(stop_, n_);
        while (true) {
            if (stop.exhausted(visits_)) return finish(StopReason::max_epochs);
            // Where only b is left to move, the rows must follow it; besides, limits are counted in visits.
            if (active_ == 0) active_ = order_.size();
            if (!pass()) return finish(StopReason::max_seconds);
            const double of_bias = held_ ? gap_of_bias() : 0.0;
            const bool near = !held_ || std::abs(slope_of_b()) <= stop_.tol * curvature_of_b_;
            bool stalled = false;
            if (near &&
                stop.should_check(worst_, gap_ + of_bias, value(), static_cast<std::int64_t>(active_), visits_)) {
                FullCheck all = check_all();
                all.gap += of_bias;
                const bool met = stop.met(all, value());
                stalled = !met && stop.stalled(all, value(), visits_);
                if (met || (stalled && !held_)) {
                    worst_ = all.violation, gap_ = all.gap;
                    return finish(StopReason::converged);
                }
                active_ = reactivate(&order_, active_, violates_);
            }
            if (held_ && (stalled || !move_bias(of_bias))) {
                b_ = best_b_;
                if (is_free()) return finish(StopReason::unsettled);
                held_ = false;
                b_ = problem_.bias * problem_.bias * sum_;
                set_inverses();
            }
        }
    }

private:
    // All that a visit needs to know of a row besides its blocks, in one cache line.
    struct alignas(64) Sample {
        double target, upper, d, inverse, a;
        const CsrBlock* row;
        std::int32_t blocks, sign;
        std::int32_t twin;  // index of the sample that is visited together with this one; 0 for none
    };

    // Whether samples i and i + 1 are equal but for their labels, and i is not a twin itself. Merged samples are in an
    // order by hashes, so that equal rows are neighbours.
    bool are_twins(std::int64_t i) const {
        const Sample &one = samples_[static_cast<std::size_t>(i)], &other = samples_[static_cast<std::size_t>(i + 1)];
        return problem_.lengths[i] == problem_.lengths[i + 1] && one.sign != other.sign && one.blocks == other.blocks &&
               one.target + other.target > 0.0 && (curved || one.upper + other.upper < kInfinity) &&
               (i == 0 || samples_[static_cast<std::size_t>(i - 1)].twin == 0) &&
               std::equal(one.row, one.row + one.blocks, other.row);
    }

    // The best values of a sample and of its twin, which share the output f.
    struct Pair {
        double first, second;
    };

    // At the best f each variable is clamp((target - sign f) / d, 0, upper). So with q = ||x||^2 + coupling, f is the
    // root of f - q (up - down) - rest, which increases with f and is piecewise linear.
    Pair best_pair(const Sample& first, const Sample& second, double f, double q) const {
        const bool in_order = first.sign > 0;
        const Sample &positive = in_order ? first : second, &negative = in_order ? second : first;
        const double low = -negative.target, high = positive.target, rest = f - q * (positive.a - negative.a);
        double up, down;
        if constexpr (curved) {
            const double of_up = q / positive.d, of_down = q / negative.d;
            double best = (rest + of_up * high + of_down * low) / (1.0 + of_up + of_down);
            if (best > high) best = (rest + of_down * low) / (1.0 + of_down);
            if (best < low) best = (rest + of_up * high) / (1.0 + of_up);
            up = std::max(high - best, 0.0) / positive.d, down = std::max(best - low, 0.0) / negative.d;
        } else {
            // Both are at their upper bounds where f is between low and high. Otherwise one falls until f is back at
            // low or high, or until it is zero.
            up = positive.upper, down = negative.upper;
            const double best = rest + q * (up - down);
            if (best < low) down = std::max(0.0, up - (low - rest) / q);
            if (best > high) up = std::max(0.0, down + (high - rest) / q);
        }
        return in_order ? Pair{up, down} : Pair{down, up};
    }

    bool is_free() const { return problem_.bias > std::numeric_limits<double>::max(); }
    double coupling() const { return held_ ? held_coupling_ : problem_.bias * problem_.bias; }

    void set_inverses() {
        for (std::int64_t i = 0; i < n_; ++i) {
            Sample& sample = samples_[static_cast<std::size_t>(i)];
            const double curvature = problem_.lengths[i] + coupling() + sample.d;
            sample.inverse = curvature > 0.0 ? 1.0 / curvature : 0.0;
        }
    }

    // Dual value. With a free bias it is a lower bound on the optimum only as far as the sum of beta is zero.
    double value() const {
        const double of_bias = is_free() ? 0.0 : problem_.bias * sum_;
        return value_ - 0.5 * of_bias * of_bias;
    }

    // phi'(b), for a bias that is held.
    double slope_of_b() const { return b_ / (problem_.bias * problem_.bias) - sum_; }

    // The part of the duality gap that is due to b and B^2 sum(beta) being different.
    double gap_of_bias() const {
        const double slope = slope_of_b();
        return 0.5 * slope * slope * (is_free() ? 1.0 / curvature_of_b_ : problem_.bias * problem_.bias);
    }

    // A Newton step on phi; false where b has not settled for too long.
    bool move_bias(double of_bias) {
        const double slope = slope_of_b(), own = 1.0 / (problem_.bias * problem_.bias);
        if (passes_ > 0 && b_ != last_b_ && free_inverses_ > 0.0) {
            const double seen = (slope - last_slope_ - own * (b_ - last_b_)) / (b_ - last_b_) / free_inverses_;
            response_ = std::sqrt(response_ * std::clamp(seen, kLeastResponse, 1.0));
        }
        const double gap = gap_ + of_bias;
        if (gap < best_gap_) best_gap_ = gap, best_b_ = b_;
        if (!(gap > 0.5 * halved_gap_)) halved_gap_ = gap, halved_at_ = visits_;
        last_b_ = b_, last_slope_ = slope;
        ++passes_;
        curvature_of_b_ = own + std::max(response_ * free_inverses_, kLeastCurvature / held_coupling_);
        const std::int64_t patience = of_bias > 0.5 * gap ? kPatience : kPatienceWithRows;
        if (visits_ - halved_at_ > patience * n_ || !std::isfinite(gap)) return false;
        // Where all free variables have gone to bounds phi'' is far too small. So a step is at most twice as long as
        // the last one, or half as long where it turns back.
        const double step = -slope / curvature_of_b_, last = std::abs(last_step_);
        const bool turns = step * last_step_ < 0.0;
        const double reach = last == 0.0 ? kFirstReach : turns ? 0.5 * last : std::max(2.0 * last, kLeastReach);
        last_step_ = std::clamp(step, -reach, reach);
        b_ += last_step_;
        return true;
    }

    // Visits the active rows once; false where the time is over.
    bool pass() {
        // Local copies: the compiler must assume that a store to a weight changes a member.
        Sample* const samples = samples_.data();
        std::int32_t* const order = order_.data();
        double* const w = weights_.data();
        const double coupling = this->coupling(), shrink_at_zero = shrink_at_zero_, shrink_at_upper = shrink_at_upper_;
        std::uint64_t seed = *seed_;
        std::size_t active = active_;
        std::int64_t visits = 0, since_poll = 0;
        double b = b_, sum = sum_, value = value_, gap = 0.0, free_inverses = 0.0;
        double worst_up = 0.0, worst_down = 0.0;
        bool in_time = true;
        const auto look = [&](const Sample& sample, double r) {
            const double slope = sample.d * sample.a - r;
            gap += gap_share(sample, sample.a, r);
            worst_up = std::max(worst_up, !curved && sample.a == sample.upper ? 0.0 : -slope);
            worst_down = std::max(worst_down, sample.a == 0.0 ? 0.0 : slope);
        };
        const auto move = [&](Sample& sample, double to, double slope) {
            const double sign = sample.sign, step = to - sample.a;
            free_inverses += to > 0.0 && to < sample.upper ? sample.inverse : 0.0;
            if (step == 0.0) return;
            sample.a = to;
            // The value without the term of b, whose gradient and curvature are taken off here.
            const double curvature = sample.inverse > 0.0 ? 1.0 / sample.inverse - coupling : 0.0;
            value -= step * (slope - sign * b + 0.5 * curvature * step);
            block_add(sample.row, sample.blocks, step * sign, w);
            sum += step * sign;
            b += step * sign * coupling;
        };
        for (std::size_t s = 0; s < active; ++s) {
            // Fisher and Yates, ahead of the descent, so that rows are in the cache when their turn comes.
            for (std::size_t t = s == 0 ? 0 : s + kDrawAhead; t <= s + kDrawAhead && t < active; ++t) {
                const std::int64_t offset = random_below(&seed, static_cast<std::int64_t>(active - t));
                std::swap(order[t], order[t + static_cast<std::size_t>(offset)]);
                prefetch(&samples[order[t]], sizeof(Sample));
            }
            if (s + kFetchAhead < active) {
                const Sample& next = samples[order[s + kFetchAhead]];
                prefetch(next.row, std::min(next.blocks, kPrefetchedBlocks) * std::int64_t{sizeof(CsrBlock)});
            }
            Sample& sample = samples[order[s]];
            const double a = sample.a, sign = sample.sign;
            // r = target - sign f; the objective's derivative at a is d a - r.
            const double r = sample.target - sign * (block_dot(sample.row, sample.blocks, w) + b);
            const double slope = sample.d * a - r;
            ++visits;
            since_poll += 4 * sample.blocks + 8;
            const bool at_zero = a == 0.0, at_upper = !curved && a == sample.upper;
            if (sample.twin == 0 && ((at_zero && slope > shrink_at_zero) || (at_upper && -slope > shrink_at_upper))) {
                --active;
                std::swap(order[s], order[active]);
                --s;
                continue;
            }
            look(sample, r);
            if (sample.twin > 0) {
                Sample& twin = samples[sample.twin];
                const double f = sign * (sample.target - r), q = problem_.lengths[order[s]] + coupling;
                look(twin, twin.target + sign * f);
                const Pair to = best_pair(sample, twin, f, q);
                const double f_then = f + sign * q * (to.first - a);
                move(sample, to.first, slope);
                move(twin, to.second, twin.d * twin.a - (twin.target + sign * f_then));
                ++visits;
            } else {
                // A row of zeros without ridge is linear in its variable, and its box finite.
                const double to = sample.inverse > 0.0
                                      ? std::min(std::max(a - slope * sample.inverse, 0.0), sample.upper)
                                      : (slope < 0.0   ? sample.upper
                                         : slope > 0.0 ? 0.0
                                                       : a);
                move(sample, to, slope);
            }
            if (since_poll > kElementsPerPoll) {
                since_poll = 0;
                threads_.poll.check();
                if (watch_.seconds() > stop_.max_seconds) {
                    in_time = false;
                    break;
                }
            }
        }
        *seed_ = seed;
        active_ = active;
        visits_ += visits;
        b_ = b, sum_ = sum, value_ = value, gap_ = gap, free_inverses_ = free_inverses;
        worst_ = std::max(worst_up, worst_down);
        if (stop_.shrinking) {
            shrink_at_zero_ = worst_down > 0.0 ? kShrinkMargin * worst_down : kInfinity;
            shrink_at_upper_ = worst_up > 0.0 ? kShrinkMargin * worst_up : kInfinity;
        }
        return in_time;
    }

    static double gap_share(const Sample& sample, double a, double r) {
        const double beyond = std::max(r, 0.0);
        if constexpr (curved) return 0.5 * beyond * beyond / sample.d - a * (r - 0.5 * sample.d * a);
        return sample.upper * beyond - a * r;
    }

    // Violation and gap over all rows at the present point.
    FullCheck check_all() {
        std::vector<FullCheck> parts(static_cast<std::size_t>(ceil_div(n_, kRowsPerChunk)));
        parallel_for(
            static_cast<std::int64_t>(parts.size()), threads_.count,
            [&](std::int64_t c) {
                FullCheck sum{};
                for (std::int64_t i = c * kRowsPerChunk; i < std::min(n_, (c + 1) * kRowsPerChunk); ++i) {
                    const Sample& sample = samples_[static_cast<std::size_t>(i)];
                    const double f = block_dot(sample.row, sample.blocks, weights_.data()) + b_;
                    const double r = sample.target - sample.sign * f, slope = sample.d * sample.a - r;
                    sum.gap += gap_share(sample, sample.a, r);
                    const bool up = curved || sample.a < sample.upper;
                    const double violation = std::max({0.0, up ? -slope : 0.0, sample.a > 0.0 ? slope : 0.0});
                    sum.violation = std::max(sum.violation, violation);
                    violates_[static_cast<std::size_t>(i)] = violation > 0.0;
                }
                parts[static_cast<std::size_t>(c)] = sum;
            },
            threads_.poll);
        FullCheck all{};
        for (const FullCheck& part : parts) {
            all.gap += part.gap;
            all.violation = std::max(all.violation, part.violation);
        }
        return all;
    }

    DcdResult finish(StopReason reason) {
        *problem_.b = b_;
        std::copy_n(weights_.data(), d_, problem_.w);
        for (std::int64_t i = 0; i < n_; ++i) {
            const Sample& sample = samples_[static_cast<std::size_t>(i)];
            problem_.beta[i] = sample.a * sample.sign;
        }
        return {ceil_div(visits_, n_), worst_, gap_, reason};
    }

    const DcdProblem& problem_;
    const DcdStop& stop_;
    std::uint64_t* const seed_;
    const Threads& threads_;
    const Stopwatch watch_;
    const std::int64_t n_, d_;
    std::vector<double> weights_;  // w, and a place for what padding adds
    std::vector<Sample> samples_;
    std::vector<std::int32_t> order_;  // the active rows come first
    std::size_t active_ = 0;
    std::vector<std::uint8_t> violates_;
    double shrink_at_zero_ = kInfinity, shrink_at_upper_ = kInfinity;  // outward gradients from which a row is shrunk
    double b_, value_, sum_ = 0.0, worst_ = 0.0, gap_ = 0.0;
    std::int64_t visits_ = 0;

    bool held_ = false;           // whether b is held during a pass, or the weight of a feature
    double held_coupling_ = 0.0;  // in place of B^2 while it is
    double free_inverses_ = 0.0;  // sum 1/q over the free variables of the last pass
    double response_ = kFirstResponse, curvature_of_b_ = 0.0;
    double last_b_ = 0.0, last_slope_ = 0.0, last_step_ = 0.0;
    int passes_ = 0;
    double best_gap_ = kInfinity, best_b_ = 0.0;
    double halved_gap_ = kInfinity;  // and when it was, in visits
    std::int64_t halved_at_ = 0;
};

}  // namespace

bool one_sided(const DcdProblem& problem, std::int64_t n) {
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

DcdResult packed_descent(const PackedCsr& packed, std::int64_t n, std::int64_t d, const DcdProblem& problem,
                         const DcdStop& stop, std::uint64_t* seed, const Threads& threads) {
    if (problem.d[0] > 0.0) return PackedDescent<true>(packed, n, d, problem, stop, seed, threads).run();
    return PackedDescent<false>(packed, n, d, problem, stop, seed, threads).run();
}

}  // namespace mercer
