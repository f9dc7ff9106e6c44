// Linear machines: passes over dense and CSR rows against plain loops on every level, and descents against the
// optimality conditions.
#include "linear/rows.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "check.hpp"
#include "linear/descent.hpp"
#include "linear/descent_stop.hpp"
#include "linear/joint_descent.hpp"
#include "linear/packed_csr.hpp"
#include "linear/response.hpp"
#include "simd/dispatch.hpp"

namespace {

using Doubles = std::vector<double>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Data {
    std::int64_t n, d;
    Doubles dense;
    Doubles values;
    std::vector<std::int32_t> indices;
    std::vector<std::int64_t> starts{0};

    Data(std::int64_t rows, std::int64_t columns, unsigned seed) : n(rows), d(columns) {
        std::mt19937_64 random(seed);
        std::normal_distribution<double> normal;
        for (std::int64_t i = 0; i < n; ++i) {
            for (std::int64_t k = 0; k < d; ++k) {
                const double value = random() % 3 == 0 && i != 1 ? normal(random) : 0.0;
                dense.push_back(value);
                if (value != 0.0) {
                    values.push_back(value);
                    indices.push_back(static_cast<std::int32_t>(k));
                }
            }
            starts.push_back(static_cast<std::int64_t>(values.size()));
        }
    }
    mercer::LinearDense<double> rows() const { return {dense.data(), n, d}; }
    mercer::LinearCsr<double> csr() const {
        return {values.data(), indices.data(), starts.data(), starts.data() + 1, starts.back(), n, d};
    }
    double x(std::int64_t i, std::int64_t k) const { return dense[static_cast<std::size_t>(i * d + k)]; }
};

bool close(const Doubles& a, const Doubles& b) {
    for (std::size_t k = 0; k < a.size(); ++k) {
        if (!(std::abs(a[k] - b[k]) <= 1e-12 * (1.0 + std::abs(b[k])))) return false;
    }
    return a.size() == b.size();
}

template <class Rows>
void passes(const Data& data, const Rows& rows, const mercer::Level& level, int n_threads) {
    mercer::Poll poll;
    const mercer::Threads threads{n_threads, level, poll};
    const auto n = static_cast<std::size_t>(data.n), d = static_cast<std::size_t>(data.d);
    Doubles w(d), c(n), f(n), g(d), expected_f(n, 0.25), expected_g(d, 0.0);
    for (std::size_t k = 0; k < d; ++k) w[k] = std::sin(1.0 + static_cast<double>(k));
    for (std::size_t i = 0; i < n; ++i) c[i] = i % 4 == 0 ? 0.0 : std::cos(static_cast<double>(i));
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t k = 0; k < d; ++k) {
            const double x = data.x(static_cast<std::int64_t>(i), static_cast<std::int64_t>(k));
            expected_f[i] += x * w[k];
            expected_g[k] += x * c[i];
        }
    }
    mercer::linear_product(rows, w.data(), 0.25, f.data(), threads);
    mercer::linear_transposed(rows, c.data(), g.data(), threads);
    CHECK(close(f, expected_f));
    CHECK(close(g, expected_g));

    const std::vector<std::int64_t> which{0, 2, 3};
    const Doubles weight{2.0, 0.5, 1.0};
    Doubles outer((d + 1) * (d + 1));
    mercer::linear_outer(rows, which.data(), weight.data(), 3, outer.data(), threads);
    for (std::size_t a = 0; a <= d; ++a) {
        for (std::size_t b = 0; b <= a; ++b) {
            double sum = 0.0;
            for (std::size_t m = 0; m < 3; ++m) {
                const auto z = [&](std::size_t k) {
                    return k == d ? 1.0 : data.x(which[m], static_cast<std::int64_t>(k));
                };
                sum += weight[m] * z(a) * z(b);
            }
            CHECK(std::abs(outer[a * (d + 1) + b] - sum) <= 1e-12 * (1.0 + std::abs(sum)));
        }
    }
}

