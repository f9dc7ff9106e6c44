// Products in twice the precision, lane by lane, and exp. For level.cpp only.
#pragma once

#include <limits>

#include "algebra/doubled.hpp"
#include "simd/simd.hpp"

namespace mercer {
namespace {

using DoubledVec = Doubled<Vec<double>>;

// sum += a b, as `collect` does it.
MERCER_INLINE void collect_product(DoubledVec& sum, Vec<double> a, Vec<double> b) {
    const Vec<double> product = rounded(a * b);
    sum.low += product_error(a, b, product);
    sum.collect(product);
}

MERCER_INLINE DoubledVec times(const DoubledVec& a, Vec<double> factor) {
    const Vec<double> product = rounded(a.high * factor);
    return DoubledVec{product, product_error(a.high, factor, product) + a.low * factor}.normal();
}

MERCER_INLINE DoubledVec times(const DoubledVec& a, const DoubledVec& b) {
    const Vec<double> product = rounded(a.high * b.high);
    const Vec<double> rest = product_error(a.high, b.high, product) + (a.high * b.low + a.low * b.high);
    return DoubledVec{product, rest}.normal();
}

// exp(j/16) for |j| <= 6, 1/k!, and ln 2 in parts of 42 bits, so that small multiples of the first two are exact.
constexpr int kMostSixteenths = 6, kDoubledTerms = 9, kTerms = 16;
constexpr double kExpHigh[] = {0x1.5fe4615e98e8fp-1, 0x1.769652df22f7ep-1, 0x1.8ebef9eac820bp-1, 0x1.a876812c0877cp-1,
                               0x1.c3d6a24ed8222p-1, 0x1.e0fabfbc702a4p-1, 0x1p+0,               0x1.1082b577d34edp+0,
                               0x1.2216045b6f5cdp+0, 0x1.34cb8170b5835p+0, 0x1.48b5e3c3e8186p+0, 0x1.5de9176045ff5p+0,
                               0x1.747a513dbef6ap+0};
constexpr double kExpLow[] = {-0x1.5613923fd9eeep-55, 0x1.3445f7544e0efp-57,  -0x1.797d4686c5393p-57,
                              -0x1.fd36226fadd44p-56, -0x1.e1e0a76cb0685p-55, -0x1.8d0e700fcfb65p-56,
                              0.0,                    0x1.f56c680678897p-54,  -0x1.8c4a5df1ec7e5p-58,
                              0x1.6a7062465be33p-55,  0x1.9d9ef0eda6eabp-54,  0x1.da89923298baap-55,
                              0x1.88d1e2d966c25p-54};
constexpr double kInverseHigh[kTerms] = {
    1.0, 1.0, 0.5, 0x1.5555555555555p-3, 0x1.5555555555555p-5, 0x1.1111111111111p-7, 0x1.6c16c16c16c17p-10,
    0x1.a01a01a01a01ap-13, 0x1.a01a01a01a01ap-16, 0x1.71de3a556c734p-19, 0x1.27e4fb7789f5cp-22, 0x1.ae64567f544e4p-26,
    0x1.1eed8eff8d898p-29, 0x1.6124613a86d09p-33, 0x1.93974a8c07c9dp-37, 0x1.ae7f3e733b81fp-41};
constexpr double kInverseLow[kDoubledTerms] = {0.0,
                                               0.0,
                                               0.0,
                                               0x1.5555555555555p-57,
                                               0x1.5555555555555p-59,
                                               0x1.1111111111111p-63,
                                               -0x1.f49f49f49f49fp-65,
                                               0x1.a01a01a01a01ap-73,
                                               0x1.a01a01a01a01ap-76};
constexpr double kLn2[] = {0x1.62e42fefa38p-1, 0x1.ef35793c76p-45, 0x1.cc01f97b57a08p-87};
// Values of exponents below, and of exponents above its opposite, leave the range of float64.
constexpr double kLowestExponent = -700.0;

// exp(t) for t <= 0, right to 2^-98 of its value; 0 where it is below 1e-304, NaN where t is NaN.
//
// exp(t) = 2^n exp(j/16) exp(r), |r| <= 1/32. Terms r^k/k! for k from 9 to 15 are below 2^-63, so that float64 holds them
// to 2^-115; those after are below 2^-124.
inline DoubledVec exp_negative(const DoubledVec& t) {
    constexpr double kLog2OfE = 1.4426950408889634074, kMagic = 6755399441055744.0;  // 1.5 * 2^52
    // The table below has places for these exponents only: no other may reach it, NaN least of all.
    const auto in_range = (t.high >= kLowestExponent) & (t.high <= -kLowestExponent);
    const Vec<double> high = in_range ? t.high : Vec<double>{}, low = in_range ? t.low : Vec<double>{};
    const Vec<double> shifted = rounded(high * kLog2OfE) + kMagic, n = shifted - kMagic;
    DoubledVec r = DoubledVec::of_sum(high, -(n * kLn2[0]));
    r = r.plus({low, Vec<double>{}});
    r = r.plus(DoubledVec{-(n * kLn2[1]), rounded(-(n * kLn2[2]))}.normal());
    const Vec<double> j = (rounded(r.high * 16.0) + kMagic) - kMagic;
    r = r.plus({j * -0.0625, Vec<double>{}});
    Vec<double> tail = splat<double>(kInverseHigh[kTerms - 1]);
    for (int k = kTerms - 2; k >= kDoubledTerms; --k) tail = tail * r.high + kInverseHigh[k];
    DoubledVec value{tail, Vec<double>{}};
    for (int k = kDoubledTerms - 1; k >= 0; --k) {
        value = times(value, r).plus({splat<double>(kInverseHigh[k]), splat<double>(kInverseLow[k])});
    }
    double place[lanes<double>], factor[2][lanes<double>];
    store(place, j);
    for (int lane = 0; lane < lanes<double>; ++lane) {
        const auto entry = static_cast<int>(place[lane]) + kMostSixteenths;
        factor[0][lane] = kExpHigh[entry];
        factor[1][lane] = kExpLow[entry];
    }
    value = times(value, DoubledVec{load(factor[0]), load(factor[1])});
    const Vec<double> power = bits_as<double>(bits<double>(splat<double>(1.0)) + (bits<double>(shifted) << 52));
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    const Vec<double> outside = t.high < kLowestExponent ? Vec<double>{} : splat<double>(kNan);
    return {in_range ? value.high * power : outside, in_range ? value.low * power : outside};
}

}  // namespace
}  // namespace mercer
