// Sequential minimal optimisation against cyclic ascent over all pairs and cases solved by hand; on every level.
#include "solve/smo.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "check.hpp"
#include "simd/dispatch.hpp"

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
using Doubles = std::vector<double>;

struct Case {
    std::int64_t q;
    Doubles kernel, p, lower, upper, d, start;
    std::vector<std::int32_t> group;

    explicit Case(std::int64_t size)
        : q(size),
          kernel(at(size * size)),
          p(at(size)),
          lower(at(size)),
          upper(at(size), 1.0),
          d(at(size)),
          start(at(size)),
          group(at(size)) {}

    static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
    double k(std::int64_t i, std::int64_t j) const { return kernel[at(i * q + j)]; }

    Doubles gradient(const Doubles& beta) const {
        Doubles h(at(q));
        for (std::int64_t i = 0; i < q; ++i) {
            h[at(i)] = p[at(i)] - d[at(i)] * beta[at(i)];
            for (std::int64_t j = 0; j < q; ++j) h[at(i)] -= k(i, j) * beta[at(j)];
        }
        return h;
    }

    double dual(const Doubles& beta) const {
        const Doubles h = gradient(beta);
        double value = 0.0;
        for (std::size_t i = 0; i < beta.size(); ++i) value += 0.5 * beta[i] * (p[i] + h[i]);
        return value;
    }

    double violation(const Doubles& beta) const {
        const Doubles h = gradient(beta);
        double worst = 0.0;
        for (std::size_t i = 0; i < beta.size(); ++i) {
            if (group[i] < 0) {
                if (beta[i] < upper[i]) worst = std::max(worst, h[i]);
                if (beta[i] > lower[i]) worst = std::max(worst, -h[i]);
                continue;
            }
            for (std::size_t j = 0; j < beta.size(); ++j) {
                const bool movable = group[i] == group[j] && beta[i] < upper[i] && beta[j] > lower[j];
                if (movable) worst = std::max(worst, h[i] - h[j]);
            }
        }
        return worst;
    }
};

template <class T>
mercer::SmoResult solve(const Case& c, const mercer::Level& level, Doubles* beta, mercer::SmoStop stop,
                        mercer::Poll* poll = nullptr) {
    // Rows neither aligned nor tightly packed, and nothing readable behind the last one.
    const std::int64_t stride = c.q + 3;
    std::vector<T> kernel(Case::at(1 + stride * (c.q - 1) + c.q));
    for (std::int64_t i = 0; i < c.q; ++i) {
        for (std::int64_t j = 0; j < c.q; ++j) kernel[Case::at(1 + i * stride + j)] = static_cast<T>(c.k(i, j));
    }
    *beta = c.start;
    const Doubles h = c.gradient(c.start);
    mercer::Poll own;
    return mercer::smo<T>({kernel.data() + 1, stride, c.q, h.data(), beta->data(), c.lower.data(), c.upper.data(),
                           c.d.data(), c.group.data()},
                          stop, level, poll == nullptr ? own : *poll);
}

// Slow and obvious: the best step along every pair of a group (or every single variable) in turn, until nothing moves.
Doubles reference(const Case& c) {
    Doubles beta = c.start;
    Doubles h = c.gradient(beta);
    const auto move = [&](std::int64_t i, std::int64_t j, double step) {
        beta[Case::at(i)] += step;
        if (j >= 0) beta[Case::at(j)] -= step;
        for (std::int64_t k = 0; k < c.q; ++k) h[Case::at(k)] -= step * (c.k(i, k) - (j >= 0 ? c.k(j, k) : 0.0));
        h[Case::at(i)] -= step * c.d[Case::at(i)];
        if (j >= 0) h[Case::at(j)] += step * c.d[Case::at(j)];
    };
    for (int round = 0; round < 20000 && c.violation(beta) > 1e-9; ++round) {
        for (std::int64_t i = 0; i < c.q; ++i) {
            const std::size_t a = Case::at(i);
            if (c.group[a] < 0) {
                const double eta = std::max(c.k(i, i) + c.d[a], 1e-12);
                move(i, -1, std::clamp(beta[a] + h[a] / eta, c.lower[a], c.upper[a]) - beta[a]);
                continue;
            }
            for (std::int64_t j = 0; j < i; ++j) {
                const std::size_t b = Case::at(j);
                if (c.group[a] != c.group[b]) continue;
                const double eta = std::max(c.k(i, i) + c.k(j, j) - 2.0 * c.k(i, j) + c.d[a] + c.d[b], 1e-12);
                const double least = std::max(c.lower[a] - beta[a], beta[b] - c.upper[b]);
                const double most = std::min(c.upper[a] - beta[a], beta[b] - c.lower[b]);
                move(i, j, std::clamp((h[a] - h[b]) / eta, least, most));
            }
        }
    }
    return beta;
}