// Hinge with signs alternating: at the optimum no gradient points into the box.
template <class Rows>
void descent(const Data& data, const Rows& rows, const mercer::Level& level, double epsilon) {
    const auto n = static_cast<std::size_t>(data.n), d = static_cast<std::size_t>(data.d);
    Doubles p(n), lower(n), upper(n), ridge(n, 0.0), tube(n, epsilon), lengths(n), beta(n, 0.0), w(d, 0.0);
    for (std::size_t i = 0; i < n; ++i) {
        p[i] = i % 2 == 0 ? 1.0 : -1.0;
        lower[i] = i % 2 == 0 && epsilon == 0.0 ? 0.0 : -2.0;
        upper[i] = i % 2 == 0 || epsilon > 0.0 ? 2.0 : 0.0;
    }
    mercer::Poll poll;
    mercer::linear_lengths(rows, lengths.data(), {1, level, poll});
    double b = 0.0;
    std::uint64_t seed = 1;
    const mercer::DcdProblem problem{p.data(), lower.data(), upper.data(), ridge.data(), tube.data(), lengths.data(),
                                     1.0,      beta.data(),  w.data(),     &b,           0.0,         true};
    mercer::PackedCsr kept;
    // As many passes as anybody may ask for: the limit must not overflow when it is compared with visits to rows.
    const mercer::DcdStop stop{1e-9, kInfinity, std::numeric_limits<std::int64_t>::max(), 10.0, false};
    const auto result = mercer::linear_dcd(rows, kept, problem, stop, &seed, {1, level, poll});
    CHECK(result.violation <= 1e-9);
    Doubles f(n);
    mercer::linear_product(rows, w.data(), b, f.data(), {1, level, poll});
    for (std::size_t i = 0; i < n; ++i) {
        const double right = p[i] - f[i] - (beta[i] >= 0.0 ? epsilon : -epsilon);
        const double left = p[i] - f[i] - (beta[i] > 0.0 ? epsilon : -epsilon);
        if (beta[i] < upper[i]) CHECK(right <= 1e-7);
        if (beta[i] > lower[i]) CHECK(left >= -1e-7);
    }
}

// Crammer and Singer's machine: multipliers are feasible, and no row's gradient points into its box.
template <class Rows>
void joint(const Data& data, const Rows& rows, const mercer::Level& level) {
    constexpr std::int64_t classes = 3;
    const auto n = static_cast<std::size_t>(data.n), d = static_cast<std::size_t>(data.d);
    std::vector<std::int64_t> y(n);
    for (std::size_t i = 0; i < n; ++i) y[i] = static_cast<std::int64_t>(i % classes);
    Doubles C(n, 0.7), lengths(n), beta(n * classes, 0.0), w(d * classes, 0.0), w_bias(classes, 0.0);
    mercer::Poll poll;
    const mercer::Threads threads{1, level, poll};
    mercer::linear_lengths(rows, lengths.data(), threads);
    std::uint64_t seed = 1;
    const mercer::DcdResult result = mercer::linear_joint_dcd(
        rows,
        mercer::JointDcdProblem{y.data(), C.data(), lengths.data(), 1.0, classes, beta.data(), w.data(), w_bias.data()},
        mercer::DcdStop{1e-8, kInfinity, 100000, 10.0, false}, &seed, threads);
    CHECK(result.violation <= 1e-8);
    for (std::size_t i = 0; i < n; ++i) {
        double sum = 0.0, top = -kInfinity, bottom = kInfinity;
        for (std::size_t k = 0; k < classes; ++k) {
            double excess = w_bias[k] + (static_cast<std::int64_t>(k) == y[i] ? 0.0 : 1.0);
            for (std::size_t j = 0; j < d; ++j) {
                excess += data.x(static_cast<std::int64_t>(i), static_cast<std::int64_t>(j)) * w[j * classes + k];
            }
            const double own = beta[i * classes + k], cap = static_cast<std::int64_t>(k) == y[i] ? C[i] : 0.0;
            CHECK(own <= cap);
            sum += own;
            top = std::max(top, excess);
            if (own < cap) bottom = std::min(bottom, excess);
        }
        CHECK(std::abs(sum) <= 1e-12);
        CHECK(top - bottom <= 1e-6);
    }
}

