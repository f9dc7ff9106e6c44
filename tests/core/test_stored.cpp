// Problems on a stored matrix: every path through the Newton steps keeps sums and box, and the dual value is within the
// gap that weak duality leaves, written out from the definitions; on every level.
#include "solve/stored.hpp"

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
    std::size_t n, q;  // rows of the matrix, and variables: one or two of each row
    Doubles kernel;    // n by q
    std::vector<std::int64_t> which;
    Doubles p, lower, upper, d;
    std::vector<std::int32_t> group;
    std::int32_t groups;

    Doubles product(const Doubles& beta) const {
        Doubles u(q);
        for (std::size_t i = 0; i < q; ++i) {
            for (std::size_t j = 0; j < q; ++j) u[i] += kernel[static_cast<std::size_t>(which[i]) * q + j] * beta[j];
        }
        return u;
    }
    double dual(const Doubles& beta) const {
        const Doubles u = product(beta);
        double value = 0.0;
        for (std::size_t i = 0; i < q; ++i) value += beta[i] * (p[i] - 0.5 * u[i] - 0.5 * d[i] * beta[i]);
        return value;
    }
    double sum(const Doubles& beta, std::int32_t g) const {
        double total = 0.0;
        for (std::size_t i = 0; i < q; ++i) total += group[i] == g ? beta[i] : 0.0;
        return total;
    }
    // Of two ends, either of which may be missing.
    static double middle(double top, double bottom) {
        if (std::isfinite(top) && std::isfinite(bottom)) return 0.5 * (top + bottom);
        return std::isfinite(top) ? top : std::isfinite(bottom) ? bottom : 0.0;
    }
    // An upper bound of every feasible dual value: 1/2 b'Kb + sum of max over s in the box of (p - u - c) s - d s^2 / 2,
    // as sums over groups are zero, whatever the constant c of each group is.
    double bound(const Doubles& beta) const {
        const Doubles u = product(beta);
        Doubles top(static_cast<std::size_t>(groups), -kInfinity), bottom(top.size(), kInfinity);
        for (std::size_t i = 0; i < q; ++i) {
            if (group[i] < 0) continue;
            const std::size_t g = static_cast<std::size_t>(group[i]);
            const double h = p[i] - u[i] - d[i] * beta[i];
            if (beta[i] < upper[i]) top[g] = std::max(top[g], h);
            if (beta[i] > lower[i]) bottom[g] = std::min(bottom[g], h);
        }
        double value = 0.0;
        for (std::size_t i = 0; i < q; ++i) {
            const std::size_t g = static_cast<std::size_t>(std::max(group[i], 0));
            const double r = p[i] - u[i] - (group[i] < 0 ? 0.0 : middle(top[g], bottom[g]));
            const double best = d[i] > 0.0 ? std::clamp(r / d[i], lower[i], upper[i]) : r > 0.0 ? upper[i] : lower[i];
            value += 0.5 * beta[i] * u[i] + r * best - 0.5 * d[i] * best * best;
        }
        return value;
    }
};

// Two classes or a tube on few points of the line, some of them twice, with a wide kernel and a large C: the free
// variables depend on one another, and Newton steps take most of them to their bounds. Some samples are left out.
Case random_case(unsigned seed, bool twins, std::int32_t groups) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform(0.0, 1.0);
    const std::size_t n = 10 + random() % (twins ? 26 : 61), q = twins ? 2 * n : n;
    const double C = std::pow(10.0, 1.0 + 4.0 * uniform(random)), gamma = std::pow(10.0, -1.0 + 2.0 * uniform(random));
    const double ridge = random() % 4 == 0 ? uniform(random) / C : 0.0;
    Case c{n, q, Doubles(n * q), std::vector<std::int64_t>(q), Doubles(q), Doubles(q), Doubles(q), Doubles(q, ridge),
           std::vector<std::int32_t>(q, groups == 0 ? -1 : 0), groups};
    Doubles x(n);
    for (std::size_t i = 0; i < n; ++i) x[i] = i > 0 && random() % 8 == 0 ? x[i - 1] : normal(random);
    for (std::size_t i = 0; i < n; ++i) {
        const bool held_out = random() % 5 == 0;
        const double noise = x[i] + 0.7 * normal(random);
        if (twins) {
            c.p[i] = noise - 0.1, c.p[n + i] = noise + 0.1;
            c.upper[i] = held_out ? 0.0 : C, c.lower[n + i] = held_out ? 0.0 : -C;
        } else {
            c.p[i] = noise > 0.0 ? 1.0 : -1.0;
            (noise > 0.0 ? c.upper : c.lower)[i] = held_out ? 0.0 : noise > 0.0 ? C : -C;
        }
    }
    for (std::size_t v = 0; v < q; ++v) {
        c.which[v] = static_cast<std::int64_t>(v % n);
        if (groups > 1) c.group[v] = static_cast<std::int32_t>(v % static_cast<std::size_t>(groups));
        for (std::size_t i = 0; i < n; ++i) {
            const double apart = x[i] - x[v % n];
            // What float32 holds exactly, so that both types solve one problem.
            c.kernel[i * q + v] = static_cast<double>(static_cast<float>(std::exp(-gamma * apart * apart)));
        }
    }
    return c;
}

