// Linear combinations of rows of kernel values, for machines with several outputs. For level.cpp only.
#pragma once

#include <cstdint>

#include "simd/level.hpp"
#include "simd/simd.hpp"

namespace mercer {
namespace {

// The sums are kCombined outputs times two vectors of columns: 12 registers. The last columns are copied and filled up
// with zeros: a second loop for them might be compiled to other roundings, and then the sum of a column would depend on
// the number of columns.
template <class T>
void combine_rows(const T* values, std::int64_t stride, std::int64_t rows, const double* coefficients, std::int64_t n,
                  double* out, std::int64_t out_stride) {
    constexpr int step = lanes<double>, width = 2 * step;
    for (std::int64_t at = 0; at < n; at += width) {
        const int filled = n - at < width ? static_cast<int>(n - at) : width;
        T last[width] = {};
        Vec<double> sum[kCombined][2] = {};
        for (std::int64_t j = 0; j < rows; ++j) {
            const T* row = values + j * stride + at;
            if (filled < width) {
                for (int i = 0; i < filled; ++i) last[i] = row[i];
                row = last;
            }
            const Vec<double> left = widened(row), right = widened(row + step);
#pragma GCC unroll 6
            for (int o = 0; o < kCombined; ++o) {
                const double c = coefficients[j * kCombined + o];
                sum[o][0] += c * left;
                sum[o][1] += c * right;
            }
        }
#pragma GCC unroll 6
        for (int o = 0; o < kCombined; ++o) {
            double sums[width];
            store<double>(sums, sum[o][0]);
            store<double>(sums + step, sum[o][1]);
            double* to = out + o * out_stride + at;
            for (int i = 0; i < filled; ++i) to[i] += sums[i];
        }
    }
}

template <class T>
constexpr CombinePasses<T> combine_passes() {
    return {&combine_rows<T>};
}

}  // namespace
}  // namespace mercer
