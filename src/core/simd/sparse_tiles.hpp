// Kernel values between a strip of samples laid out dense, feature by feature, and sparse samples: each stored entry of
// a sparse sample costs one broadcast and a few vector products, whatever the number of features. For level.cpp only.
#pragma once

#include "simd/endings.hpp"
#include "simd/level.hpp"
#include "simd/simd.hpp"

namespace mercer {
namespace {

// Four vectors of samples per strip: enough independent sums to hide the latency of a multiply-add.
constexpr int kStripVectors = 4;
template <class T>
constexpr int kStrip = kStripVectors * lanes<T>;

struct SparseDot {
    template <class T>
    static Vec<T> start(Vec<T>) {
        return Vec<T>{};
    }
    template <class T>
    static Vec<T> add(Vec<T> sum, Vec<T> a, T b) {
        return sum + a * b;
    }
};

// |a - b|_1 = |a|_1 + sum over the stored entries of b of |a_k - b_k| - |a_k|; the strip's norms are its |a|_1.
struct SparseDistance1 {
    template <class T>
    static Vec<T> start(Vec<T> norm) {
        return norm;
    }
    template <class T>
    static Vec<T> add(Vec<T> sum, Vec<T> a, T b) {
        const Vec<T> difference = a - b;
        return sum + (larger<T>(difference, -difference) - larger<T>(a, -a));
    }
};

template <class T, class Inner>
MERCER_INLINE void strip_values(const StripRun<T>& run, std::int64_t sample, Vec<T> (&sum)[kStripVectors]) {
#pragma GCC unroll 4
    for (int v = 0; v < kStripVectors; ++v) sum[v] = Inner::template start<T>(load(run.strip_norms + v * lanes<T>));
    for (std::int64_t e = run.starts[sample]; e < run.starts[sample + 1]; ++e) {
        const T* at = run.strip + static_cast<std::int64_t>(run.indices[e]) * kStrip<T>;
#pragma GCC unroll 4
        for (int v = 0; v < kStripVectors; ++v) {
            sum[v] = Inner::template add<T>(sum[v], load(at + v * lanes<T>), run.values[e]);
        }
    }
}

template <class T, class Inner, class Ending>
MERCER_INLINE Vec<T> strip_kernel(const StripRun<T>& run, std::int64_t sample, Vec<T> sum, int v) {
    return Ending::template apply<T>(sum, load(run.strip_norms + v * lanes<T>), splat<T>(run.norms[sample]),
                                     run.numbers);
}

// out[j][r]: one row per sparse sample, one column per sample of the strip.
template <class T, class Inner, class Ending>
void store_strip(const StripRun<T>& run, T* out, std::int64_t stride) {
    for (std::int64_t j = 0; j < run.n; ++j) {
        Vec<T> sum[kStripVectors];
        strip_values<T, Inner>(run, run.samples[j], sum);
#pragma GCC unroll 4
        for (int v = 0; v < kStripVectors; ++v) {
            store(out + j * stride + v * lanes<T>, strip_kernel<T, Inner, Ending>(run, run.samples[j], sum[v], v));
        }
    }
}

// total[j] += sum over the strip of coefficient times kernel value.
template <class T, class Inner, class Ending>
void sum_strip(const StripRun<T>& run, const T* coefficients, double* total) {
    for (std::int64_t j = 0; j < run.n; ++j) {
        Vec<T> sum[kStripVectors];
        strip_values<T, Inner>(run, run.samples[j], sum);
        Vec<T> weighted{};
#pragma GCC unroll 4
        for (int v = 0; v < kStripVectors; ++v) {
            weighted +=
                load(coefficients + v * lanes<T>) * strip_kernel<T, Inner, Ending>(run, run.samples[j], sum[v], v);
        }
        total[j] += static_cast<double>(fold<T, lanes<T>>(weighted, [](auto a, auto b) { return a + b; }));
    }
}

template <class T>
constexpr Strips<T> strips() {
    return {kStrip<T>,
            {store_strip<T, SparseDot, Identity>, store_strip<T, SparseDot, Gaussian>,
             store_strip<T, SparseDot, Polynomial>, store_strip<T, SparseDot, Sigmoid>,
             store_strip<T, SparseDistance1, Laplacian>},
            {sum_strip<T, SparseDot, Identity>, sum_strip<T, SparseDot, Gaussian>, sum_strip<T, SparseDot, Polynomial>,
             sum_strip<T, SparseDot, Sigmoid>, sum_strip<T, SparseDistance1, Laplacian>}};
}

}  // namespace
}  // namespace mercer