// A Gaussian kernel on points of the line; every fourth point is the twin of its predecessor.
Case random_case(std::int64_t q, unsigned seed, int groups, bool single, bool ridge) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> uniform(0.0, 1.0);
    Case c(q);
    Doubles x(Case::at(q));
    for (std::int64_t i = 0; i < q; ++i) {
        const std::size_t a = Case::at(i);
        x[a] = i % 4 == 3 ? x[a - 1] : 6.0 * uniform(random);
        const bool positive = uniform(random) < 0.5;
        c.p[a] = (positive ? 1.0 : -1.0) + 0.3 * uniform(random);
        c.lower[a] = positive ? 0.0 : -1.5;
        c.upper[a] = positive ? 1.5 : 0.0;
        if (ridge) {
            c.d[a] = 0.1 + uniform(random);
            if (i % 3 == 0) c.upper[a] = kInfinity;
            if (i % 5 == 0) c.lower[a] = -kInfinity;
        }
        const double share = uniform(random);
        c.group[a] = single && share < 0.4 ? -1 : groups == 0 ? -1 : static_cast<std::int32_t>(i * 7 % groups);
        c.start[a] = 0.5 * ((positive ? 1.5 : 0.0) + (positive ? 0.0 : -1.5)) * std::round(uniform(random));
    }
    for (std::int64_t i = 0; i < q; ++i) {
        for (std::int64_t j = 0; j < q; ++j) {
            const double difference = x[Case::at(i)] - x[Case::at(j)];
            // What float32 holds exactly, so that both types solve the same problem.
            c.kernel[Case::at(i * q + j)] = static_cast<double>(static_cast<float>(std::exp(-difference * difference)));
        }
    }
    return c;
}

template <class T>
void compare(const Case& c, const mercer::Level& level, double best) {
    const double tol = sizeof(T) == 4 ? 1e-4 : 1e-8;
    Doubles beta;
    const mercer::SmoResult result = solve<T>(c, level, &beta, {tol, 1000000, kInfinity});
    CHECK(result.reason == mercer::StopReason::converged);
    CHECK(result.violation <= tol);
    CHECK(std::abs(c.violation(beta) - result.violation) < (sizeof(T) == 4 ? 1e-5 : 1e-10));
    CHECK(c.dual(beta) > best - 30.0 * tol);
    for (std::size_t i = 0; i < beta.size(); ++i) CHECK(c.lower[i] <= beta[i] && beta[i] <= c.upper[i]);
    for (std::int32_t g = 0; g < 5; ++g) {
        double sum = 0.0, before = 0.0;
        for (std::size_t i = 0; i < beta.size(); ++i) {
            sum += c.group[i] == g ? beta[i] : 0.0;
            before += c.group[i] == g ? c.start[i] : 0.0;
        }
        CHECK(std::abs(sum - before) < 1e-12);
    }
}

void random_problems(const mercer::Level& level) {
    unsigned seed = 0;
    for (const std::int64_t q : {1, 2, 3, 5, 16, 17, 33, 50}) {
        for (const int groups : {0, 1, 2, 5}) {
            for (const bool single : {false, true}) {
                for (const bool ridge : {false, true}) {
                    const Case c = random_case(q, ++seed, groups, single, ridge);
                    const double best = c.dual(reference(c));
                    compare<float>(c, level, best);
                    compare<double>(c, level, best);
                }
            }
        }
    }
}

// Two points, one step: (h_0 - h_1) / eta, or the box.
void two_variables(const mercer::Level& level) {
    Case c(2);
    c.kernel = {2.0, 0.5, 0.5, 1.0};
    c.p = {1.0, -1.0};
    c.lower = {0.0, -kInfinity};
    c.upper = {kInfinity, 0.0};
    c.d = {0.25, 0.25};
    Doubles beta;
    const auto free = solve<double>(c, level, &beta, {1e-9, 100, kInfinity});
    CHECK(free.steps == 1 && std::abs(beta[0] - 0.8) < 1e-15 && beta[0] == -beta[1]);
    c.upper[0] = 0.1;
    c.start = {0.05, -0.05};
    solve<float>(c, level, &beta, {1e-9, 100, kInfinity});
    CHECK(beta[0] == 0.1 && std::abs(beta[1] + 0.1) < 1e-16);
}

// Of equal candidates the lowest index is taken, whatever the width of the vectors.
void ties(const mercer::Level& level) {
    Case c(70);
    for (std::int64_t i = 0; i < 70; ++i) {
        c.kernel[Case::at(i * 70 + i)] = 1.0;
        c.p[Case::at(i)] = i < 9 ? 0.0 : i % 2 == 0 ? 1.0 : -1.0;
        c.lower[Case::at(i)] = -1.0;
    }
    Doubles beta;
    solve<float>(c, level, &beta, {1e-3, 1, kInfinity});
    CHECK(beta[10] == 1.0 && beta[9] == -1.0);
    solve<double>(c, level, &beta, {1e-3, 2, kInfinity});
    CHECK(beta[10] == 1.0 && beta[9] == -1.0 && beta[12] == 1.0 && beta[11] == -1.0);
}

