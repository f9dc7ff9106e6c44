// The nodes are zeros of a Legendre polynomial, by Newton's method in the angle: x = cos(angle) would lose digits of
// 1 - x^2, and with it of the weights, where x is near 1.
#include "explain/gauss_legendre.hpp"

#include <cmath>
#include <numbers>

namespace mercer {

void gauss_legendre(std::int64_t n, double* nodes, double* weights) {
    const auto size = static_cast<double>(n);
    for (std::int64_t i = 0; i < (n + 1) / 2; ++i) {
        double angle = std::numbers::pi * (static_cast<double>(i) + 0.75) / (size + 0.5);  // right to 1/n^2
        double slope = 1.0;
        for (int steps = 0; steps < 8; ++steps) {  // each squares the error
            const double x = std::cos(angle);
            double before = 0.0, value = 1.0;
            for (std::int64_t k = 1; k <= n; ++k) {
                const auto degree = static_cast<double>(k);
                const double next = ((2.0 * degree - 1.0) * x * value - (degree - 1.0) * before) / degree;
                before = value;
                value = next;
            }
            slope = size * (x * value - before) / std::sin(angle);
            const double change = value / slope;
            angle -= change;
            if (std::abs(change) < 1e-15) break;
        }
        const double low = std::sin(0.5 * angle), high = std::cos(0.5 * angle);
        nodes[i] = low * low;
        nodes[n - 1 - i] = high * high;
        weights[i] = weights[n - 1 - i] = 1.0 / (slope * slope);
    }
}

}  // namespace mercer
