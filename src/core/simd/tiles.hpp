// Kernel values between packed rows and packed columns, a register tile at a time: a loop over the features for the
// inner values, the ending in registers, and then stored, or summed against coefficients at once. For level.cpp only.
#pragma once

#include "simd/endings.hpp"
#include "simd/level.hpp"
#include "simd/simd.hpp"
#include "simd/summation.hpp"

namespace mercer {
namespace {

// 12 x 2 vectors of accumulators fill the 32 registers of AVX-512 and NEON, 6 x 2 the 16 of AVX2 and SSE.
#if defined(__AVX512F__) || defined(MERCER_NEON)
constexpr int kTileRows = 12, kRowsTogether = 4;
#else
constexpr int kTileRows = 6, kRowsTogether = 2;
#endif
// Rows of a tile whose endings are computed together: as many as leave registers for what these need (AVX2, d = 16:
// 0.91 ns a value one by one, 0.77 ns by twos).
static_assert(kTileRows % kRowsTogether == 0);
template <class T>
constexpr int kTileColumns = 2 * lanes<T>;

struct Dot {
    template <class T>
    static Vec<T> add(Vec<T> sum, T a, Vec<T> b) {
        return sum + a * b;
    }
};

struct Distance1 {
    template <class T>
    static Vec<T> add(Vec<T> sum, T a, Vec<T> b) {
        const Vec<T> difference = a - b;
        return sum + larger<T>(difference, -difference);
    }
};

struct Distance2 {
    template <class T>
    static Vec<T> add(Vec<T> sum, T a, Vec<T> b) {
        const Vec<T> difference = a - b;
        return sum + difference * difference;
    }
};

template <class T, class Inner>
MERCER_INLINE void sum_run(const T* row, const T* column, std::int64_t d, Vec<T> (&left)[kTileRows],
                           Vec<T> (&right)[kTileRows]) {
#pragma GCC unroll 12
    for (int r = 0; r < kTileRows; ++r) left[r] = right[r] = Vec<T>{};
    for (std::int64_t k = 0; k < d; ++k) {
        const Vec<T> b0 = load(column), b1 = load(column + lanes<T>);
#pragma GCC unroll 12
        for (int r = 0; r < kTileRows; ++r) {
            left[r] = Inner::template add<T>(left[r], row[r], b0);
            right[r] = Inner::template add<T>(right[r], row[r], b1);
        }
        row += kTileRows;
        column += kTileColumns<T>;
    }
}

template <class T, class Inner>
MERCER_INLINE void inner_values(const T* row, const T* column, std::int64_t d, Vec<T> (&left)[kTileRows],
                                Vec<T> (&right)[kTileRows]) {
    if (sizeof(T) == 8 || d <= kRun) {
        sum_run<T, Inner>(row, column, d, left, right);
        return;
    }
#pragma GCC unroll 12
    for (int r = 0; r < kTileRows; ++r) left[r] = right[r] = Vec<T>{};
    for (std::int64_t k = 0; k < d; k += kRun) {
        Vec<T> run_left[kTileRows], run_right[kTileRows];
        sum_run<T, Inner>(row + k * kTileRows, column + k * kTileColumns<T>, d - k < kRun ? d - k : kRun, run_left,
                          run_right);
#pragma GCC unroll 12
        for (int r = 0; r < kTileRows; ++r) {
            left[r] += run_left[r];
            right[r] += run_right[r];
        }
    }
}

// Calls use(r, left values, right values) for every row r of the tile of a group.
template <class T, class Inner, class Ending, class Use>
MERCER_INLINE void for_values(const TileRun<T>& run, std::int64_t g, Use use) {
    const Vec<T> columns[] = {load(run.column_norms), load(run.column_norms + lanes<T>)};
    Vec<T> left[kTileRows], right[kTileRows];
    inner_values<T, Inner>(run.rows + g * run.d * kTileRows, run.panel, run.d, left, right);
#pragma GCC unroll 12
    for (int first = 0; first < kTileRows; first += kRowsTogether) {
        Vec<T> x[2 * kRowsTogether];
#pragma GCC unroll 4
        for (int r = 0; r < kRowsTogether; ++r) x[2 * r] = left[first + r], x[2 * r + 1] = right[first + r];
        finish<Ending, T>(x, run.row_norms + g * kTileRows + first, columns, run.numbers);
#pragma GCC unroll 4
        for (int r = 0; r < kRowsTogether; ++r) use(first + r, x[2 * r], x[2 * r + 1]);
    }
}

template <class T, class Inner, class Ending>
void store_tiles(const TileRun<T>& run, T* out, std::int64_t stride) {
    for (std::int64_t g = 0; g < run.groups; ++g) {
        for_values<T, Inner, Ending>(run, g, [&](int r, Vec<T> k0, Vec<T> k1) {
            T* to = out + (g * kTileRows + r) * stride;
            store(to, k0);
            store(to + lanes<T>, k1);
        });
    }
}

// A tile's rows (6 or 12) are summed in its own precision, tiles in float64.
template <class T, class Inner, class Ending, int sums>
MERCER_INLINE void sum_each(const TileRun<T>& run, const T* coefficients, std::int64_t stride, double* total) {
    for (std::int64_t g = 0; g < run.groups; ++g) {
        const T* weight = coefficients + g * kTileRows;
        Vec<T> s0[sums]{}, s1[sums]{};
        for_values<T, Inner, Ending>(run, g, [&](int r, Vec<T> k0, Vec<T> k1) {
#pragma GCC unroll 2
            for (int q = 0; q < sums; ++q) {
                s0[q] += weight[q * stride + r] * k0;
                s1[q] += weight[q * stride + r] * k1;
            }
        });
#pragma GCC unroll 2
        for (int q = 0; q < sums; ++q) {
            add_to<T>(total + q * kMaxPanel, s0[q]);
            add_to<T>(total + q * kMaxPanel + lanes<T>, s1[q]);
        }
    }
}

template <class T, class Inner, class Ending>
void sum_tiles(const TileRun<T>& run, const T* coefficients, double* total) {
    sum_each<T, Inner, Ending, 1>(run, coefficients, 0, total);
}

template <class T>
void sum_two_tiles(const TileRun<T>& run, const T* coefficients, std::int64_t stride, double* total) {
    sum_each<T, Dot, Gaussian, kSums>(run, coefficients, stride, total);
}

// Four panels at a time: enough independent sums to hide the latency of a multiply-add. The last four may overlap.
template <class T, class Inner, class Ending>
void store_row(const TileRun<T>& run, T* out) {
    constexpr int kPanels = 4, kSums = 2 * kPanels;
    const std::int64_t width = kTileColumns<T>, apart = run.d * width, last = run.groups - 1;
    const Vec<T> norm = splat<T>(*run.row_norms);
    for (std::int64_t first = 0; first <= last; first += kPanels) {
        std::int64_t panel[kPanels];
        for (int v = 0; v < kPanels; ++v) panel[v] = first + v < last ? first + v : last;
        const T* const at[kPanels] = {run.panel + panel[0] * apart, run.panel + panel[1] * apart,
                                      run.panel + panel[2] * apart, run.panel + panel[3] * apart};
        Vec<T> sum[kSums];
#pragma GCC unroll 8
        for (int v = 0; v < kSums; ++v) sum[v] = Vec<T>{};
        for (std::int64_t k = 0; k < run.d; ++k) {
#pragma GCC unroll 8
            for (int v = 0; v < kSums; ++v) {
                sum[v] = Inner::template add<T>(sum[v], run.rows[k], load(at[v / 2] + k * width + v % 2 * lanes<T>));
            }
        }
#pragma GCC unroll 8
        for (int v = 0; v < kSums; ++v) {
            const std::int64_t column = panel[v / 2] * width + v % 2 * lanes<T>;
            store(out + column, finished<Ending, T>(sum[v], norm, load(run.column_norms + column), run.numbers));
        }
    }
}

template <class T>
constexpr Tiles<T> tiles() {
    Tiles<T> out{kTileRows,
                 kTileColumns<T>,
                 {store_tiles<T, Dot, Identity>, store_tiles<T, Dot, Gaussian>, store_tiles<T, Dot, Polynomial>,
                  store_tiles<T, Dot, Sigmoid>, store_tiles<T, Distance1, Laplacian>},
                 {sum_tiles<T, Dot, Identity>, sum_tiles<T, Dot, Gaussian>, sum_tiles<T, Dot, Polynomial>,
                  sum_tiles<T, Dot, Sigmoid>, sum_tiles<T, Distance1, Laplacian>},
                 sum_two_tiles<T>,
                 {store_row<T, Dot, Identity>, store_row<T, Dot, Gaussian>, store_row<T, Dot, Polynomial>,
                  store_row<T, Dot, Sigmoid>, store_row<T, Distance1, Laplacian>}};
    if constexpr (dense_endings<T> == kDenseEndings) {
        out.store[kGaussianOfDifferences] = store_tiles<T, Distance2, OfDifferences>;
        out.store[kLaplacianOfDifferences] = store_tiles<T, Distance1, OfDifferences>;
        out.sum[kGaussianOfDifferences] = sum_tiles<T, Distance2, OfDifferences>;
        out.sum[kLaplacianOfDifferences] = sum_tiles<T, Distance1, OfDifferences>;
        out.store_row[kGaussianOfDifferences] = store_row<T, Distance2, OfDifferences>;
        out.store_row[kLaplacianOfDifferences] = store_row<T, Distance1, OfDifferences>;
    }
    return out;
}

}  // namespace
}  // namespace mercer
