// The two passes over a working set that one step of sequential minimal optimisation makes, and their relatives.
// For level.cpp only. Two accumulators per extremum hide the latency of compare-and-select.
#pragma once

#include <limits>

#include "simd/level.hpp"
#include "simd/simd.hpp"

namespace mercer {
namespace {

template <class T>
constexpr T kInf = std::numeric_limits<T>::infinity();

// Calls body(accumulator, offset, load) over [0, n) by whole vectors, two interleaved; `load` reads a row of K without
// running past its end. The core's own arrays are padded: for them plain loads are always right.
template <class T, class Body>
inline void sweep(std::int64_t n, Body body) {
    constexpr int L = lanes<T>;
    const auto whole = [](const T* row) { return load(row); };
    std::int64_t k = 0;
    for (; k + 2 * L <= n; k += 2 * L) {
        body(0, k, whole);
        body(1, k + L, whole);
    }
    if (k + L <= n) {
        body(0, k, whole);
        k += L;
    }
    if (k < n) {
        const int rest = static_cast<int>(n - k);
        body(1, k, [rest](const T* row) { return load_first(row, rest); });
    }
}

template <class T>
struct ExtremesSoFar {
    Largest<T> top[2] = {Largest<T>(-kInf<T>), Largest<T>(-kInf<T>)};
    Vec<T> bottom[2] = {splat<T>(kInf<T>), splat<T>(kInf<T>)};

    inline void see(int set, std::int64_t k, Vec<T> h, const T* up, const T* low) {
        top[set].offer(h + load(up + k), k);
        const Vec<T> below = h + load(low + k);
        bottom[set] = below < bottom[set] ? below : bottom[set];
    }

    inline void finish(Extremes<T>* out) {
        top[0].merge(top[1]);
        top[0].best(&out->max_up, &out->i_up);
        const Vec<T> low = bottom[1] < bottom[0] ? bottom[1] : bottom[0];
        out->min_low = fold<T, lanes<T>>(low, [](auto a, auto b) { return a < b ? a : b; });
    }
};

template <class T>
void extremes(const T* h, const T* up, const T* low, std::int64_t n, Extremes<T>* out) {
    ExtremesSoFar<T> seen;
    sweep<T>(n, [&](int set, std::int64_t k, auto) { seen.see(set, k, load(h + k), up, low); });
    seen.finish(out);
}

template <class T>
void update(T* h, const T* ki, const T* kj, T step, const T* up, const T* low, std::int64_t n, Extremes<T>* out) {
    ExtremesSoFar<T> seen;
    if (kj != nullptr) {
        sweep<T>(n, [&](int set, std::int64_t k, auto row) {
            prefetch(kj + k);
            const Vec<T> x = load(h + k) - step * (row(ki + k) - row(kj + k));
            store(h + k, x);
            seen.see(set, k, x, up, low);
        });
    } else {
        sweep<T>(n, [&](int set, std::int64_t k, auto row) {
            prefetch(ki + k);
            const Vec<T> x = load(h + k) - step * row(ki + k);
            store(h + k, x);
            seen.see(set, k, x, up, low);
        });
    }
    seen.finish(out);
}

template <class T>
std::int64_t partner(const T* h, const T* ki, const T* low, const T* diag, const T* floor, T h_i, T diag_i, T floor_i,
                     std::int64_t n) {
    Largest<T> gain[2] = {Largest<T>(T{0}), Largest<T>(T{0})};
    sweep<T>(n, [&](int set, std::int64_t k, auto row) {
        prefetch(ki + k);
        const Vec<T> gap = larger<T>(h_i - (load(h + k) + load(low + k)), Vec<T>{});
        const Vec<T> eta = larger<T>(diag_i + load(diag + k) - T{2} * row(ki + k), floor_i + load(floor + k));
        gain[set].offer(roughly_divided<T>(gap * gap, eta), k);
    });
    gain[0].merge(gain[1]);
    T top;
    std::int64_t j;
    gain[0].best(&top, &j);
    return j;
}

template <class T>
std::int64_t coordinate(const T* h, const T* up, const T* low, const T* diag, const T* floor, std::int64_t n) {
    Largest<T> gain[2] = {Largest<T>(T{0}), Largest<T>(T{0})};
    sweep<T>(n, [&](int set, std::int64_t k, auto) {
        const Vec<T> x = load(h + k);
        const Vec<T> v = larger<T>(larger<T>(x + load(up + k), -(x + load(low + k))), Vec<T>{});
        gain[set].offer(roughly_divided<T>(v * v, larger<T>(load(diag + k), load(floor + k))), k);
    });
    gain[0].merge(gain[1]);
    T top;
    std::int64_t i;
    gain[0].best(&top, &i);
    return i;
}

template <class T>
void subtract(double* acc, const T* row, double factor, std::int64_t n) {
    // The compiler vectorises this well enough: it runs once in 10 q steps.
    for (std::int64_t k = 0; k < n; ++k) acc[k] -= factor * static_cast<double>(row[k]);
}

template <class T>
constexpr SmoPasses<T> smo_passes() {
    return {update<T>, extremes<T>, partner<T>, coordinate<T>, subtract<T>};
}

}  // namespace
}  // namespace mercer
