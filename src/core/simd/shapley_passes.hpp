// The sums behind Shapley values of product kernels (explain/shapley.hpp), one vector per lane. For level.cpp only.
#pragma once

#include <cstdint>

#include "simd/endings.hpp"
#include "simd/level.hpp"
#include "simd/simd.hpp"

namespace mercer {
namespace {

using Lanes = Vec<double>;
constexpr int kLanes = lanes<double>;
// Nodes that are multiplied together, so that no product waits for the one before it.
constexpr int kNodesAtOnce = 4;

inline Lanes at(const double* room, std::int64_t i) { return load(room + i * kLanes); }
inline void put(double* room, std::int64_t i, Lanes v) { store<double>(room + i * kLanes, v); }

// 2^x of any x; infinite where it overflows.
template <int count>
MERCER_INLINE void exp2_any(Vec<double> (&x)[count]) {
    constexpr double kHighest = 1023.0;
    Vec<double> clamped[count];
    for (int i = 0; i < count; ++i) clamped[i] = smaller<double>(x[i], splat<double>(kHighest));
    exp2_negative<double>(clamped);
    for (int i = 0; i < count; ++i) x[i] = x[i] > kHighest ? splat<double>(__builtin_inf()) : clamped[i];
}

// The factor of one feature, as an exponent of 2.
inline Lanes exponent_of(const ShapleyRun& run, double value, Lanes s, std::int64_t l) {
    const Lanes x = splat<double>(value), difference = x - s, square = difference * difference;
    const double* rates = run.rates + l;
    Lanes exponent{};
    if (run.used[kSquareRate]) exponent += rates[kSquareRate * run.d] * square;
    if (run.used[kAbsoluteRate]) exponent += rates[kAbsoluteRate * run.d] * larger<double>(difference, -difference);
    if (run.used[kChi2Rate]) {
        const Lanes sum = x + s;
        exponent += rates[kChi2Rate * run.d] * (sum > 0.0 ? square / sum : Lanes{});
    }
    if (run.used[kDotRate]) exponent += rates[kDotRate * run.d] * (x * s);
    return exponent;
}

// to[l] = the factor of every feature at one row: a number, or a power series in y.
inline void factors_of(const ShapleyRun& run, const double* row, double* to) {
    const std::int64_t size = run.order + 1;
    for (std::int64_t l = 0; l < run.d; l += kNodesAtOnce) {
        const int some = static_cast<int>(run.d - l < kNodesAtOnce ? run.d - l : kNodesAtOnce);
        Vec<double> value[kNodesAtOnce];
        for (int c = 0; c < kNodesAtOnce; ++c) value[c] = splat<double>(1.0);
        if (run.exponents) {
            for (int c = 0; c < kNodesAtOnce; ++c) {
                const std::int64_t own = l + (c < some ? c : some - 1);
                value[c] = exponent_of(run, row[own], at(run.vectors, own), own);
            }
            exp2_any(value);
        }
        for (int c = 0; c < some; ++c) {
            const Lanes step = row[l + c] * at(run.vectors, l + c);
            put(to, (l + c) * size, value[c]);
            for (std::int64_t k = 1; k < size; ++k) {
                value[c] *= step / static_cast<double>(k);
                put(to, (l + c) * size + k, value[c]);
            }
        }
    }
}

// total[k] (+)= sum over `count` nodes of start * weight * product over the others of (base + node * change).
template <int count>
inline void add_nodes(const double* base, const double* change, std::int64_t n, const double* nodes,
                      const double* weights, Lanes start, bool first, double* before, double* total) {
    Lanes product[count], node[count];  // copies, which no store below could change
#pragma GCC unroll 4
    for (int c = 0; c < count; ++c) product[c] = splat<double>(1.0), node[c] = splat<double>(nodes[c]);
    for (std::int64_t k = 0; k < n; ++k) {
        const Lanes b = at(base, k), d = at(change, k);
#pragma GCC unroll 4
        for (int c = 0; c < count; ++c) {
            put(before, k * count + c, product[c]);
            product[c] *= node[c] * d + b;
        }
    }
    for (int c = 0; c < count; ++c) product[c] = weights[c] * start;
    for (std::int64_t k = n - 1; k >= 0; --k) {
        const Lanes b = at(base, k), d = at(change, k);
        Lanes sum = first ? Lanes{} : at(total, k);
#pragma GCC unroll 4
        for (int c = 0; c < count; ++c) {
            sum += at(before, k * count + c) * product[c];
            product[c] *= node[c] * d + b;
        }
        put(total, k, sum);
    }
}

inline void add_rule(const double* base, const double* change, std::int64_t n, const double* nodes,
                     const double* weights, std::int64_t n_nodes, Lanes start, double* before, double* total) {
    std::int64_t q = 0;
    for (; q + kNodesAtOnce <= n_nodes; q += kNodesAtOnce) {
        add_nodes<kNodesAtOnce>(base, change, n, nodes + q, weights + q, start, q == 0, before, total);
    }
    const auto rest = n_nodes - q;
    if (rest == 3) add_nodes<3>(base, change, n, nodes + q, weights + q, start, q == 0, before, total);
    if (rest == 2) add_nodes<2>(base, change, n, nodes + q, weights + q, start, q == 0, before, total);
    if (rest == 1) add_nodes<1>(base, change, n, nodes + q, weights + q, start, q == 0, before, total);
}

// a = a b, as power series up to y^(size - 1).
MERCER_INLINE void multiply(Lanes* a, const Lanes* b, std::int64_t size) {
    for (std::int64_t k = size - 1; k >= 0; --k) {
        Lanes sum = a[0] * b[k];
        for (std::int64_t i = 1; i <= k; ++i) sum += a[i] * b[k - i];
        a[k] = sum;
    }
}

// The same as add_rule with power series as factors, of `fixed` coefficients, or of `given` ones where that is 0.
template <int fixed>
void add_series_rule(const double* base, const double* change, std::int64_t n, const double* nodes,
                     const double* weights, std::int64_t n_nodes, const Lanes* start, std::int64_t given,
                     double* before, double* total) {
    const std::int64_t size = fixed > 0 ? fixed : given;
    Lanes product[kMaxSeries], factor[kMaxSeries];
    const auto set_factor = [&](std::int64_t k, double node) {
        for (std::int64_t i = 0; i < size; ++i) factor[i] = node * at(change, k * size + i) + at(base, k * size + i);
    };
    for (std::int64_t q = 0; q < n_nodes; ++q) {
        for (std::int64_t i = 0; i < size; ++i) product[i] = splat<double>(i == 0 ? 1.0 : 0.0);
        for (std::int64_t k = 0; k < n; ++k) {
            for (std::int64_t i = 0; i < size; ++i) put(before, k * size + i, product[i]);
            set_factor(k, nodes[q]);
            multiply(product, factor, size);
        }
        for (std::int64_t i = 0; i < size; ++i) product[i] = weights[q] * start[i];
        for (std::int64_t k = n - 1; k >= 0; --k) {
            for (std::int64_t i = 0; i < size; ++i) {
                Lanes sum = q == 0 ? Lanes{} : at(total, k * size + i);
                for (std::int64_t j = 0; j <= i; ++j) sum += at(before, k * size + j) * product[i - j];
                put(total, k * size + i, sum);
            }
            set_factor(k, nodes[q]);
            multiply(product, factor, size);
        }
    }
}

// The nodes that err by less than rounding, for all lanes; `exact` of them do not err.
inline std::int64_t enough_nodes(const ShapleyRun& run, const double* base, const double* change, std::int64_t n,
                                 std::int64_t exact) {
    constexpr int kChains = 4;
    Lanes largest[kChains], around[kChains];
    for (int c = 0; c < kChains; ++c) largest[c] = around[c] = splat<double>(1.0);
    for (std::int64_t k = 0; k < n; k += kChains) {
        for (int c = 0; c < kChains; ++c) {
            if (k + c >= n) break;
            const Lanes rise = at(change, k + c), high = at(base, k + c) + larger<double>(rise, Lanes{});
            largest[c] *= high;
            around[c] *= high + (0.5 * (kHalfAxis - 1.0)) * larger<double>(rise, -rise);
        }
    }
    const Lanes top = (largest[0] * largest[1]) * (largest[2] * largest[3]);
    const Lanes all = (around[0] * around[1]) * (around[2] * around[3]);
    const Lanes ratio = all > 0.0 ? all / top : splat<double>(1.0);  // where even the upper bound is 0, all products are
    const double worst = fold<double, kLanes>(ratio, [](auto a, auto b) { return a > b ? a : b; });
    if (!(worst < 1e300)) return exact;
    const auto exponent = static_cast<double>((__builtin_bit_cast(std::int64_t, worst) >> 52) - 1022);
    const auto enough = static_cast<std::int64_t>((run.least_bits + exponent) / kBitsPerNode) + 1;
    return enough < exact ? enough : exact;
}

// One row against one background row with numbers as factors: sums[l] += the value of feature l.
inline void add_pair(const ShapleyRun& run, const double* x, const double* z, double weight, const double* own,
                     const double* other, double* room, double* sums) {
    const std::int64_t d = run.d;
    double* base = room;
    double* change = base + d * kLanes;
    double* total = change + d * kLanes;
    double* before = total + d * kLanes;
    std::int64_t* different = run.different;
    Lanes start = splat<double>(weight * run.series[0]);
    std::int64_t n = 0;
    for (std::int64_t l = 0; l < d; ++l) {
        if (x[l] != z[l]) {
            const Lanes from = at(other, l);
            put(base, n, from);
            put(change, n, at(own, l) - from);
            different[n++] = l;
        } else {
            start *= at(own, l);
        }
    }
    std::int64_t wanted = run.exponents ? shapley_nodes(n, 0, true) : 0;
    if (wanted == 0) return;
    if (wanted > kNodesAtOnce) wanted = enough_nodes(run, base, change, n, wanted);
    const std::int64_t rule = run.rule_starts[wanted];
    add_rule(base, change, n, run.nodes + rule, run.node_weights + rule, run.rule_sizes[wanted], start, before, total);
    for (std::int64_t k = 0; k < n; ++k) {
        put(sums, different[k], at(sums, different[k]) + at(change, k) * at(total, k));
    }
}

// The same with power series as factors.
inline void add_series_pair(const ShapleyRun& run, const double* x, const double* z, double weight, const double* own,
                            const double* other, double* room, double* sums) {
    const std::int64_t d = run.d, size = run.order + 1;
    double* base = room;
    double* change = base + d * size * kLanes;
    double* total = change + d * size * kLanes;
    double* before = total + d * size * kLanes;
    std::int64_t* different = run.different;
    Lanes start[kMaxSeries], factor[kMaxSeries];
    for (std::int64_t i = 0; i < size; ++i) start[i] = splat<double>(i == 0 ? weight : 0.0);
    std::int64_t n = 0;
    for (std::int64_t l = 0; l < d; ++l) {
        if (x[l] != z[l]) {
            for (std::int64_t i = 0; i < size; ++i) {
                const Lanes from = at(other, l * size + i);
                put(base, n * size + i, from);
                put(change, n * size + i, at(own, l * size + i) - from);
            }
            different[n++] = l;
        } else {
            for (std::int64_t i = 0; i < size; ++i) factor[i] = at(own, l * size + i);
            multiply(start, factor, size);
        }
    }
    const std::int64_t wanted = shapley_nodes(n, run.order, run.exponents);
    if (wanted == 0) return;
    const std::int64_t rule = run.rule_starts[wanted];
    const auto add = size == 2   ? add_series_rule<2>
                     : size == 3 ? add_series_rule<3>
                     : size == 4 ? add_series_rule<4>
                                 : add_series_rule<0>;
    add(base, change, n, run.nodes + rule, run.node_weights + rule, run.rule_sizes[wanted], start, size, before, total);
    for (std::int64_t k = 0; k < n; ++k) {
        Lanes sum = at(sums, different[k]);
        for (std::int64_t i = 0; i < size; ++i) {
            Lanes part{};
            for (std::int64_t j = 0; j <= i; ++j) part += at(change, k * size + j) * at(total, k * size + i - j);
            sum += run.series[i] * part;
        }
        put(sums, different[k], sum);
    }
}

void shapley_add(const ShapleyRun& run, double* values, std::int64_t stride) {
    const std::int64_t d = run.d, size = run.order + 1;
    double* own = run.room;
    double* sums = own + run.n_rows * d * size * kLanes;
    double* other = sums + run.n_rows * d * kLanes;
    double* room = other + d * size * kLanes;
    for (std::int64_t r = 0; r < run.n_rows; ++r) factors_of(run, run.rows + r * d, own + r * d * size * kLanes);
    for (std::int64_t k = 0; k < run.n_rows * d; ++k) put(sums, k, Lanes{});
    for (std::int64_t b = 0; b < run.m; ++b) {
        const double* z = run.background + b * d;
        factors_of(run, z, other);
        for (std::int64_t r = 0; r < run.n_rows; ++r) {
            const auto add = size == 1 ? add_pair : add_series_pair;
            add(run, run.rows + r * d, z, run.weights[b], own + r * d * size * kLanes, other, room, sums + r * d * kLanes);
        }
    }
    // Here features are thousands of bytes apart, which share few places in the cache: once is enough.
    for (std::int64_t k = 0; k < run.n_rows * d; ++k) {
        store<double>(values + k * stride, load(values + k * stride) + at(sums, k));
    }
}

constexpr ShapleyPasses shapley_passes() { return {kLanes, &shapley_add}; }

}  // namespace
}  // namespace mercer