// A response is where the smoothed loss has its maximum; with mu = 0 the losses are the true ones and no gap is left.
void response() {
    constexpr std::int64_t n = 20000;  // several chunks
    const auto size = static_cast<std::size_t>(n);
    Doubles p(size), d(size, 0.5), q(size), inverse(size, 2.0), lower(size, -1.0), upper(size, 2.0), epsilon(size, 0.1);
    Doubles f(size), move(size), t(size), again(size);
    for (std::size_t i = 0; i < size; ++i) {
        p[i] = q[i] = std::sin(static_cast<double>(i));
        f[i] = 2.0 * std::cos(3.0 * static_cast<double>(i));
        move[i] = std::sin(5.0 * static_cast<double>(i));
    }
    const mercer::SmoothedLosses samples{n, q.data(), inverse.data(), lower.data(), upper.data(), epsilon.data()};
    mercer::Poll poll;
    const mercer::Response sums = mercer::linear_response(samples, p.data(), d.data(), f.data(), t.data(), 1, poll);
    double total = 0.0, losses = 0.0;
    for (std::size_t i = 0; i < size; ++i) {
        const auto value = [&](double a) { return (q[i] - f[i]) * a - 0.1 * std::abs(a) - 0.25 * a * a; };
        CHECK(t[i] >= -1.0 && t[i] <= 2.0);
        for (const double other : {-1.0, 0.0, 2.0, t[i] - 1e-3, t[i] + 1e-3}) {
            CHECK(other < -1.0 || other > 2.0 || value(other) <= value(t[i]) + 1e-15);
        }
        total += t[i];
        losses += value(t[i]);
    }
    CHECK(std::abs(sums.total - total) <= 1e-8 && std::abs(sums.losses - losses) <= 1e-8);
    CHECK(std::abs(sums.shares) <= 1e-10);
    const mercer::Response both = mercer::linear_response(samples, p.data(), d.data(), f.data(), again.data(), 3, poll);
    CHECK(both.total == sums.total && both.losses == sums.losses && again == t);

    for (const double step : {0.0, 0.7}) {
        Doubles moved(size);
        for (std::size_t i = 0; i < size; ++i) moved[i] = f[i] + step * move[i];
        mercer::linear_response(samples, p.data(), d.data(), moved.data(), t.data(), 1, poll);
        double slope = 0.0;
        for (std::size_t i = 0; i < size; ++i) slope += t[i] * move[i];
        const double found = mercer::linear_along(samples, f.data(), move.data(), step, 2, poll);
        CHECK(std::abs(found - slope) <= 1e-9);
        CHECK(found == mercer::linear_along(samples, f.data(), move.data(), step, 1, poll));
    }
}

// Rounding can keep a gap above any tolerance: the descent ends after a few checks without a gain, and not after one.
void a_descent_that_gains_nothing_ends() {
    const mercer::DcdStop stop{1e-9, 1e-9, 100, 10.0, true};
    const mercer::FullCheck all{1.0, 1.0};
    mercer::DescentStop without_gain(stop, 10), with_gain(stop, 10);
    int checks = 1;
    while (!without_gain.stalled(all, 5.0, checks)) ++checks;
    CHECK(checks == 5);  // the first check is the measure for the four that gain nothing
    double value = 5.0;
    for (int check = 0; check < 20; ++check) CHECK(!with_gain.stalled(all, value *= 1.001, check));
}

}  // namespace

void test_linear() {
    a_descent_that_gains_nothing_ends();
    response();
    for (const mercer::Level* level : mercer::levels()) {
        for (const std::int64_t d : {1, 3, 17, 70}) {
            const Data data(29, d, static_cast<unsigned>(d));
            for (const int n_threads : {1, 2}) {
                passes(data, data.rows(), *level, n_threads);
                passes(data, data.csr(), *level, n_threads);
            }
            joint(data, data.rows(), *level);
            joint(data, data.csr(), *level);
            for (const double epsilon : {0.0, 0.2}) {
                descent(data, data.rows(), *level, epsilon);
                descent(data, data.csr(), *level, epsilon);
            }
        }
    }
}
