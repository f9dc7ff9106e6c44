// Linear combinations of rows of kernel values, for machines with several outputs. For level.cpp only.
#pragma once

#include <cstdint>

#include "simd/level.hpp"
#include "simd/simd.hpp"

namespace mercer {
namespace {

// The sums are kCombined outputs times two vectors of columns: 12 registers.
template <class T>
void combine_rows(const T* values, std::int64_t stride, std::int64_t rows, const double* coefficients, std::int64_t n,
                  double* out, std::int64_t out_stride) {
    constexpr int step = lanes<double>;
    std::int64_t at = 0;
    for (; at + 2 * step <= n; at += 2 * step) {
        Vec<double> sum[kCombined][2] = {};
        for (std::int64_t j = 0; j < rows; ++j) {
            const T* row = values + j * stride + at;
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
            double* to = out + o * out_stride + at;
            store<double>(to, load(to) + sum[o][0]);
            store<double>(to + step, load(to + step) + sum[o][1]);
        }
    }
    for (; at < n; ++at) {
        for (int o = 0; o < kCombined; ++o) {
            double sum = 0.0;
            for (std::int64_t j = 0; j < rows; ++j) {
                sum += coefficients[j * kCombined + o] * static_cast<double>(values[j * stride + at]);
            }
            out[o * out_stride + at] += sum;
        }
    }
}

template <class T>
constexpr CombinePasses<T> combine_passes() {
    return {&combine_rows<T>};
}

}  // namespace
}  // namespace mercer
