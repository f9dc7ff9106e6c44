// Shapley values of one product of numbers: all features of a row against a background row, one vector per lane (a
// player of several features has their product for its factor, and is a feature here). For level.cpp only.
//
// With w = 2t - 1 the factor of a feature is m + h w for m = (F + G) / 2 and h = (F - G) / 2. Four of them are
// multiplied into one polynomial of degree 4, so that a node costs a group of four little more than it would a
// feature. Nodes come as +w and -w, where even and odd powers are computed once. A group needs from the nodes only
// the moments of w^0 to w^3 with the product of all other groups: the values of its features are combinations of
// these. The sizes of a group's coefficients sum up to at most the product of max(F, G), so that rounding stays as
// small as with single factors.
#pragma once

#include <cstdint>

#include "simd/level.hpp"
#include "simd/shapley_bound.hpp"
#include "simd/simd.hpp"

namespace mercer {
namespace {

using Lanes = Vec<double>;
constexpr int kLanes = lanes<double>;

inline Lanes at(const double* room, std::int64_t i) { return load(room + i * kLanes); }
inline void put(double* room, std::int64_t i, Lanes v) { store<double>(room + i * kLanes, v); }

constexpr int kGroup = kShapleyGroup;
// Numbers per group: the products m m, h m, m h, h h of its first two features and of the others; and its polynomial.
constexpr int kProducts = 8, kQuartic = 5;

struct Groups {
    const double* own;    // F / 2, [feature]
    const double* other;  // G / 2
    std::int64_t count;
    double *products, *quartics, *moments, *values, *before;  // [group][...]

