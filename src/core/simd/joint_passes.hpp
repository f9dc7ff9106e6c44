// The two passes over a joint machine's working set, a row per class and a column per sample. For level.cpp only.
#pragma once

#include "simd/level.hpp"
#include "simd/simd.hpp"
#include "simd/smo_passes.hpp"

namespace mercer {
namespace {

template <class T>
void add_to_classes(T* const* to, const T* factors, std::int64_t m, const T* row, T shift, std::int64_t n) {
    sweep<T>(n, [&](int, std::int64_t k, auto load_row) {
        prefetch(row + k);
        const Vec<T> x = load_row(row + k) + shift;
        for (std::int64_t c = 0; c < m; ++c) store(to[c] + k, load(to[c] + k) + factors[c] * x);
    });
}

template <class T>
void ends_over_classes(const T* h, const T* up, const T* low, std::int64_t stride, std::int64_t classes, std::int64_t n,
                       T* top, T* bottom) {
    for (std::int64_t k = 0; k < n; k += lanes<T>) {
        Vec<T> most = splat<T>(-kInf<T>), least = splat<T>(kInf<T>);
        for (std::int64_t at = k; at < k + classes * stride; at += stride) {
            const Vec<T> x = load(h + at);
            const Vec<T> above = x + load(up + at), below = x + load(low + at);
            most = above > most ? above : most;
            least = below < least ? below : least;
        }
        store(top + k, most);
        store(bottom + k, least);
    }
}

template <class T>
constexpr JointPasses<T> joint_passes() {
    return {add_to_classes<T>, ends_over_classes<T>};
}

}  // namespace
}  // namespace mercer
