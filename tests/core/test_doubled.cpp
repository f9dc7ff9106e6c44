// Sums in twice the precision of every level, against sums of exact terms and against each other.
#include <cmath>
#include <limits>
#include <vector>

#include "algebra/doubled.hpp"
#include "check.hpp"
#include "gram/doubled_squares.hpp"
#include "simd/dispatch.hpp"

namespace {

using mercer::Doubled;

void sums_of_two_are_exact() {
    const auto sum = Doubled<double>::of_sum(1.0, 0x1p-80);
    CHECK(sum.high == 1.0 && sum.low == 0x1p-80);
    const auto more = sum.plus({-1.0, 0x1p-90});
    CHECK(more.high == 0x1p-80 + 0x1p-90 && more.low == 0.0);
    Doubled<double> all{};
    for (const double term : {1.0, 0x1p-60, -1.0}) all.collect(term);
    CHECK(all.high + all.low == 0x1p-60);
}

// c'Kc in long double, which need not be wider than double: a check of the sum, not of its precision.
double plainly(const mercer::DoubledKernel& kernel, const std::vector<double>& X, const std::vector<double>& c,
               std::int64_t n, std::int64_t d) {
    long double total = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
            long double t = 0;
            for (std::int64_t k = 0; k < d; ++k) {
                const long double x = X[static_cast<std::size_t>(i * d + k)], z = X[static_cast<std::size_t>(j * d + k)];
                if (kernel.inner == mercer::kDoubledProduct) t += x * z;
                else t += kernel.inner == mercer::kDoubledSquares ? (x - z) * (x - z) : std::fabs(x - z);
            }
            long double value = 1;
            if (kernel.radial) value = std::exp(-kernel.gamma * t);
            for (std::int64_t k = 0; k < kernel.degree && !kernel.radial; ++k) value *= kernel.gamma * t + kernel.coef0;
            value = kernel.scale * value + kernel.constant;
            total += c[static_cast<std::size_t>(i)] * value * c[static_cast<std::size_t>(j)];
        }
    }
    return static_cast<double>(total);
}

void squares_are_those_of_plain_loops() {
    for (const std::int64_t n : {1, 64, 130}) {
        for (const std::int64_t d : {1, 9}) {
            std::vector<double> X(static_cast<std::size_t>(n * d)), c(static_cast<std::size_t>(n));
            for (std::size_t i = 0; i < X.size(); ++i) X[i] = std::sin(1.0 + static_cast<double>(7 * i));
            for (std::size_t i = 0; i < c.size(); ++i) c[i] = i % 5 == 0 ? 0.0 : std::cos(static_cast<double>(3 * i));
            for (const mercer::DoubledKernel& kernel :
                 {mercer::DoubledKernel{mercer::kDoubledProduct, false, 0.5, 1.0, 2.0, 0.25, 3},
                  mercer::DoubledKernel{mercer::kDoubledSquares, true, 0.7, 0.0, 1.0, 0.0, 1},
                  mercer::DoubledKernel{mercer::kDoubledAbsolute, true, 2e5, 0.0, 1.0, 0.0, 1}}) {
                const double expected = plainly(kernel, X, c, n, d);
                for (const mercer::Level* level : mercer::levels()) {
                    mercer::Poll poll;
                    std::vector<double> high(static_cast<std::size_t>((n + 63) / 64)), low(high.size());
                    mercer::doubled_squares(kernel, X.data(), n, d, c.data(), 1, 0, n, high.data(), low.data(),
                                            {2, *level, poll});
                    double found = 0.0;
                    for (std::size_t b = 0; b < high.size(); ++b) found += high[b] + low[b];
                    CHECK(std::fabs(found - expected) <= 1e-11 * (1.0 + std::fabs(expected)));
                }
            }
        }
    }
}

// Rows whose distances are no numbers, or overflow: the answer is NaN or 0, and nothing is read out of bounds.
void rows_that_are_no_numbers_give_none() {
    constexpr std::int64_t n = 17, d = 3;
    const std::vector<double> c(n, 1.0);
    for (const double entry : {std::numeric_limits<double>::quiet_NaN(), 1e200, std::numeric_limits<double>::infinity()}) {
        std::vector<double> X(n * d, entry);
        for (std::size_t i = 0; i < X.size(); i += 2) X[i] = -X[i];
        for (const double gamma : {0.0, 1.0}) {
            const mercer::DoubledKernel kernel{mercer::kDoubledSquares, true, gamma, 0.0, 1.0, 0.0, 1};
            for (const mercer::Level* level : mercer::levels()) {
                mercer::Poll poll;
                double high = 0.0, low = 0.0;
                mercer::doubled_squares(kernel, X.data(), n, d, c.data(), 1, 0, n, &high, &low, {1, *level, poll});
                CHECK(std::isnan(high) || (high >= 0.0 && high <= 300.0));
                if (std::isnan(entry)) CHECK(std::isnan(high));
            }
        }
    }
}

}  // namespace

void test_doubled() {
    rows_that_are_no_numbers_give_none();
    sums_of_two_are_exact();
    squares_are_those_of_plain_loops();
}
