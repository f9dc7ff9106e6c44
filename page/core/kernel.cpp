#include "kernel.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gram/blocks.hpp"
#include "simd/level_entries.hpp"
#include "simd/padded.hpp"

namespace mercer {
extern const Level level_plain;
}

namespace mercer::page {
namespace {

constexpr double kLog2E = 1.4426950408889634074;
constexpr double kRoundoff = 0x1p-53;

struct Recipe {
    int ending;
    double numbers[kNumbers];
};

Recipe recipe(const Term& term) {
    switch (term.kind) {
        case kLinear:
            return {kIdentity, {term.scale, 0.0, 0.0, 0.0}};
        case kPolynomialKind:
            return {kPolynomial, {term.scale, term.gamma, term.coef0, static_cast<double>(term.degree)}};
        case kGaussianKind:
            return {kGaussianOfDifferences, {term.scale, term.gamma * kLog2E, 0.0, 0.0}};
        default:
            return {kLaplacianOfDifferences, {term.scale, term.gamma * kLog2E, 0.0, 0.0}};
    }
}

double power(double base, int degree) {
    double value = 1.0;
    for (; degree > 0; degree >>= 1) {
        if (degree & 1) value *= base;
        base *= base;
    }
    return value;
}

double length(const Points& points, std::size_t i) {
    double square = 0.0;
    for (std::size_t k = 0; k < points.d; ++k) square += points.x[i * points.d + k] * points.x[i * points.d + k];
    return std::sqrt(square);
}

}  // namespace

Vector gram(const Points& points, const std::vector<Term>& terms) {
    const auto n = static_cast<std::int64_t>(points.n), d = static_cast<std::int64_t>(points.d);
    Poll poll;
    const Threads threads{1, level_plain, poll};
    const Tiles<double>& tiles = tiles_of<double>(level_plain);
    const std::int64_t rows = round_up(n, tiles.rows), columns = round_up(n, tiles.columns), stride = columns + 16;
    Vector out(points.n * points.n, 0.0), norms(points.n), prepared(points.n * points.d);
    const Vector centre(points.d, 0.0);
    prepare_dense(points.x, n, d, centre.data(), 1.0, prepared.data(), norms.data(), threads);
    const DenseSamples<double> samples{prepared.data(), n, d, norms.data()};
    Padded<double> panels(columns * d, 0.0), panel_norms(columns, 0.0), values(rows * stride, 0.0);
    pack(samples, nullptr, n, panels.data(), panel_norms.data(), threads);
    const Panels<double> packed{panels.data(), panel_norms.data(), n, d};
    for (const Term& term : terms) {
        const Recipe own = recipe(term);
        store_square(packed, samples, nullptr, own.ending, own.numbers, values.data(), stride, threads);
        for (std::size_t i = 0; i < points.n; ++i) {
            const double* const from = values.data() + static_cast<std::int64_t>(i) * stride;
            for (std::size_t j = 0; j < points.n; ++j) out[i * points.n + j] += from[j];
        }
    }
    return out;
}

Vector rounding(const Points& points, const std::vector<Term>& terms, const Vector& coefficients) {
    const std::size_t n = points.n;
    const double t = static_cast<double>(points.d);
    double l1 = 0.0, reach = 0.0;
    std::size_t used = 0;
    Vector lengths(n);
    for (std::size_t j = 0; j < n; ++j) {
        lengths[j] = length(points, j);
        l1 += std::abs(coefficients[j]);
        reach += std::abs(coefficients[j]) * lengths[j];
        used += coefficients[j] != 0.0;
    }
    // The ending, the sum over terms of the kernel, and the sum over points, whatever its order.
    const double sums = kRoundoff * (24.0 + 8.0 + static_cast<double>(terms.size() + used));
    const double underflow = 64.0 * t * std::numeric_limits<double>::denorm_min();
    Vector out(n, 0.0);
    for (const Term& term : terms) {
        for (std::size_t i = 0; i < n; ++i) {
            if (term.kind == kGaussianKind || term.kind == kLaplacianKind) {
                out[i] += term.scale * l1 * (0.41 * kRoundoff * (t + 10.0) + sums);
            } else if (term.kind == kLinear) {
                out[i] += 1.1 * term.scale * (((t + 8.0) * kRoundoff + sums) * reach * lengths[i] + underflow * l1);
            } else {
                double powers = 0.0;
                for (std::size_t j = 0; j < n; ++j) {
                    if (coefficients[j] == 0.0) continue;
                    const double base = term.gamma * lengths[i] * lengths[j] + std::abs(term.coef0);
                    powers += std::abs(coefficients[j]) * power(base, term.degree);
                }
                const double relative = term.degree * (t + 10.0) * kRoundoff + sums;
                out[i] += 1.1 * term.scale * (relative * powers + term.degree * underflow * l1);
            }
        }
    }
    return out;
}

// Gaussian and Laplacian are products over the coordinates, so that exponentials are needed along the edges only; what
// is left inside is a multiplication.
void add_to_grid(const Points& points, const std::vector<Term>& terms, const Vector& coefficients, const Grid& grid,
                 double* out) {
    const std::size_t columns = grid.columns, rows = points.d == 1 ? 1 : grid.rows;
    const double across = columns > 1 ? grid.width / static_cast<double>(columns - 1) : 0.0;
    const double down = rows > 1 ? grid.height / static_cast<double>(rows - 1) : 0.0;
    Vector along(columns), beside(rows);
    for (const Term& term : terms) {
        const bool radial = term.kind == kGaussianKind || term.kind == kLaplacianKind;
        const auto factor = [&](double difference) {
            const double size = term.kind == kGaussianKind ? difference * difference : std::abs(difference);
            return std::exp(-term.gamma * size);
        };
        for (std::size_t j = 0; j < points.n; ++j) {
            const double coefficient = coefficients[j] * term.scale;
            if (coefficient == 0.0) continue;
            const double x = points.x[j * points.d], y = points.d == 1 ? 0.0 : points.x[j * points.d + 1];
            for (std::size_t c = 0; c < columns; ++c) {
                const double at = grid.left + across * static_cast<double>(c);
                along[c] = radial ? factor(at - x) : at * x;
            }
            for (std::size_t r = 0; r < rows; ++r) {
                const double at = grid.top + down * static_cast<double>(r);
                beside[r] = points.d == 1 ? (radial ? 1.0 : 0.0) : radial ? factor(at - y) : at * y;
            }
            for (std::size_t r = 0; r < rows; ++r) {
                double* const to = out + r * columns;
                if (radial) {
                    const double share = coefficient * beside[r];
                    if (std::abs(share) < 1e-30) continue;
                    for (std::size_t c = 0; c < columns; ++c) to[c] += share * along[c];
                } else if (term.kind == kLinear) {
                    for (std::size_t c = 0; c < columns; ++c) to[c] += coefficient * (along[c] + beside[r]);
                } else {
                    const double rest = term.gamma * beside[r] + term.coef0;
                    for (std::size_t c = 0; c < columns; ++c) {
                        double base = term.gamma * along[c] + rest, value = coefficient;
                        for (int degree = term.degree; degree > 0; --degree) value *= base;
                        to[c] += value;
                    }
                }
            }
        }
    }
}

}  // namespace mercer::page
