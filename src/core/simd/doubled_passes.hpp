// Blocks of sums c'Kc in twice the precision. For level.cpp only; gram/doubled_squares.hpp has the error bounds.
#pragma once

#include "simd/doubled_vectors.hpp"
#include "simd/level.hpp"

namespace mercer {
namespace {

// Terms after which sums are made normal again, and vectors of columns that are summed together.
constexpr int kUntilNormal = 8, kVectors = kDoubledBlock / lanes<double>, kTogether = kVectors < 4 ? kVectors : 4;

struct ProductTerm {
    static void add(DoubledVec& sum, Vec<double> x, Vec<double> z) { collect_product(sum, x, z); }
};

struct SquareTerm {
    static void add(DoubledVec& sum, Vec<double> x, Vec<double> z) {
        const DoubledVec difference = DoubledVec::of_sum(x, -z);
        const Vec<double> square = rounded(difference.high * difference.high);
        sum.low += product_error(difference.high, difference.high, square) + (2.0 * difference.high) * difference.low;
        sum.collect(square);
    }
};

struct AbsoluteTerm {
    static void add(DoubledVec& sum, Vec<double> x, Vec<double> z) {
        const DoubledVec difference = DoubledVec::of_sum(x, -z);
        const auto negative = difference.high < 0.0;
        sum.low += negative ? -difference.low : difference.low;
        sum.collect(negative ? -difference.high : difference.high);
    }
};

// From x'z, |x - z|^2 or |x - z|_1 to k(x, z).
inline DoubledVec doubled_value(DoubledVec t, const DoubledRun& run) {
    const Vec<double> none{}, gamma = splat<double>(run.gamma);
    if (run.radial) {
        // So that gamma t does not overflow where k is zero anyway.
        const auto far = t.high > splat<double>(run.farthest);
        t = times({far ? splat<double>(run.farthest) : t.high, far ? none : t.low}, gamma);
        t = exp_negative({-t.high, -t.low});
    } else {
        DoubledVec base = times(t, gamma).plus({splat<double>(run.coef0), none});
        t = {splat<double>(1.0), none};
        for (std::int64_t n = run.degree; n > 0; n /= 2) {
            if (n % 2 == 1) t = times(t, base);
            if (n > 1) base = times(base, base);
        }
    }
    if (run.scale != 1.0) t = times(t, splat<double>(run.scale));
    return run.constant == 0.0 ? t : t.plus({splat<double>(run.constant), none});
}

template <class Term>
void doubled_values(const DoubledRun& run, const double* row, DoubledVec* values) {
    for (int first = 0; first < kVectors; first += kTogether) {
        DoubledVec sums[kTogether];
        const double* columns = run.columns + first * lanes<double>;
        for (std::int64_t k = 0; k < run.d; ++k, columns += kDoubledBlock) {
            const Vec<double> x = splat<double>(row[k]);
            for (int v = 0; v < kTogether; ++v) Term::add(sums[v], x, load(columns + v * lanes<double>));
            if (k % kUntilNormal == kUntilNormal - 1) {
                for (int v = 0; v < kTogether; ++v) sums[v] = sums[v].normal();
            }
        }
        for (int v = 0; v < kTogether; ++v) values[first + v] = doubled_value(sums[v].normal(), run);
    }
}

template <class Term>
void doubled_block(const DoubledRun& run, double* room, double* high, double* low) {
    auto total = [&](std::int64_t output) { return room + 2 * output * lanes<double>; };
    for (std::int64_t i = 0; i < 2 * run.outputs * lanes<double>; ++i) room[i] = 0.0;
    for (std::int64_t i = 0; i < run.rows; ++i) {
        DoubledVec values[kVectors];
        doubled_values<Term>(run, run.first_row + i * run.d, values);
        for (std::int64_t output = 0; output < run.outputs; ++output) {
            const double own = run.row_coefficients[i * run.outputs + output];
            if (own == 0.0) continue;
            const double* coefficients = run.coefficients + output * kDoubledBlock;
            DoubledVec sum{};
            for (int v = 0; v < kVectors; ++v) {
                const Vec<double> c = load(coefficients + v * lanes<double>);
                sum.low += values[v].low * c;
                collect_product(sum, values[v].high, c);
                if (v % kUntilNormal == kUntilNormal - 1) sum = sum.normal();
            }
            double* kept = total(output);
            const DoubledVec before{load(kept), load(kept + lanes<double>)};
            const DoubledVec after = before.plus(times(sum.normal(), splat<double>(own)));
            store(kept, after.high);
            store(kept + lanes<double>, after.low);
        }
    }
    for (std::int64_t output = 0; output < run.outputs; ++output) {
        Doubled<double> all{};
        for (int lane = 0; lane < lanes<double>; ++lane) {
            all = all.plus({total(output)[lane], total(output)[lane + lanes<double>]});
        }
        high[output] = all.high;
        low[output] = all.low;
    }
}

constexpr DoubledPasses doubled_passes() {
    return {lanes<double>, {doubled_block<ProductTerm>, doubled_block<SquareTerm>, doubled_block<AbsoluteTerm>}};
}

}  // namespace
}  // namespace mercer
