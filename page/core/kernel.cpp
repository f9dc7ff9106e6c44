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
    prepare_dense(PickedRows<double>{points.x, n, d}, centre.data(), 1.0, prepared.data(), norms.data(), threads);
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

namespace {

// Along a row of the grid a power of an inner product is a polynomial in the first coordinate: its coefficients are
// summed, and it is evaluated once.
void add_polynomial(const Points& points, const Term& term, const Vector& coefficients, const Vector& across,
                    const Vector& down, double* out) {
    const bool linear = term.kind == kLinear;
    const int degree = linear ? 1 : term.degree;
    const double gamma = linear ? 1.0 : term.gamma, coef0 = linear ? 0.0 : term.coef0;
    const auto size = static_cast<std::size_t>(degree) + 1;
    Vector sums(size), powers(size);
    for (const double y : down) {
        std::fill(sums.begin(), sums.end(), 0.0);
        for (std::size_t j = 0; j < points.n; ++j) {
            if (coefficients[j] == 0.0) continue;
            const double slope = gamma * points.x[j * points.d];
            const double rest = (points.d == 1 ? 0.0 : gamma * y * points.x[j * points.d + 1]) + coef0;
            powers[0] = 1.0;  // of the rest
            for (std::size_t k = 1; k < size; ++k) powers[k] = powers[k - 1] * rest;
            double share = coefficients[j] * term.scale;  // times slope^k and the binomial coefficient
            for (std::size_t k = 0; k < size; ++k) {
                sums[k] += share * powers[size - 1 - k];
                share *= slope * static_cast<double>(size - 1 - k) / static_cast<double>(k + 1);
            }
        }
        for (const double x : across) {
            double value = 0.0;
            for (std::size_t k = size; k-- > 0;) value = value * x + sums[k];
            *out++ += value;
        }
    }
}

// Gaussian and Laplacian are products over the coordinates, so that exponentials are needed along the edges only; what
// is left inside is a multiplication.
void add_radial(const Points& points, const Term& term, const Vector& coefficients, const Vector& across,
                const Vector& down, double* out) {
    const auto factor = [&](double difference) {
        const double size = term.kind == kGaussianKind ? difference * difference : std::abs(difference);
        return std::exp(-term.gamma * size);
    };
    const std::size_t columns = across.size();
    Vector along(columns);
    for (std::size_t j = 0; j < points.n; ++j) {
        const double coefficient = coefficients[j] * term.scale;
        if (coefficient == 0.0) continue;
        for (std::size_t c = 0; c < columns; ++c) along[c] = factor(across[c] - points.x[j * points.d]);
        for (std::size_t r = 0; r < down.size(); ++r) {
            const double share = coefficient * (points.d == 1 ? 1.0 : factor(down[r] - points.x[j * points.d + 1]));
            if (std::abs(share) < 1e-30) continue;
            double* const to = out + r * columns;
            for (std::size_t c = 0; c < columns; ++c) to[c] += share * along[c];
        }
    }
}

// n places from the first on, evenly.
Vector places(double first, double length, std::size_t n) {
    Vector out(n, first);
    for (std::size_t i = 1; i < n; ++i) out[i] = first + length * static_cast<double>(i) / static_cast<double>(n - 1);
    return out;
}

}  // namespace

void add_to_grid(const Points& points, const std::vector<Term>& terms, const Vector& coefficients, const Grid& grid,
                 double* out) {
    const Vector across = places(grid.left, grid.width, grid.columns);
    const Vector down = places(grid.top, grid.height, points.d == 1 ? 1 : grid.rows);
    for (const Term& term : terms) {
        const bool radial = term.kind == kGaussianKind || term.kind == kLaplacianKind;
        (radial ? add_radial : add_polynomial)(points, term, coefficients, across, down, out);
    }
}

}  // namespace mercer::page
