// Rounds over the samples that violate most. Each visit solves its sample's part exactly and updates all gradients.
#include "solve/joint_ascent.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "algebra/infinity.hpp"
#include "algebra/rounding.hpp"
#include "simd/level_entries.hpp"
#include "simd/padded.hpp"
#include "solve/steps.hpp"

namespace mercer {
namespace {

// A diagonal element below this fraction of the largest is rounding error: the dual is linear in that sample.
constexpr double kSingularDiagonal = 1e-12;

// Samples per round, the worst first; then all violations are computed again.
constexpr std::int64_t kRound = 32;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

template <class T>
class Joint {
public:
    Joint(const JointProblem<T>& problem, const JointStop& stop, const Level& level, Poll& poll)
        : in_(problem),
          stop_(stop),
          pass_(joint_passes_of<T>(level)),
          poll_(poll),
          q_(problem.q),
          m_(problem.classes),
          stride_(round_up(q_, kPad) + kPad),  // with a power of two, rows would share cache sets
          beta_(problem.beta, problem.beta + q_ * m_),
          h_(stride_ * m_, T{0}),
          up_(stride_ * m_, -std::numeric_limits<T>::infinity()),
          low_(stride_ * m_, std::numeric_limits<T>::infinity()),
          top_(stride_),
          bottom_(stride_),
          curvature_(at(q_)),
          violation_(at(q_)),
          v_(at(m_)),
          a_(at(m_)),
          old_(at(m_)),
          to_(at(m_)),
          factor_(at(m_)) {
        double largest = 0.0;
        for (std::int64_t i = 0; i < q_; ++i) {
            curvature_[at(i)] = static_cast<double>(row(i)[i]) + in_.shift;
            largest = std::max(largest, std::abs(curvature_[at(i)]));
        }
        for (std::int64_t i = 0; i < q_; ++i) {
            double& eta = curvature_[at(i)];
            // Small enough that a gradient of 1e-6 reaches the bound in one step.
            if (!(eta > kSingularDiagonal * largest)) eta = std::max(kSingularDiagonal * largest, 1e-6 / in_.bound[i]);
        }
        for (std::int64_t i = 0; i < q_; ++i) {
            load(i);
            mark(i);
        }
    }

    JointResult run() {
        const StopReason reason = finite_start() ? loop() : StopReason::nonfinite;
        // No NaN is ever the largest, so a gradient full of them would look converged.
        if (reason == StopReason::nonfinite || !finite_gradient()) return {steps_, std::nan(""), StopReason::nonfinite};
        std::copy(beta_.begin(), beta_.end(), in_.beta);
        return {steps_, worst_, reason};
    }

private:
    const JointProblem<T>& in_;
    const JointStop& stop_;
    const JointPasses<T>& pass_;
    Poll& poll_;
    const std::int64_t q_, m_, stride_;
    std::vector<double> beta_;
    Padded<T> h_, up_, low_;  // class by class
    Padded<T> top_, bottom_;
    std::vector<double> curvature_, violation_;
    std::vector<double> v_, a_, old_;
    std::vector<T*> to_;
    std::vector<T> factor_;
    std::vector<std::int64_t> order_;
    std::int64_t steps_ = 0;
    double worst_ = 0.0;
    const Stopwatch watch_;

    const T* row(std::int64_t i) const { return in_.kernel + i * in_.stride; }
    double* beta(std::int64_t i) { return beta_.data() + i * m_; }

    // Only differences within a sample matter, and at the end the small ones. float32 resolves these best if the
    // sample's largest excess is subtracted first, or with separate bounds the label's.
    void load(std::int64_t i) {
        const double* excess = in_.excess + i * m_;
        const double shift = in_.shared ? *std::max_element(excess, excess + m_) : excess[in_.label[i]];
        for (std::int64_t k = 0; k < m_; ++k) h_[k * stride_ + i] = static_cast<T>(excess[k] - shift);
    }

