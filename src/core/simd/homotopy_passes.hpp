// Two linear combinations of the same rows: K times the free variables, and times their slopes. For level.cpp only.
#pragma once

#include <cstdint>

#include "simd/level.hpp"
#include "simd/simd.hpp"

namespace mercer {
namespace {

// The sums are two outputs times four vectors of columns: 8 registers.
void add_rows_twice(const double* const* rows, std::int64_t count, const double* first, const double* second,
                    std::int64_t n, double* to_first, double* to_second) {
    constexpr int step = lanes<double>, width = 4;
    std::int64_t at = 0;
    for (; at + width * step <= n; at += width * step) {
        Vec<double> a[width] = {}, b[width] = {};
        for (std::int64_t j = 0; j < count; ++j) {
            const double* const row = rows[j] + at;
            const double x = first[j], y = second[j];
#pragma GCC unroll 4
            for (int k = 0; k < width; ++k) {
                const Vec<double> values = load(row + k * step);
                a[k] += x * values;
                b[k] += y * values;
            }
        }
#pragma GCC unroll 4
        for (int k = 0; k < width; ++k) {
            double *const to_a = to_first + at + k * step, *const to_b = to_second + at + k * step;
            store<double>(to_a, load(to_a) + a[k]);
            store<double>(to_b, load(to_b) + b[k]);
        }
    }
    for (; at < n; ++at) {
        double a = 0.0, b = 0.0;
        for (std::int64_t j = 0; j < count; ++j) {
            a += first[j] * rows[j][at];
            b += second[j] * rows[j][at];
        }
        to_first[at] += a;
        to_second[at] += b;
    }
}

constexpr HomotopyPasses homotopy_passes() { return {&add_rows_twice}; }

}  // namespace
}  // namespace mercer