template <class T>
mercer::SmoResult solve(const Case& c, const mercer::Level& level, const mercer::SmoStop& stop, Doubles* beta,
                        Doubles* u) {
    const std::vector<T> kernel(c.kernel.begin(), c.kernel.end());
    mercer::Poll poll;
    return mercer::solve_stored<T>({kernel.data(), static_cast<std::ptrdiff_t>(c.q), c.which.data(),
                                    static_cast<std::int64_t>(c.q), c.p.data(), beta->data(), u->data(),
                                    c.lower.data(), c.upper.data(), c.d.data(), c.group.data()},
                                   stop, level, poll);
}

// Whether it was solved.
template <class T>
bool compare(const Case& c, const mercer::Level& level, double tol, std::int64_t most) {
    Doubles beta(c.q, 0.0), u(c.q, 0.0);
    const mercer::SmoResult result = solve<T>(c, level, {tol, most, kInfinity}, &beta, &u);
    double size = 0.0, widest = 0.0;
    for (std::size_t i = 0; i < c.q; ++i) {
        size += std::abs(beta[i]);
        widest += c.upper[i] - c.lower[i];
        CHECK(c.lower[i] <= beta[i] && beta[i] <= c.upper[i]);
    }
    for (std::int32_t g = 0; g < c.groups; ++g) CHECK(std::abs(c.sum(beta, g)) <= 1e-13 * widest);
    const Doubles again = c.product(beta);
    for (std::size_t i = 0; i < c.q; ++i) CHECK(std::abs(u[i] - again[i]) <= 1e-13 * (1.0 + size));
    if (result.reason != mercer::StopReason::converged) return false;
    // Steps know the gradient to the roundings of their kernel values' type.
    const double error = (sizeof(T) == sizeof(float) ? 1e-7 : 1e-15) * size;
    CHECK(c.bound(beta) - c.dual(beta) <= (tol + 10.0 * error) * widest + 1e-13 * size * (1.0 + size));
    return true;
}

}  // namespace

int main() {
    unsigned seed = 0;
    int solved = 0, problems = 0;
    for (int draw = 0; draw < 40; ++draw) {
        for (const bool twins : {false, true}) {
            for (const std::int32_t groups : {0, 1, 1, 2}) {
                const Case c = random_case(++seed, twins, groups);
                for (const mercer::Level* level : mercer::levels()) {
                    ++problems;
                    solved += compare<double>(c, *level, 1e-6, 50000);
                    compare<float>(c, *level, 1e-3, 20000);
                    compare<double>(c, *level, 1e-6, 3 * static_cast<std::int64_t>(c.q) + 5);
                }
            }
        }
    }
    CHECK(solved > 0.8 * problems);  // others have so many variables that may move that they have no Newton steps
    mercer::Poll poll;
    const auto empty = mercer::solve_stored<double>({nullptr, 0, nullptr, 0, nullptr, nullptr, nullptr, nullptr, nullptr,
                                                     nullptr, nullptr},
                                                    {1e-3, 10, 1.0}, mercer::level(), poll);
    CHECK(empty.steps == 0 && empty.reason == mercer::StopReason::converged);
    std::printf("stored: %s\n", failures == 0 ? "passed" : "FAILED");
    return failures == 0 ? 0 : 1;
}