    // up is 0 where b_ik may fall, low where it may rise (the gradient of the dual is -h).
    void mark(std::int64_t i) {
        constexpr T inf = std::numeric_limits<T>::infinity();
        const double* b = beta(i);
        const std::int64_t y = in_.label[i];
        for (std::int64_t k = 0; k < m_; ++k) {
            T& up = up_[k * stride_ + i];
            T& low = low_[k * stride_ + i];
            if (in_.shared) {
                up = T{0};
                low = b[k] < (k == y ? in_.bound[i] : 0.0) ? T{0} : inf;
            } else {
                up = k != y && b[k] > -in_.bound[i] ? T{0} : -inf;
                low = k != y && b[k] < 0.0 ? T{0} : inf;
            }
        }
    }

    bool finite_start() const {
        const auto finite = [](double x) { return std::isfinite(x); };
        return std::all_of(in_.excess, in_.excess + q_ * m_, finite) &&
               std::all_of(in_.beta, in_.beta + q_ * m_, finite) &&
               std::all_of(curvature_.begin(), curvature_.end(), finite);
    }

    bool finite_gradient() const {
        return std::all_of(h_.data(), h_.data() + h_.size(), [](T x) { return std::isfinite(x); });
    }

    // Every sample's violation; false where a number is not finite.
    bool find_violations() {
        pass_.ends(h_.data(), up_.data(), low_.data(), stride_, m_, q_, top_.data(), bottom_.data());
        worst_ = 0.0;
        for (std::int64_t i = 0; i < q_; ++i) {
            const auto top = static_cast<double>(top_[i]), bottom = static_cast<double>(bottom_[i]);
            double violation = top - bottom;
            if (!in_.shared) {
                const auto own = static_cast<double>(h_[in_.label[i] * stride_ + i]);
                violation = std::max(top - own, own - bottom);
            }
            if (std::isnan(violation) || violation == kInfinity) return false;
            violation_[at(i)] = violation;
            worst_ = std::max(worst_, violation);
        }
        return true;
    }

    StopReason loop() {
        std::int64_t until_poll = 0;
        for (;;) {
            if (!find_violations()) return StopReason::nonfinite;
            if (!(worst_ > stop_.tol)) return StopReason::converged;
            order_.clear();
            const double floor = std::max(stop_.tol, 0.1 * worst_);
            for (std::int64_t i = 0; i < q_; ++i) {
                if (violation_[at(i)] > floor) order_.push_back(i);
            }
            const auto worse = [this](std::int64_t i, std::int64_t j) {
                return violation_[at(i)] > violation_[at(j)] || (violation_[at(i)] == violation_[at(j)] && i < j);
            };
            if (static_cast<std::int64_t>(order_.size()) > kRound) {
                std::nth_element(order_.begin(), order_.begin() + kRound, order_.end(), worse);
                order_.resize(at(kRound));
            }
            std::sort(order_.begin(), order_.end(), worse);
            bool moved = false;
            for (const std::int64_t i : order_) {
                if (steps_ >= stop_.max_steps) return StopReason::max_steps;
                const std::int64_t touched = step(i);
                moved = moved || touched > 0;
                until_poll -= (touched + 1) * q_;
                ++steps_;
            }
            if (!moved) return StopReason::stalled;
            if ((until_poll -= m_ * q_) < 0) {
                until_poll = kTouchedPerPoll;
                poll_.check();
                if (watch_.seconds() > stop_.max_seconds) {
                    if (!find_violations()) return StopReason::nonfinite;
                    return StopReason::max_seconds;
                }
            }
        }
    }

