// One sample's problem against what defines its solution, and whole blocks against slow ascent; on every level.
#include "solve/joint_ascent.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "check.hpp"
#include "simd/dispatch.hpp"

namespace {

using Doubles = std::vector<double>;
using mercer::best_separate;
using mercer::best_shared;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

double value(const Doubles& v, const Doubles& a) {
    double linear = 0.0, squares = 0.0, sum = 0.0;
    for (std::size_t k = 0; k < v.size(); ++k) {
        linear += v[k] * a[k];
        squares += a[k] * a[k];
        sum += a[k];
    }
    return linear - 0.5 * (squares + sum * sum);
}

// No other feasible point, drawn at random or one coordinate or one exchange away, has a larger value.
void check_best(const Doubles& v, double bound, bool shared, std::mt19937& random) {
    const auto n = static_cast<std::int64_t>(v.size());
    Doubles a(v.size());
    const double sum =
        shared ? best_shared(v.data(), n, bound, a.data())
               : best_separate(v.data(), n, bound, std::uniform_real_distribution<>(-1, 5)(random), a.data());
    double total = 0.0, most = 0.0;
    for (const double x : a) {
        CHECK(x >= 0.0);
        total += x;
        most = std::max(most, x);
    }
    const double scale =
        1.0 + *std::max_element(v.begin(), v.end(), [](double x, double y) { return std::abs(x) < std::abs(y); });
    CHECK(std::abs(total - sum) <= 1e-12 * std::abs(scale) * static_cast<double>(n));
    CHECK(shared ? sum <= bound : most <= bound);

    const double reached = value(v, a), slack = 1e-12 * (1.0 + std::abs(reached)) * std::abs(scale);
    const auto feasible = [&](const Doubles& b) {
        double s = 0.0;
        for (const double x : b) {
            if (x < 0.0 || (!shared && x > bound)) return false;
            s += x;
        }
        return !shared || s <= bound;
    };
    std::uniform_int_distribution<std::size_t> pick(0, v.size() - 1);
    std::uniform_real_distribution<> uniform(0.0, 1.0);
    for (int trial = 0; trial < 200; ++trial) {
        Doubles b = a;
        const double step = std::pow(10.0, -4.0 * uniform(random)) * bound;
        if (trial % 3 == 0) {
            for (double& x : b) x = uniform(random) * bound / (shared ? static_cast<double>(n) : 1.0);
        } else if (trial % 3 == 1) {
            b[pick(random)] += uniform(random) < 0.5 ? step : -step;
        } else {
            b[pick(random)] += step;
            b[pick(random)] -= step;
        }
        if (feasible(b)) CHECK(value(v, b) <= reached + slack);
    }
}

void test_one_sample() {
    std::mt19937 random(1);
    for (const std::int64_t n : {1, 2, 3, 9, 25, 200}) {
        for (int repeat = 0; repeat < 40; ++repeat) {
            Doubles v(at(n));
            std::normal_distribution<> normal(repeat % 4 - 1.0, repeat % 3 == 0 ? 10.0 : 1.0);
            for (double& x : v) x = repeat % 7 == 6 ? std::round(normal(random)) : normal(random);
            for (const double bound : {1e-6, 0.5, 3.0, 1e6}) {
                check_best(v, bound, true, random);
                check_best(v, bound, false, random);
            }
        }
    }
    // By hand: one multiplier weighs double, v = 2a.
    Doubles a(1), v{3.0};
    CHECK(best_shared(v.data(), 1, 10.0, a.data()) == 1.5 && a[0] == 1.5);
    CHECK(best_separate(v.data(), 1, 10.0, 0.0, a.data()) == 1.5 && a[0] == 1.5);
    CHECK(best_shared(v.data(), 1, 0.25, a.data()) == 0.25 && a[0] == 0.25);
    CHECK(best_separate(v.data(), 1, 0.25, 7.0, a.data()) == 0.25 && a[0] == 0.25);
    // Everyone at the bound, where a search by pieces alone would go back and forth.
    Doubles many(25, 40.0), b(25);
    CHECK(best_separate(many.data(), 25, 1.0, 0.0, b.data()) == 25.0);
    CHECK(best_shared(many.data(), 25, 1.0, b.data()) == 1.0 && std::abs(b[7] - 0.04) < 1e-13);
    // Where v is far above the bound, the multipliers still add up to it.
    Doubles far{1e9 + 0.25, 1e9 + 0.25 - 1e-4, 0.5}, c(3);
    CHECK(best_shared(far.data(), 3, 1e-3, c.data()) == 1e-3 && std::abs(c[0] + c[1] + c[2] - 1e-3) < 1e-18);
    v[0] = -1.0;
    CHECK(best_shared(v.data(), 1, 1.0, a.data()) == 0.0 && a[0] == 0.0);
    CHECK(best_separate(v.data(), 1, 1.0, 3.0, a.data()) == 0.0 && a[0] == 0.0);
}

struct Case {
    std::int64_t q, classes;
    Doubles kernel, beta, bound;
    std::vector<std::int64_t> label;
    double shift;

    Case(std::int64_t q_, std::int64_t classes_, double shift_, unsigned seed)
        : q(q_),
          classes(classes_),
          kernel(at(q * q)),
          beta(at(q * classes)),
          bound(at(q)),
          label(at(q)),
          shift(shift_) {
        std::mt19937 random(seed);
        std::normal_distribution<> normal;
        Doubles x(at(q * 2));
        for (std::int64_t i = 0; i < q; ++i) {
            label[at(i)] = i % classes;
            bound[at(i)] = 0.5 + static_cast<double>(i % 3);
            x[at(2 * i)] = normal(random) + static_cast<double>(i % classes);
            x[at(2 * i + 1)] = normal(random);
        }
        for (std::int64_t i = 0; i < q; ++i) {
            for (std::int64_t j = 0; j < q; ++j) {
                const double d0 = x[at(2 * i)] - x[at(2 * j)], d1 = x[at(2 * i + 1)] - x[at(2 * j + 1)];
                kernel[at(i * q + j)] = static_cast<double>(static_cast<float>(std::exp(-0.5 * (d0 * d0 + d1 * d1))));
            }
        }
    }

