// Shapley values against their definition over all subsets, at every level and for several numbers of threads; and the
// rules of quadrature against the integrals of powers.
#include "explain/shapley.hpp"

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "check.hpp"
#include "explain/gauss_legendre.hpp"
#include "simd/dispatch.hpp"

namespace {

using Doubles = std::vector<double>;

void rules() {
    for (const std::int64_t n : {1, 2, 5, 16, 101}) {
        Doubles nodes(static_cast<std::size_t>(n)), weights(nodes.size());
        mercer::gauss_legendre(n, nodes.data(), weights.data());
        for (std::int64_t power = 0; power < 2 * n; ++power) {
            double sum = 0.0;
            for (std::size_t k = 0; k < nodes.size(); ++k) {
                sum += weights[k] * std::pow(nodes[k], static_cast<double>(power));
            }
            CHECK(std::abs(sum * static_cast<double>(power + 1) - 1.0) < 1e-13);
        }
    }
}

constexpr std::size_t kRows = 11, kOthers = 3, kVectors = 21, kFeatures = 5, kOutputs = 2;

struct Case {
    Doubles rows, others, weights, vectors, coefficients, rates, polynomial;
    std::vector<std::int64_t> starts;  // of the players' features

    std::size_t players() const { return starts.size() - 1; }

    double kernel(const Doubles& x, std::size_t i) const {
        double exponent = 0.0, inner = 0.0, value = 0.0;
        for (std::size_t l = 0; l < kFeatures; ++l) {
            const double s = vectors[i * kFeatures + l], u = x[l] - s;
            exponent -= rates[l] * u * u + rates[kFeatures + l] * std::abs(u);
            exponent -= rates[2 * kFeatures + l] * (x[l] + s > 0.0 ? u * u / (x[l] + s) : 0.0);
            exponent += rates[3 * kFeatures + l] * x[l] * s;
            inner += x[l] * s;
        }
        for (std::size_t k = polynomial.size(); k-- > 0;) value = value * inner + polynomial[k];
        return value * std::exp(exponent);
    }

    // The worth of the subset with these bits: the mean of f over the background with these players' features of the row.
    double worth(std::size_t row, unsigned subset, std::size_t output) const {
        double total = 0.0;
        for (std::size_t b = 0; b < kOthers; ++b) {
            Doubles x(kFeatures);
            for (std::size_t p = 0; p < players(); ++p) {
                for (auto l = static_cast<std::size_t>(starts[p]); l < static_cast<std::size_t>(starts[p + 1]); ++l) {
                    x[l] = subset >> p & 1U ? rows[row * kFeatures + l] : others[b * kFeatures + l];
                }
            }
            for (std::size_t i = 0; i < kVectors; ++i) {
                total += weights[b] * coefficients[output * kVectors + i] * kernel(x, i);
            }
        }
        return total;
    }

    double value(std::size_t row, std::size_t player, std::size_t output) const {
        constexpr double kFactorial[] = {1.0, 1.0, 2.0, 6.0, 24.0, 120.0};
        const std::size_t n = players();
        double total = 0.0;
        for (unsigned subset = 0; subset < 1U << n; ++subset) {
            if (subset >> player & 1U) continue;
            const double gain = worth(row, subset | 1U << player, output) - worth(row, subset, output);
            const auto size = static_cast<std::size_t>(__builtin_popcount(subset));
            total += kFactorial[size] * kFactorial[n - size - 1] / kFactorial[n] * gain;
        }
        return total;
    }

    Doubles found(const mercer::Level& level, int n_threads) const {
        mercer::Poll poll;
        Doubles values(kRows * kOutputs * players(), 0.0);
        const mercer::ShapleyProblem problem{.rows = rows.data(),
                                             .background = others.data(),
                                             .weights = weights.data(),
                                             .vectors = vectors.data(),
                                             .coefficients = coefficients.data(),
                                             .n_rows = kRows,
                                             .m = kOthers,
                                             .n = kVectors,
                                             .d = kFeatures,
                                             .outputs = kOutputs,
                                             .starts = starts.data(),
                                             .players = static_cast<std::int64_t>(players()),
                                             .rates = rates.data(),
                                             .polynomial = polynomial.data(),
                                             .order = static_cast<std::int64_t>(polynomial.size()) - 1};
        mercer::add_shapley(problem, values.data(), {n_threads, level, poll});
        return values;
    }
};

void by_all_subsets(Doubles rate_of_kind, Doubles polynomial, std::vector<std::int64_t> starts = {0, 1, 2, 3, 4, 5}) {
    std::mt19937 random(3);
    std::uniform_real_distribution<double> uniform(0.0, 2.0);
    const auto some = [&](std::size_t n) {
        Doubles out(n);
        for (double& value : out) value = uniform(random);
        return out;
    };
    Case made{some(kRows * kFeatures), some(kOthers * kFeatures), {0.5, 0.3, 0.2}, some(kVectors * kFeatures),
              some(kOutputs * kVectors), {}, std::move(polynomial), std::move(starts)};
    // The first row is one of the background, and the second has two features in common with it.
    for (std::size_t l = 0; l < kFeatures; ++l) made.rows[l] = made.others[l];
    for (std::size_t l = 0; l < 2; ++l) made.rows[kFeatures + l] = made.others[l];
    for (const double rate : rate_of_kind) {
        for (std::size_t l = 0; l < kFeatures; ++l) made.rates.push_back(rate * (1.0 + 0.1 * static_cast<double>(l)));
    }
    for (const mercer::Level* level : mercer::levels()) {
        const Doubles values = made.found(*level, 1);
        for (std::size_t r = 0; r < kRows; ++r) {
            for (std::size_t o = 0; o < kOutputs; ++o) {
                for (std::size_t p = 0; p < made.players(); ++p) {
                    const double expected = made.value(r, p, o), value = values[(r * kOutputs + o) * made.players() + p];
                    CHECK(std::abs(value - expected) <= 1e-11 * (1.0 + std::abs(expected)));
                }
            }
        }
        CHECK(made.found(*level, 2) == values);
        CHECK(made.found(*level, 3) == values);
    }
}

}  // namespace

void test_shapley() {
    rules();
    by_all_subsets({0.4, 0.0, 0.0, 0.0}, {1.5});
    by_all_subsets({0.1, 0.2, 0.3, 0.1}, {1.0});
    by_all_subsets({0.0, 0.0, 0.0, 0.0}, {1.0, 0.5, 0.0, 0.25});
    by_all_subsets({0.2, 0.0, 0.0, 0.0}, {0.5, 1.0});
    by_all_subsets({0.0, 0.1, 0.0, 0.0}, {0.0, 1.0, 0.2, 0.0, 0.1, 0.01});
    // Players of several features, and one of none.
    by_all_subsets({0.1, 0.2, 0.3, 0.1}, {1.5}, {0, 2, 2, 3, 5});
    by_all_subsets({0.0, 0.0, 0.0, 0.0}, {1.0, 0.5, 0.0, 0.25}, {0, 1, 4, 5});
    by_all_subsets({0.2, 0.0, 0.0, 0.0}, {0.5, 1.0}, {0, 3, 5});
}