    // Solves sample i's part; the number of classes whose coefficient changed.
    std::int64_t step(std::int64_t i) {
        double* b = beta(i);
        const std::int64_t y = in_.label[i];
        const double eta = curvature_[at(i)], bound = in_.bound[i], sum = b[y];
        const auto own = static_cast<double>(h_[y * stride_ + i]);
        std::int64_t n = 0;
        for (std::int64_t k = 0; k < m_; ++k) {
            if (k == y) continue;
            v_[at(n)] = (static_cast<double>(h_[k * stride_ + i]) - own) / eta - b[k] + sum;
            ++n;
        }
        const double total = in_.shared ? best_shared(v_.data(), n, bound, a_.data())
                                        : best_separate(v_.data(), n, bound, sum, a_.data());
        std::copy(b, b + m_, old_.begin());
        n = 0;
        for (std::int64_t k = 0; k < m_; ++k) b[k] = k == y ? total : -a_[at(n++)];

        std::int64_t changed = 0;
        for (std::int64_t k = 0; k < m_; ++k) {
            const double change = b[k] - old_[at(k)];
            if (change == 0.0) continue;
            to_[at(changed)] = h_.data() + k * stride_;
            factor_[at(changed)] = static_cast<T>(change);
            ++changed;
        }
        if (changed == 0) return 0;
        mark(i);
        pass_.add(to_.data(), factor_.data(), changed, row(i), static_cast<T>(in_.shift), q_);
        return changed;
    }
};

}  // namespace

// With t = sum a the optimum is a_k = max(0, v_k - t), and t the root of sum_k max(0, v_k - t) - t. That function is
// convex and falls: Newton's steps from the left never pass the root, and end once no v_k leaves the sum.
double best_shared(const double* v, std::int64_t n, double bound, double* a) {
    double t = 0.0;
    for (;;) {
        double sum = 0.0;
        std::int64_t count = 0;
        for (std::int64_t k = 0; k < n; ++k) {
            const bool in = v[k] > t;
            sum += in ? v[k] : 0.0;
            count += in;
        }
        const double next = sum / static_cast<double>(count + 1);
        if (!(next > t)) break;
        t = next;
    }
    if (t >= bound) {
        // Now sum_k max(0, v_k - threshold) = bound, whose root lies at `bound` or to the right of it, and at most
        // `bound` below the largest v. Counted from there, no digits of the a_k are lost where v is far above bound.
        const double top = *std::max_element(v, v + n);
        double threshold = std::max(bound - top, -bound);
        for (;;) {
            double sum = 0.0;
            std::int64_t count = 0;
            for (std::int64_t k = 0; k < n; ++k) {
                const bool in = v[k] - top > threshold;
                sum += in ? v[k] - top : 0.0;
                count += in;
            }
            if (count == 0) break;
            const double next = (sum - bound) / static_cast<double>(count);
            if (!(next > threshold)) break;
            threshold = next;
        }
        for (std::int64_t k = 0; k < n; ++k) a[k] = std::max(v[k] - top - threshold, 0.0);
        return bound;
    }
    double total = 0.0;
    for (std::int64_t k = 0; k < n; ++k) {
        a[k] = v[k] > t ? v[k] - t : 0.0;
        total += a[k];
    }
    return std::min(total, bound);
}

// a_k = clip(v_k - t, 0, bound) with t the root of sum_k clip(v_k - t, 0, bound) - t, which falls and is piecewise
// linear. Next comes the root of the piece at t if it lies strictly within the bracket, and the bracket's middle
// otherwise and every third time.
double best_separate(const double* v, std::int64_t n, double bound, double guess, double* a) {
    const double most = static_cast<double>(n) * bound;
    double low = -bound, high = most + bound, t = std::clamp(guess, 0.0, most);
    for (int round = 0; round < 200; ++round) {
        double free_sum = 0.0;
        std::int64_t free = 0, full = 0;
        for (std::int64_t k = 0; k < n; ++k) {
            const bool is_full = v[k] - t >= bound, is_free = !is_full && v[k] > t;
            free_sum += is_free ? v[k] : 0.0;
            free += is_free;
            full += is_full;
        }
        const double next = (free_sum + static_cast<double>(full) * bound) / static_cast<double>(free + 1);
        if (next == t) break;
        (next > t ? low : high) = t;
        const double middle = low + 0.5 * (high - low);
        if (!(middle > low && middle < high)) break;
        t = next > low && next < high && round % 3 != 2 ? next : middle;
    }
    double total = 0.0;
    for (std::int64_t k = 0; k < n; ++k) {
        a[k] = std::clamp(v[k] - t, 0.0, bound);
        total += a[k];
    }
    return total;
}

template <class T>
JointResult joint(const JointProblem<T>& problem, const JointStop& stop, const Level& level, Poll& poll) {
    if (problem.q == 0) return {0, 0.0, StopReason::converged};
    return Joint<T>(problem, stop, level, poll).run();
}

template JointResult joint(const JointProblem<float>&, const JointStop&, const Level&, Poll&);
template JointResult joint(const JointProblem<double>&, const JointStop&, const Level&, Poll&);

}  // namespace mercer