    Doubles excess() const {
        Doubles e(at(q * classes), 1.0);
        for (std::int64_t i = 0; i < q; ++i) {
            e[at(i * classes + label[at(i)])] = 0.0;
            for (std::int64_t j = 0; j < q; ++j) {
                for (std::int64_t k = 0; k < classes; ++k) {
                    e[at(i * classes + k)] += (kernel[at(i * q + j)] + shift) * beta[at(j * classes + k)];
                }
            }
        }
        return e;
    }

    // Primal minus dual, which is zero at the solution and nowhere else.
    double gap(bool shared) const {
        const Doubles e = excess();
        double total = 0.0;
        for (std::int64_t i = 0; i < q; ++i) {
            const double own = e[at(i * classes + label[at(i)])];
            double largest = 0.0, sum = 0.0, paid = 0.0;
            for (std::int64_t k = 0; k < classes; ++k) {
                const double g = e[at(i * classes + k)] - own;
                largest = std::max(largest, g);
                sum += std::max(g, 0.0);
                paid -= beta[at(i * classes + k)] * g;
            }
            total += bound[at(i)] * (shared ? largest : sum) - paid;
        }
        return total;
    }

    void check_feasible(bool shared) const {
        for (std::int64_t i = 0; i < q; ++i) {
            double sum = 0.0;
            for (std::int64_t k = 0; k < classes; ++k) {
                const double b = beta[at(i * classes + k)];
                sum += b;
                if (k == label[at(i)]) {
                    CHECK(!shared || b <= bound[at(i)]);
                } else {
                    CHECK(b <= 0.0 && (shared || b >= -bound[at(i)]));
                }
            }
            CHECK(std::abs(sum) < 1e-12);
        }
    }
};

template <class T>
mercer::JointResult solve(Case& c, bool shared, const mercer::JointStop& stop, const mercer::Level& level) {
    const std::vector<T> kernel(c.kernel.begin(), c.kernel.end());
    const Doubles excess = c.excess();
    mercer::Poll poll;
    return mercer::joint(mercer::JointProblem<T>{kernel.data(), c.q, c.q, c.classes, c.shift, excess.data(),
                                                 c.beta.data(), c.label.data(), c.bound.data(), shared},
                         stop, level, poll);
}

void test_whole_blocks() {
    for (const mercer::Level* level : mercer::levels()) {
        for (const std::int64_t q : {1, 5, 16, 37}) {
            for (const std::int64_t classes : {2, 3, 7}) {
                for (const bool shared : {true, false}) {
                    for (const double shift : {0.0, 1.0}) {
                        Case c(q, classes, shift, static_cast<unsigned>(q + classes));
                        const auto exact = solve<double>(c, shared, {1e-10, 1000000, 60.0}, *level);
                        CHECK(exact.reason == mercer::StopReason::converged);
                        c.check_feasible(shared);
                        CHECK(std::abs(c.gap(shared)) < 1e-8 * static_cast<double>(q));
                        Case f(q, classes, shift, static_cast<unsigned>(q + classes));
                        const auto rough = solve<float>(f, shared, {1e-4, 1000000, 60.0}, *level);
                        CHECK(rough.reason == mercer::StopReason::converged);
                        f.check_feasible(shared);
                        CHECK(std::abs(f.gap(shared)) < 2e-3 * static_cast<double>(q));
                        // From the solution there is nothing left to do.
                        CHECK(solve<double>(c, shared, {1e-9, 1000000, 60.0}, *level).steps == 0);
                    }
                }
            }
        }
    }
}

void test_limits_and_odd_numbers() {
    const mercer::Level& level = *mercer::levels().front();
    Case c(20, 3, 0.0, 5);
    const auto few = solve<double>(c, true, {1e-10, 7, 60.0}, level);
    CHECK(few.steps == 7 && few.reason == mercer::StopReason::max_steps);
    c.check_feasible(true);
    // A kernel of zeros does not bend the dual: multipliers go to their bound, and the solver ends.
    for (const bool shared : {true, false}) {
        Case flat(6, 3, 0.0, 5);
        std::fill(flat.kernel.begin(), flat.kernel.end(), 0.0);
        const auto found = solve<double>(flat, shared, {1e-6, 100000, 60.0}, level);
        CHECK(found.reason == mercer::StopReason::converged);
        flat.check_feasible(shared);
        CHECK(std::abs(flat.gap(shared)) < 1e-4);
    }
    Case bad(6, 3, 0.0, 5);
    bad.kernel[8] = std::numeric_limits<double>::quiet_NaN();
    const Doubles before = bad.beta;
    Case poisoned = bad;
    poisoned.kernel[8] = 0.0;
    poisoned.kernel[7] = std::numeric_limits<double>::infinity();
    CHECK(solve<double>(poisoned, true, {1e-6, 100000, 60.0}, level).reason == mercer::StopReason::nonfinite);
    CHECK(solve<double>(bad, true, {1e-6, 100000, 60.0}, level).reason == mercer::StopReason::nonfinite);
    CHECK(bad.beta == before && poisoned.beta == before);
}

}  // namespace

void test_joint() {
    test_one_sample();
    test_whole_blocks();
    test_limits_and_odd_numbers();
}
