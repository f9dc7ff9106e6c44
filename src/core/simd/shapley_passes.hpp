// The sums behind Shapley values of product kernels (explain/shapley.hpp), one vector per lane. For level.cpp only.
#pragma once

#include <cstdint>
#include <limits>

#include "simd/endings.hpp"
#include "simd/level.hpp"
#include "simd/shapley_groups.hpp"
#include "simd/simd.hpp"

namespace mercer {
namespace {

// 2^x of any x; infinite where it overflows.
template <int count>
MERCER_INLINE void exp2_any(Vec<double> (&x)[count]) {
    constexpr double kHighest = 1023.0, kInfinite = std::numeric_limits<double>::infinity();
    Vec<double> clamped[count];
    for (int i = 0; i < count; ++i) clamped[i] = smaller<double>(x[i], splat<double>(kHighest));
    exp2_negative<double>(clamped);
    for (int i = 0; i < count; ++i) x[i] = x[i] > kHighest ? splat<double>(kInfinite) : clamped[i];
}

// to[p] += one rate's part of the exponents of 2 of every player's factor at one row, `size` places apart.
template <class Part>
inline void add_exponents(const ShapleyRun& run, Rate rate, const double* row, double* to, Part part) {
    if (!run.used[rate]) return;
    const double* rates = run.rates + rate * run.d;
    for (std::int64_t p = 0, size = run.order + 1; p < run.players; ++p) {
        Lanes sum = at(to, p * size);
        for (std::int64_t l = run.starts[p]; l < run.starts[p + 1]; ++l) {
            sum += rates[l] * part(splat<double>(row[l]), at(run.vectors, l));
        }
        put(to, p * size, sum);
    }
}

// to[p] = the factor of every player at one row: half a number, or a power series in y. It is 1 beyond the last player.
inline void factors_of(const ShapleyRun& run, const double* row, double* to) {
    constexpr int kAtOnce = kGroup;  // enough to keep a processor busy
    const std::int64_t size = run.order + 1, padded = shapley_padded(run.players);
    for (std::int64_t p = 0; p < padded; ++p) put(to, p * size, Lanes{});
    add_exponents(run, kSquareRate, row, to, [](Lanes x, Lanes s) { return (x - s) * (x - s); });
    add_exponents(run, kAbsoluteRate, row, to, [](Lanes x, Lanes s) { return larger<double>(x - s, s - x); });
    add_exponents(run, kChi2Rate, row, to, [](Lanes x, Lanes s) {
        const Lanes sum = x + s, difference = x - s;
        return sum > 0.0 ? difference * difference / sum : Lanes{};
    });
    add_exponents(run, kDotRate, row, to, [](Lanes x, Lanes s) { return x * s; });
    const double scale = size == 1 ? 0.5 : 1.0;
    for (std::int64_t p = 0; p < padded; p += kAtOnce) {
        Vec<double> value[kAtOnce];
        for (int c = 0; c < kAtOnce; ++c) value[c] = at(to, (p + c) * size);
        if (run.used[kDotRate]) {
            exp2_any(value);
        } else {
            exp2_negative<double>(value);
        }
        for (int c = 0; c < kAtOnce; ++c) put(to, (p + c) * size, scale * value[c]);
    }
    if (size == 1) return;
    for (std::int64_t p = 0; p < run.players; ++p) {
        Lanes step{};
        for (std::int64_t l = run.starts[p]; l < run.starts[p + 1]; ++l) step += row[l] * at(run.vectors, l);
        Lanes value = at(to, p * size);
        for (std::int64_t k = 1; k < size; ++k) {
            value *= step / static_cast<double>(k);
            put(to, p * size + k, value);
        }
    }
}

// a = a b, as power series up to y^(size - 1).
MERCER_INLINE void multiply(Lanes* a, const Lanes* b, std::int64_t size) {
    for (std::int64_t k = size - 1; k >= 0; --k) {
        Lanes sum = a[0] * b[k];
        for (std::int64_t i = 1; i <= k; ++i) sum += a[i] * b[k - i];
        a[k] = sum;
    }
}

// total[k] = sum over the nodes of start * weight * product over the others of (base + node * change), all of them
// power series of `fixed` coefficients, or of `given` ones where that is 0.
template <int fixed>
void add_series_rule(const double* base, const double* change, std::int64_t n, const ShapleyRule& rule,
                     const Lanes* start, std::int64_t given, double* before, double* total) {
    const std::int64_t size = fixed > 0 ? fixed : given;
    Lanes product[kMaxSeries], factor[kMaxSeries];
    const auto set_factor = [&](std::int64_t k, double node) {
        for (std::int64_t i = 0; i < size; ++i) factor[i] = node * at(change, k * size + i) + at(base, k * size + i);
    };
    for (std::int64_t q = 0; q < rule.size; ++q) {
        for (std::int64_t i = 0; i < size; ++i) product[i] = splat<double>(i == 0 ? 1.0 : 0.0);
        for (std::int64_t k = 0; k < n; ++k) {
            for (std::int64_t i = 0; i < size; ++i) put(before, k * size + i, product[i]);
            set_factor(k, rule.nodes[q]);
            multiply(product, factor, size);
        }
        for (std::int64_t i = 0; i < size; ++i) product[i] = rule.weights[q] * start[i];
        for (std::int64_t k = n - 1; k >= 0; --k) {
            for (std::int64_t i = 0; i < size; ++i) {
                Lanes sum = q == 0 ? Lanes{} : at(total, k * size + i);
                for (std::int64_t j = 0; j <= i; ++j) sum += at(before, k * size + j) * product[i - j];
                put(total, k * size + i, sum);
            }
            set_factor(k, rule.nodes[q]);
            multiply(product, factor, size);
        }
    }
}

// One row against one background row with numbers as factors: sums[p] += the value of player p.
inline void add_pair(const ShapleyRun& run, const double* x, const double* z, double weight, std::int64_t differing,
                     const double* own, const double* other, double* room, double* sums) {
    if (differing == 0) return;
    Lanes start = splat<double>(weight * run.series[0]);
    // Where most players differ, the others do no harm: they are worth h = 0.
    if (4 * differing >= 3 * run.players) {
        return add_product(run, own, other, shapley_padded(run.players), differing, start, room, sums);
    }
    double *f = room, *g = f + shapley_padded(differing) * kLanes, *gained = g + shapley_padded(differing) * kLanes;
    std::int64_t n = 0;
    for (std::int64_t p = 0; p < run.players; ++p) {
        if (shapley_differ(x, z, run.starts, p)) {
            put(f, n, at(own, p));
            put(g, n, at(other, p));
            run.different[n++] = p;
        } else {
            start *= 2.0 * at(own, p);
        }
    }
    for (; n < shapley_padded(differing); ++n) put(f, n, splat<double>(0.5)), put(g, n, splat<double>(0.5));
    for (std::int64_t k = 0; k < n; ++k) put(gained, k, Lanes{});
    add_product(run, f, g, n, differing, start, gained + n * kLanes, gained);
    for (std::int64_t k = 0; k < differing; ++k) {
        const std::int64_t p = run.different[k];
        put(sums, p, at(sums, p) + at(gained, k));
    }
}

// Adds the Shapley values of a pair of rows with power series as factors.
inline void add_series_pair(const ShapleyRun& run, const double* x, const double* z, double weight,
                            std::int64_t differing, const double* own, const double* other, double* room,
                            double* sums) {
    const std::int64_t wanted = shapley_nodes(differing, run.order, run.exponents);
    if (wanted == 0) return;
    const std::int64_t players = run.players, size = run.order + 1;
    double* base = room;
    double* change = base + players * size * kLanes;
    double* total = change + players * size * kLanes;
    double* before = total + players * size * kLanes;
    std::int64_t* different = run.different;
    Lanes start[kMaxSeries] = {splat<double>(weight)}, factor[kMaxSeries];
    std::int64_t n = 0;
    for (std::int64_t p = 0; p < players; ++p) {
        if (shapley_differ(x, z, run.starts, p)) {
            for (std::int64_t i = 0; i < size; ++i) {
                const Lanes from = at(other, p * size + i);
                put(base, n * size + i, from);
                put(change, n * size + i, at(own, p * size + i) - from);
            }
            different[n++] = p;
        } else {
            for (std::int64_t i = 0; i < size; ++i) factor[i] = at(own, p * size + i);
            multiply(start, factor, size);
        }
    }
    const auto add = size == 2   ? add_series_rule<2>
                     : size == 3 ? add_series_rule<3>
                     : size == 4 ? add_series_rule<4>
                                 : add_series_rule<0>;
    add(base, change, n, run.rules[run.rule_with[wanted]], start, size, before, total);
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
    const std::int64_t d = run.d, players = run.players, size = run.order + 1, padded = shapley_padded(players);
    double* own = run.room;
    double* sums = own + run.n_rows * padded * size * kLanes;
    double* other = sums + run.n_rows * padded * kLanes;
    double* room = other + padded * size * kLanes;
    for (std::int64_t r = 0; r < run.n_rows; ++r) factors_of(run, run.rows + r * d, own + r * padded * size * kLanes);
    for (std::int64_t k = 0; k < run.n_rows * padded; ++k) put(sums, k, Lanes{});
    const auto add = size == 1 ? add_pair : add_series_pair;
    for (std::int64_t b = 0; b < run.m; ++b) {
        const double* z = run.background + b * d;
        factors_of(run, z, other);
        for (std::int64_t r = 0; r < run.n_rows; ++r) {
            add(run, run.rows + r * d, z, run.weights[b], run.differing[r * run.differing_stride + b],
                own + r * padded * size * kLanes, other, room, sums + r * padded * kLanes);
        }
    }
    // Here players are thousands of bytes apart, which share few places in the cache: once is enough.
    for (std::int64_t r = 0; r < run.n_rows; ++r) {
        for (std::int64_t p = 0; p < players; ++p) {
            double* to = values + (r * players + p) * stride;
            store<double>(to, load(to) + at(sums, r * padded + p));
        }
    }
}

constexpr ShapleyPasses shapley_passes() { return {kLanes, &shapley_add}; }

}  // namespace
}  // namespace mercer