template <class T>
void endings(const mercer::Level& level) {
    const Case good = random_case(40, 99, 1, false, false);
    Doubles beta;
    auto result = solve<T>(good, level, &beta, {1e-6, 0, kInfinity});
    CHECK(result.reason == mercer::StopReason::max_steps && result.steps == 0 && beta == good.start);
    CHECK(std::abs(result.violation - good.violation(good.start)) < 1e-5);
    result = solve<T>(good, level, &beta, {1e-6, 3, kInfinity});
    CHECK(result.reason == mercer::StopReason::max_steps && result.steps == 3);
    result = solve<T>(good, level, &beta, {1e-6, 1000000, -1.0});
    CHECK(result.reason == mercer::StopReason::max_seconds);
    for (const double tol : {0.0, -1.0, std::nan("")}) {
        result = solve<T>(good, level, &beta, {tol, std::numeric_limits<std::int64_t>::max(), 20.0});
        CHECK(result.reason == mercer::StopReason::stalled || result.reason == mercer::StopReason::converged);
    }

    Case open = good;  // a direction without curvature and without an end
    std::fill(open.kernel.begin(), open.kernel.end(), 0.0);
    std::fill(open.upper.begin(), open.upper.end(), kInfinity);
    std::fill(open.lower.begin(), open.lower.end(), -kInfinity);
    result = solve<T>(open, level, &beta, {1e-3, 1000000, 20.0});
    CHECK(result.reason == mercer::StopReason::unbounded);
    std::fill(open.group.begin(), open.group.end(), -1);
    result = solve<T>(open, level, &beta, {1e-3, 1000000, 20.0});
    CHECK(result.reason == mercer::StopReason::unbounded);

    for (const double poison : {std::nan(""), kInfinity, -kInfinity}) {
        for (const int groups : {0, 1}) {
            const Case clean = random_case(40, 99, groups, false, false);
            for (auto array : {&Case::kernel, &Case::p, &Case::d, &Case::start, &Case::lower, &Case::upper}) {
                Case bad = clean;
                (bad.*array)[7] = poison;
                result = solve<T>(bad, level, &beta, {1e-3, 1000000, 20.0});
                CHECK(result.reason != mercer::StopReason::max_steps);
                CHECK(result.reason != mercer::StopReason::max_seconds);
            }
            Case bad = clean;
            std::fill(bad.kernel.begin(), bad.kernel.end(), poison);
            result = solve<T>(bad, level, &beta, {1e-3, 1000000, 20.0});
            CHECK(result.reason == mercer::StopReason::nonfinite && std::isnan(result.violation));
        }
    }

    Case indefinite = good;
    for (std::size_t i = 0; i < indefinite.kernel.size(); ++i) indefinite.kernel[i] = i % 3 == 0 ? -1.0 : 0.5;
    result = solve<T>(indefinite, level, &beta, {1e-4, 1000000, 20.0});
    CHECK(result.steps < 1000000);
}

struct Interrupted {};

void abandoned_calls_change_nothing(const mercer::Level& level) {
    // Slow to solve: an almost flat kernel and a tolerance out of reach.
    Case c = random_case(400, 5, 1, false, false);
    for (std::size_t i = 0; i < c.kernel.size(); ++i) c.kernel[i] = 1e3 + c.kernel[i];
    for (std::size_t i = 0; i < c.upper.size(); ++i) {
        c.upper[i] *= 1e6;
        c.lower[i] *= 1e6;
    }
    mercer::Poll poll([](void*) { throw Interrupted{}; }, nullptr);
    Doubles beta;
    bool interrupted = false;
    try {
        solve<double>(c, level, &beta, {1e-13, std::numeric_limits<std::int64_t>::max(), 20.0}, &poll);
    } catch (const Interrupted&) {
        interrupted = true;
    }
    CHECK(interrupted && beta == c.start);
}

}  // namespace

void test_smo() {
    for (const mercer::Level* level : mercer::levels()) {
        random_problems(*level);
        two_variables(*level);
        ties(*level);
        endings<float>(*level);
        endings<double>(*level);
        abandoned_calls_change_nothing(*level);
    }
    Doubles nothing;
    mercer::Poll poll;
    const auto empty = mercer::smo<double>({nullptr, 0, 0, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr},
                                           {1e-3, 10, 1.0}, mercer::level(), poll);
    CHECK(empty.steps == 0 && empty.reason == mercer::StopReason::converged);
}