    // Takes 9 of the numbers per feature in the room.
    Groups(const double* f, const double* g, std::int64_t n_groups, double* room)
        : own(f), other(g), count(n_groups), products(room) {
        quartics = products + count * kProducts * kLanes;
        moments = quartics + count * kQuartic * kLanes;
        values = moments + count * kGroup * kLanes;
        before = values + count * (kShapleyNodes - 1) * kLanes;
    }
};

// Product of the factors in the middle, and a bound on it over the ellipse.
struct Sizes {
    Lanes middle, around;
};

inline Sizes multiply_factors(const Groups& all) {
    Sizes sizes{splat<double>(1.0), splat<double>(1.0)};
    const auto size = [](Lanes v) { return larger<double>(v, -v); };
    for (std::int64_t g = 0; g < all.count; ++g) {
        Lanes m[kGroup], h[kGroup];
#pragma GCC unroll 4
        for (int c = 0; c < kGroup; ++c) {
            const Lanes f = at(all.own, g * kGroup + c), other = at(all.other, g * kGroup + c);
            m[c] = f + other;
            h[c] = f - other;
        }
        const Lanes mm = m[0] * m[1], hm = h[0] * m[1], mh = m[0] * h[1], hh = h[0] * h[1], a1 = hm + mh;
        const Lanes nn = m[2] * m[3], kn = h[2] * m[3], nk = m[2] * h[3], kk = h[2] * h[3], b1 = kn + nk;
        double* to = all.products + g * kProducts * kLanes;
        put(to, 0, mm), put(to, 1, hm), put(to, 2, mh), put(to, 3, hh);
        put(to, 4, nn), put(to, 5, kn), put(to, 6, nk), put(to, 7, kk);
        const Lanes q0 = mm * nn, q1 = mm * b1 + a1 * nn, q2 = mm * kk + (a1 * b1 + hh * nn), q3 = a1 * kk + hh * b1;
        const Lanes q4 = hh * kk;
        to = all.quartics + g * kQuartic * kLanes;
        put(to, 0, q0), put(to, 1, q1), put(to, 2, q2), put(to, 3, q3), put(to, 4, q4);
        const Lanes high = (size(q4) * kHalfAxis + size(q3)) * kHalfAxis + size(q2);
        sizes.middle *= q0;
        sizes.around *= (high * kHalfAxis + size(q1)) * kHalfAxis + q0;
    }
    return sizes;
}

// Moments (+)= their sums over the nodes +w and -w of some pairs and, with a centre, over 0. `weights` are those of +w.
template <int pairs, bool centre>
void add_moments(const Groups& all, const double* upper, const double* weights, Lanes start) {
    constexpr int count = 2 * pairs + (centre ? 1 : 0);
    Lanes product[count];
#pragma GCC unroll 7
    for (int c = 0; c < count; ++c) product[c] = splat<double>(1.0);
    for (std::int64_t g = 0; g < all.count; ++g) {
        const double* q = all.quartics + g * kQuartic * kLanes;
        double *values = all.values + g * 2 * pairs * kLanes, *before = all.before + g * count * kLanes;
        const Lanes q0 = at(q, 0), q1 = at(q, 1), q2 = at(q, 2), q3 = at(q, 3), q4 = at(q, 4);
#pragma GCC unroll 3
        for (int p = 0; p < pairs; ++p) {
            // w and its square come from memory each time: the products need the registers.
            const Lanes w = at(upper, 2 * p), square = at(upper, 2 * p + 1);
            const Lanes even = (q4 * square + q2) * square + q0, odd = (q3 * square + q1) * w;
            const Lanes plus = even + odd, minus = even - odd;
            put(values, 2 * p, plus), put(values, 2 * p + 1, minus);
            put(before, 2 * p, product[2 * p]), put(before, 2 * p + 1, product[2 * p + 1]);
            product[2 * p] *= plus, product[2 * p + 1] *= minus;
        }
        if constexpr (centre) {
            put(before, count - 1, product[count - 1]);
            product[count - 1] *= q0;
        }
    }
#pragma GCC unroll 3
    for (int p = 0; p < pairs; ++p) product[2 * p] = product[2 * p + 1] = weights[p] * start;
    if constexpr (centre) product[count - 1] = weights[-1] * start;
    for (std::int64_t g = all.count - 1; g >= 0; --g) {
        const double *values = all.values + g * 2 * pairs * kLanes, *before = all.before + g * count * kLanes;
        double* to = all.moments + g * kGroup * kLanes;
        Lanes moment[kGroup] = {};
        if constexpr (centre) {
            moment[0] = at(before, count - 1) * product[count - 1];
            product[count - 1] *= at(all.quartics, g * kQuartic);
        } else {
            for (int i = 0; i < kGroup; ++i) moment[i] = at(to, i);
        }
#pragma GCC unroll 3
        for (int p = 0; p < pairs; ++p) {
            const Lanes w = at(upper, 2 * p), square = at(upper, 2 * p + 1);
            const Lanes plus = at(before, 2 * p) * product[2 * p], minus = at(before, 2 * p + 1) * product[2 * p + 1];
            product[2 * p] *= at(values, 2 * p), product[2 * p + 1] *= at(values, 2 * p + 1);
            const Lanes even = plus + minus, odd = (plus - minus) * w;
            moment[0] += even, moment[1] += odd, moment[2] += square * even, moment[3] += square * odd;
        }
        for (int i = 0; i < kGroup; ++i) put(to, i, moment[i]);
    }
}

// The first pass has the centre, and sets the moments.
inline void add_rule(const Groups& all, const ShapleyRule& rule, Lanes start) {
    const std::int64_t pairs = rule.size / 2;
    const double *upper = rule.upper, *weights = rule.weights + pairs + 1;
    if (pairs == 0) return add_moments<0, true>(all, upper, weights, start);
    if (pairs == 1) return add_moments<1, true>(all, upper, weights, start);
    if (pairs == 2) return add_moments<2, true>(all, upper, weights, start);
    add_moments<3, true>(all, upper, weights, start);
    for (std::int64_t p = 3; p < pairs; p += 3) {
        const auto add = pairs - p >= 3   ? add_moments<3, false>
                         : pairs - p == 2 ? add_moments<2, false>
                                          : add_moments<1, false>;
        add(all, upper + 2 * p * kLanes, weights + p, start);
    }
}

// sums[feature] += its value: h times the moment of the factors of the three others in its group.
inline void add_values(const Groups& all, double* sums) {
    for (std::int64_t g = all.count - 1; g >= 0; --g) {  // the last groups' moments were there first
        const double* moments = all.moments + g * kGroup * kLanes;
        const double* products = all.products + g * kProducts * kLanes;
        const Lanes m0 = at(moments, 0), m1 = at(moments, 1), m2 = at(moments, 2), m3 = at(moments, 3);
#pragma GCC unroll 2
        for (int c = 0; c < kGroup; c += 2) {
            const double *mine = products + 2 * c * kLanes, *others = products + (4 - 2 * c) * kLanes;
            const Lanes b0 = at(others, 0), b1 = at(others, 1) + at(others, 2), b2 = at(others, 3);
            const Lanes low = b0 * m0 + (b1 * m1 + b2 * m2), high = b0 * m1 + (b1 * m2 + b2 * m3);
            const Lanes both = at(mine, 3) * high;
            double* to = sums + (g * kGroup + c) * kLanes;
            put(to, 0, at(to, 0) + both + at(mine, 1) * low);
            put(to, 1, at(to, 1) + both + at(mine, 2) * low);
        }
    }
}

// The fewest nodes that err by less than rounding in all lanes; the rule `exact` does not err.
inline std::int64_t enough_nodes(const ShapleyRun& run, const Sizes& sizes, std::int64_t exact) {
    for (std::int64_t k = run.first_rule; k < exact; ++k) {
        const Lanes fits = sizes.around <= sizes.middle * run.rules[k].growth ? splat<double>(1.0) : Lanes{};
        if (fold<double, kLanes>(fits, [](auto a, auto b) { return a < b ? a : b; }) > 0.0) return k;
    }
    return exact;
}

// sums[feature] += start times its value, where F and G are factors of which `differing` are not the same.
inline void add_product(const ShapleyRun& run, const double* own, const double* other, std::int64_t n,
                        std::int64_t differing, Lanes start, double* room, double* sums) {
    const Groups all(own, other, n / kGroup, room);
    const Sizes sizes = multiply_factors(all);
    const std::int64_t rule = enough_nodes(run, sizes, run.rule_with[shapley_nodes(differing, 0, true)]);
    add_rule(all, run.rules[rule], 2.0 * start);  // dw is 2 dt, and F - G is 2h
    add_values(all, sums);
}

}  // namespace
}  // namespace mercer
