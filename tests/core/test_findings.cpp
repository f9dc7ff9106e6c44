// Findings against the definitions: a loss is a maximum over the box, a share of the gap what beta is short of it.
#include "solve/findings.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "check.hpp"

namespace {

using Doubles = std::vector<double>;

// max over t in [lower, upper] of r t - epsilon |t| - d t^2 / 2, on a grid.
double loss(double r, double epsilon, double d, double lower, double upper) {
    double best = 0.0;
    for (int k = 0; k <= 20000; ++k) {
        const double t = lower + (upper - lower) * k / 20000.0;
        best = std::max(best, r * t - epsilon * std::abs(t) - 0.5 * d * t * t);
    }
    return best;
}

void linear(double epsilon, double d, unsigned seed) {
    constexpr std::size_t n = 12;
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> uniform(-2.0, 2.0);
    Doubles p(n), lower(n, -1.0), upper(n, 1.5), ridge(n, d), tube(n, epsilon), f(n), beta(n), none(n, 0.0);
    double losses = 0.0, shares = 0.0, total = 0.0, worst_share = -1.0;
    std::int64_t worst = 0;
    for (std::size_t i = 0; i < n; ++i) {
        p[i] = uniform(random), f[i] = uniform(random);
        beta[i] = std::clamp(uniform(random), lower[i], upper[i]);
        const double r = p[i] - f[i], best = loss(r, epsilon, d, lower[i], upper[i]);
        const double share = best - (r * beta[i] - epsilon * std::abs(beta[i]) - 0.5 * d * beta[i] * beta[i]);
        losses += best, shares += share, total += beta[i];
        if (share > worst_share) worst_share = share, worst = static_cast<std::int64_t>(i);
    }
    const mercer::Findings found = mercer::certify_linear(
        {p.data(), lower.data(), upper.data(), ridge.data(), tube.data(), f.data(), none.data(), beta.data(), n});
    CHECK(std::abs(found.losses - losses) <= 1e-6);
    CHECK(std::abs(found.shares - shares) <= 1e-6);
    CHECK(std::abs(found.total - total) <= 1e-12);
    CHECK(epsilon > 0.0 || found.worst == worst);
    CHECK(found.box == 0.0);
}

void extremes() {
    // Residuals 1, -2 and 0.5: the first may only rise, the second only fall, the third is outside of its box.
    const Doubles p{1.0, -2.0, 0.5}, lower{0.0, 0.0, 0.0}, upper{1.0, 1.0, 1.0}, zeros(3, 0.0), beta{0.0, 1.0, 1.25};
    const mercer::Findings found = mercer::certify_linear(
        {p.data(), lower.data(), upper.data(), zeros.data(), zeros.data(), zeros.data(), zeros.data(), beta.data(), 3});
    CHECK(found.box == 0.25 && found.outward == 1.0 && found.inward == 2.0);
    CHECK(found.top == 1.0 && found.bottom == -2.0);
}

void many_pairs() {
    constexpr std::int64_t n = 90;
    const std::vector<std::int64_t> offsets{0, 0, 10, 11, 50, n};
    std::mt19937 random(3);
    std::uniform_real_distribution<double> uniform(-1.0, 1.0);
    Doubles p(n), lower(n, -0.5), upper(n, 0.5), d(n, 0.1), u(n), beta(n), error(n), reach(n);
    for (Doubles* values : {&p, &u, &beta}) {
        for (double& value : *values) value = uniform(random);
    }
    for (double& value : beta) value = std::clamp(value, -0.5, 0.5);
    // The rows of K in reverse; a row's error is its unit error times the sum of |beta|, and roundings of the gradient.
    const Doubles sizes{1.0, 2.0, 3.0, 4.0, 5.0};
    Doubles unit_errors(n), reaches(n);
    std::vector<std::int64_t> rows(n);
    for (std::size_t i = 0; i < n; ++i) {
        rows[i] = n - 1 - static_cast<std::int64_t>(i);
        unit_errors[i] = 1e-3 * (1.0 + uniform(random)), reaches[i] = 2.0 + uniform(random);
    }
    for (std::size_t t = 0; t < 5; ++t) {
        for (auto i = static_cast<std::size_t>(offsets[t]); i < static_cast<std::size_t>(offsets[t + 1]); ++i) {
            error[i] = unit_errors[n - 1 - i] * sizes[t] + 0x1p-50 * (std::abs(p[i]) + std::abs(u[i]) + std::abs(d[i] * beta[i]));
            reach[i] = reaches[n - 1 - i];
        }
    }
    for (const bool paired : {false, true}) {
        std::vector<mercer::PairFindings> all(5);
        mercer::Poll poll;
        mercer::certify_pairs(
            {p.data(), lower.data(), upper.data(), d.data(), u.data(), nullptr, nullptr, beta.data(), n, paired},
            {unit_errors.data(), reaches.data()}, rows.data(), sizes.data(), offsets.data(), 5, all.data(), 3, poll);
        for (std::size_t t = 0; t < 5; ++t) {
            const std::int64_t from = offsets[t];
            const mercer::PairFindings one =
                mercer::certify_pair({p.data() + from, lower.data() + from, upper.data() + from, d.data() + from,
                                      u.data() + from, error.data() + from, reach.data() + from, beta.data() + from,
                                      offsets[t + 1] - from, paired});
            CHECK(all[t].b == one.b && all[t].energy == one.energy);
            CHECK(std::abs(all[t].found.shares - one.found.shares) <= 1e-12 * one.found.shares);
            CHECK(std::abs(all[t].wrong - one.wrong) <= 1e-12 * one.wrong);
            const double cost = one.repair.of_gap();
            CHECK(cost == all[t].repair.of_gap() || std::abs(all[t].repair.of_gap() - cost) <= 1e-12 * cost);
        }
        CHECK(all[0].found.total == 0.0 && all[0].b == 0.0);
    }
    // All at bounds: b is in the middle of what they allow, or at the one end there is.
    const Doubles h{1.0, 3.0}, zeros(2, 0.0), least{0.0, -1.0}, most{1.0, 0.0};
    CHECK(mercer::certify_pair({h.data(), least.data(), most.data(), zeros.data(), zeros.data(), zeros.data(), zeros.data(), zeros.data(), 2, true})
              .b == 2.0);
    CHECK(mercer::certify_pair({h.data(), least.data(), most.data(), zeros.data(), zeros.data(), zeros.data(), zeros.data(), zeros.data(), 1, true})
              .b == 1.0);
}

}  // namespace

void test_findings() {
    for (const double epsilon : {0.0, 0.3}) {
        for (const double d : {0.0, 0.7}) {
            for (unsigned seed = 1; seed < 4; ++seed) linear(epsilon, d, seed);
        }
    }
    extremes();
    many_pairs();
}
