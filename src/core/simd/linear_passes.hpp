// Inner products and sums of dense rows with a float64 vector, for the linear machines. For level.cpp only.
#pragma once

#include <cstdint>

#include "simd/level.hpp"
#include "simd/simd.hpp"

namespace mercer {
namespace {

constexpr int kDoubles = lanes<double>;

// Four accumulators hide the latency of a multiply-add. The order of summation is fixed, so results are reproducible.
template <class T>
double linear_dot(const T* x, const double* w, std::int64_t n) {
    Vec<double> sum[4] = {};
    std::int64_t k = 0;
    for (; k + 4 * kDoubles <= n; k += 4 * kDoubles) {
        prefetch(x + k);
        for (int a = 0; a < 4; ++a) sum[a] += widened(x + k + a * kDoubles) * load(w + k + a * kDoubles);
    }
    for (; k + kDoubles <= n; k += kDoubles) sum[0] += widened(x + k) * load(w + k);
    const Vec<double> all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    double total = fold<double, kDoubles>(all, [](auto a, auto b) { return a + b; });
    for (; k < n; ++k) total += static_cast<double>(x[k]) * w[k];
    return total;
}

template <class T>
void linear_add(double* w, const T* x, double factor, std::int64_t n) {
    const Vec<double> scale = splat<double>(factor);
    std::int64_t k = 0;
    for (; k + kDoubles <= n; k += kDoubles) {
        Vec<double> v = load(w + k);
        v += scale * widened(x + k);
        store<double>(w + k, v);
    }
    for (; k < n; ++k) w[k] += factor * static_cast<double>(x[k]);
}

template <class T>
constexpr LinearPasses<T> linear_passes() {
    return {&linear_dot<T>, &linear_add<T>};
}

}  // namespace
}  // namespace mercer
