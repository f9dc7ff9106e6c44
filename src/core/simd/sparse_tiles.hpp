// Kernel values between a strip of samples laid out dense, feature by feature, and sparse samples: each stored entry of
// a sparse sample costs one broadcast and a few vector products, whatever the number of features. For level.cpp only.
#pragma once

#include "simd/endings.hpp"
#include "simd/level.hpp"
#include "simd/simd.hpp"
#include "simd/sparse_sums.hpp"

namespace mercer {
namespace {

// Four vectors of samples per strip: enough independent sums to hide the latency of a multiply-add.
constexpr int kStripVectors = 4;
template <class T>
constexpr int kStrip = kStripVectors * lanes<T>;

// The elements of one sample's sums with a strip.
template <class T, class Sum>
constexpr int kStripSums = kStrip<T> * Sum::kParts;

template <class T, class Sum, bool mapped>
MERCER_INLINE void strip_sums(const StripRun<T>& run, std::int64_t j, Sum (&sum)[kStripVectors]) {
    const std::int64_t sample = run.samples[j];
    if (mapped && run.sums != nullptr) {
#pragma GCC unroll 4
        for (int v = 0; v < kStripVectors; ++v) {
            sum[v].load_parts(run.sums + j * kStripSums<T, Sum> + v * lanes<T> * Sum::kParts);
        }
    }
    for (std::int64_t e = run.starts[sample]; e < run.starts[sample + 1]; ++e) {
        const T* at = run.strip + (mapped ? static_cast<std::int64_t>(run.places[run.indices[e]])
                                          : static_cast<std::int64_t>(run.indices[e]) * kStrip<T>);
#pragma GCC unroll 4
        for (int v = 0; v < kStripVectors; ++v) sum[v].add(load(at + v * lanes<T>), run.values[e]);
    }
}

// Keeps the sums of a part of the strip's entries, for the call with the next part.
template <class T, class Sum>
void keep_strip(const StripRun<T>& run, T* sums) {
    for (std::int64_t j = 0; j < run.n; ++j) {
        Sum sum[kStripVectors];
        strip_sums<T, Sum, true>(run, j, sum);
#pragma GCC unroll 4
        for (int v = 0; v < kStripVectors; ++v) {
            sum[v].save_parts(sums + j * kStripSums<T, Sum> + v * lanes<T> * Sum::kParts);
        }
    }
}

// out[j][r]: one row per sparse sample, one column per sample of the strip.
template <class T, class Sum, class Ending, bool mapped>
void store_strip(const StripRun<T>& run, T* out, std::int64_t stride) {
    for (std::int64_t j = 0; j < run.n; ++j) {
        Sum sum[kStripVectors];
        strip_sums<T, Sum, mapped>(run, j, sum);
#pragma GCC unroll 4
        for (int v = 0; v < kStripVectors; ++v) {
            store(out + j * stride + v * lanes<T>, sum[v].template kernel<Ending>(run, v * lanes<T>, run.samples[j]));
        }
    }
}

// total[j] += sum over the strip of coefficient times kernel value, for each of some sums.
template <class T, class Sum, class Ending, bool mapped, int sums>
MERCER_INLINE void sum_each(const StripRun<T>& run, const T* coefficients, std::int64_t stride, double* total,
                            std::int64_t total_stride) {
    for (std::int64_t j = 0; j < run.n; ++j) {
        Sum sum[kStripVectors];
        strip_sums<T, Sum, mapped>(run, j, sum);
        Vec<T> weighted[sums]{};
#pragma GCC unroll 4
        for (int v = 0; v < kStripVectors; ++v) {
            const Vec<T> k = sum[v].template kernel<Ending>(run, v * lanes<T>, run.samples[j]);
#pragma GCC unroll 2
            for (int q = 0; q < sums; ++q) weighted[q] += load(coefficients + q * stride + v * lanes<T>) * k;
        }
#pragma GCC unroll 2
        for (int q = 0; q < sums; ++q) {
            const T all = fold<T, lanes<T>>(weighted[q], [](auto a, auto b) { return a + b; });
            total[q * total_stride + j] += static_cast<double>(all);
        }
    }
}

template <class T, class Sum, class Ending, bool mapped>
void sum_strip(const StripRun<T>& run, const T* coefficients, double* total) {
    sum_each<T, Sum, Ending, mapped, 1>(run, coefficients, 0, total, 0);
}

template <class T, class Dot, bool mapped>
void sum_two_strips(const StripRun<T>& run, const T* coefficients, std::int64_t stride, double* total,
                      std::int64_t total_stride) {
    sum_each<T, Dot, Gaussian, mapped, kSums>(run, coefficients, stride, total, total_stride);
}

template <class T, class Dot, class Shared, bool mapped>
constexpr StripLoops<T> strip_loops() {
    return {{store_strip<T, Dot, Identity, mapped>, store_strip<T, Dot, Gaussian, mapped>,
             store_strip<T, Dot, Polynomial, mapped>, store_strip<T, Dot, Sigmoid, mapped>,
             store_strip<T, Shared, Laplacian, mapped>},
            {sum_strip<T, Dot, Identity, mapped>, sum_strip<T, Dot, Gaussian, mapped>,
             sum_strip<T, Dot, Polynomial, mapped>, sum_strip<T, Dot, Sigmoid, mapped>,
             sum_strip<T, Shared, Laplacian, mapped>},
            sum_two_strips<T, Dot, mapped>};
}

template <class T>
constexpr Strips<T> strips() {
    return {kStrip<T>,
            kStripSums<T, DotSum<T>>,
            strip_loops<T, DotSum<T>, SharedSum<T>, false>(),
            strip_loops<T, DotSum<T>, SharedSum<T>, true>(),
            {keep_strip<T, DotSum<T>>, keep_strip<T, SharedSum<T>>}};
}

constexpr Strips<double> exact_strips() {
    return {kStrip<double>,
            kStripSums<double, ExactDotSum>,
            strip_loops<double, ExactDotSum, ExactSharedSum, false>(),
            strip_loops<double, ExactDotSum, ExactSharedSum, true>(),
            {keep_strip<double, ExactDotSum>, keep_strip<double, ExactSharedSum>}};
}

// Half the squared length of a sample, or the sum of its absolute values where `l1`, by the very additions that the
// exact sums make of it with itself, so that its distance to itself is zero.
inline void exact_norm(const double* values, std::int64_t n, bool l1, double* high, double* low) {
    Vec<double> highs, lows;
    if (l1) {
        ExactSharedSum sum;
        for (std::int64_t e = 0; e < n; ++e) sum.add(splat<double>(values[e]), values[e]);
        highs = sum.high, lows = sum.low;
    } else {
        ExactDotSum sum;
        for (std::int64_t e = 0; e < n; ++e) sum.add(splat<double>(values[e]), values[e]);
        highs = sum.high, lows = sum.low;
    }
    double first[2][lanes<double>];
    store(first[0], highs);
    store(first[1], lows);
    *high = 0.5 * first[0][0];
    *low = 0.5 * first[1][0];
}

}  // namespace
}  // namespace mercer
