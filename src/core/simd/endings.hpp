// From inner products or distances in registers to kernel values: the closed list of endings. For level.cpp only.
//
// Data are prepared so that each ending is cheap. For the Gaussian they are centred and scaled by sqrt(2 gamma log2 e),
// and a sample's norm is half its squared length, so that k = 2^(x.z - norm x - norm z). For the Laplacian they are
// scaled by gamma log2 e, so that k = 2^-|x - z|_1.
#pragma once

#include "simd/level.hpp"
#include "simd/simd.hpp"

namespace mercer {
namespace {

constexpr double kLog2E = 1.4426950408889634074;

// Chebyshev fits of 2^f on [-1/2, 1/2]. Their errors, 2e-9 and 3e-18, are below half a unit in the last place.
template <class T>
struct Exp2;

template <>
struct Exp2<float> {
    static constexpr int mantissa = 23, degree = 6;
    static constexpr float lowest = -125.0F, magic = 12582912.0F;
    static constexpr float c[] = {1.0F,
                                  0.693147206702832596F,
                                  0.240226509222887581F,
                                  0.0555032722667030206F,
                                  0.00961805667852463808F,
                                  0.00134004281776158379F,
                                  0.000154614446985691291F};
};

template <>
struct Exp2<double> {
    static constexpr int mantissa = 52, degree = 11;
    static constexpr double lowest = -1021.0, magic = 6755399441055744.0;
    static constexpr double c[] = {1.0,
                                   0.693147180559945309,
                                   0.240226506959101596,
                                   0.055504108664821627,
                                   0.00961812910758725667,
                                   0.00133335581464064707,
                                   0.000154035304637243542,
                                   0.0000152527338415567726,
                                   1.32154325359123762e-6,
                                   1.01780570877339411e-7,
                                   7.07419429728852101e-9,
                                   4.45581790833606449e-10};
};

// x[i] = 2^x[i] for x <= 0, and 0 where that would be below the smallest normal number. Several vectors take each step
// together: one alone would wait for the result of every step, and a processor looks too few instructions ahead to fill
// the time with the next one.
template <class T, int count>
MERCER_INLINE void exp2_negative(Vec<T> (&x)[count]) {
    using E = Exp2<T>;
    using Int = IndexOf<T>;
    // Adding 1.5 * 2^mantissa rounds to an integer and leaves it in the low bits, ready to be moved into the exponent.
    Vec<T> shifted[count], f[count], p[count];
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) shifted[i] = larger<T>(x[i], splat<T>(E::lowest)) + E::magic;
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) {
        const Vec<T> whole = shifted[i] - E::magic;
        shifted[i] = bits_as<T>(bits<T>(shifted[i]) << static_cast<Int>(E::mantissa));
        f[i] = x[i] - whole;
        p[i] = splat<T>(E::c[E::degree]);
    }
#pragma GCC unroll 12
    for (int k = E::degree - 1; k >= 0; --k) {
#pragma GCC unroll 8
        for (int i = 0; i < count; ++i) p[i] = p[i] * f[i] + E::c[k];
    }
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) {
        const Vec<T> value = bits_as<T>(wrapping_sum<T>(bits<T>(p[i]), bits<T>(shifted[i])));
        x[i] = x[i] < E::lowest ? Vec<T>{} : value;
    }
}

// An ending takes the tile's inner value, the row's norm, the columns' norms and the recipe's numbers. Those with an
// exponent are numbers[0] times a power of two.
struct Identity {
    template <class T>
    static Vec<T> apply(Vec<T> dot, Vec<T>, Vec<T>, const T* numbers) {
        return numbers[0] * dot;
    }
};

struct Gaussian {
    template <class T>
    static Vec<T> exponent(Vec<T> dot, Vec<T> row, Vec<T> column, const T*) {
        return smaller<T>(dot - (row + column), Vec<T>{});  // symmetric in row and column, to the last bit
    }
};

struct Laplacian {
    template <class T>
    static Vec<T> exponent(Vec<T> distance, Vec<T>, Vec<T>, const T*) {
        return -distance;
    }
};

// Exponent from a squared distance or a distance in the data's own unit; numbers[1] = gamma log2 e.
struct OfDifferences {
    template <class T>
    static Vec<T> exponent(Vec<T> distance, Vec<T>, Vec<T>, const T* numbers) {
        return -(numbers[1] * distance);
    }
};

struct Polynomial {
    template <class T>
    static Vec<T> apply(Vec<T> dot, Vec<T>, Vec<T>, const T* numbers) {
        Vec<T> base = numbers[1] * dot + numbers[2];
        Vec<T> value = splat<T>(numbers[0]);
        for (int degree = static_cast<int>(numbers[3]); degree > 0; degree >>= 1) {
            if (degree & 1) value *= base;
            base *= base;
        }
        return value;
    }
};

struct Sigmoid {
    template <class T>
    static Vec<T> apply(Vec<T> dot, Vec<T>, Vec<T>, const T* numbers) {
        const Vec<T> x = numbers[1] * dot + numbers[2];
        const Vec<T> size = larger<T>(x, -x);
        Vec<T> t[] = {static_cast<T>(-2.885390081777926815) * size};
        exp2_negative<T>(t);  // e^(-2|x|)
        const Vec<T> value = numbers[0] * (T{1} - t[0]) / (T{1} + t[0]);
        return x < T{0} ? -value : value;
    }
};

// Several inner values become kernel values, in place; value i belongs to row norm i / 2 and column norm i % 2.
template <class Ending, class T, int count>
MERCER_INLINE void finish(Vec<T> (&x)[count], const T* rows, const Vec<T> (&columns)[2], const T* numbers) {
    if constexpr (requires { Ending::template exponent<T>(x[0], x[0], x[0], numbers); }) {
#pragma GCC unroll 8
        for (int i = 0; i < count; ++i) {
            x[i] = Ending::template exponent<T>(x[i], splat<T>(rows[i / 2]), columns[i % 2], numbers);
        }
        exp2_negative<T>(x);
#pragma GCC unroll 8
        for (int i = 0; i < count; ++i) x[i] = numbers[0] * x[i];
    } else {
#pragma GCC unroll 8
        for (int i = 0; i < count; ++i) {
            x[i] = Ending::template apply<T>(x[i], splat<T>(rows[i / 2]), columns[i % 2], numbers);
        }
    }
}

// Kernel values of a single vector of inner values.
template <class Ending, class T>
MERCER_INLINE Vec<T> finished(Vec<T> inner, Vec<T> row, Vec<T> column, const T* numbers) {
    if constexpr (requires { Ending::template exponent<T>(inner, row, column, numbers); }) {
        Vec<T> x[] = {Ending::template exponent<T>(inner, row, column, numbers)};
        exp2_negative<T>(x);
        return numbers[0] * x[0];
    } else {
        return Ending::template apply<T>(inner, row, column, numbers);
    }
}

}  // namespace
}  // namespace mercer
