// The loops of a Cholesky factorisation and of the solves with it, a register tile at a time. For level.cpp only.
//
// A tile is kTileRows x kTileColumns. A *group* holds kTileRows rows of a factor as [k][row]; a *panel* holds
// kTileColumns rows, or right-hand sides, as [k][column]. The *triangle* of a group is its last kTileRows steps k, with
// reciprocals on the diagonal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "simd/level.hpp"
#include "simd/simd.hpp"
#include "simd/tiles.hpp"
#if !defined(MERCER_VECTORS)
#include <cmath>
#endif

namespace mercer {
namespace {

static_assert(kRowChunk % kTileRows == 0 && kRowChunk % kTileColumns<float> == 0 &&
              kRowChunk % kTileColumns<double> == 0);
static_assert(kTileRows <= kMaxTileRows && kTileColumns<float> <= kMaxPanel);

template <class T>
struct Tile {
    Vec<T> left[kTileRows], right[kTileRows];
};

// Sums over k of a[r, k] b[k]: a's rows are `row` elements apart and its steps `step`, b's steps `b_step`.
template <class T>
MERCER_INLINE void products(const T* a, std::int64_t row, std::int64_t step, const T* b, std::int64_t b_step,
                            std::int64_t depth, Tile<T>& sum) {
#pragma GCC unroll 12
    for (int r = 0; r < kTileRows; ++r) sum.left[r] = sum.right[r] = Vec<T>{};
    for (std::int64_t k = 0; k < depth; ++k) {
        const Vec<T> b0 = load(b), b1 = load(b + lanes<T>);
#pragma GCC unroll 12
        for (int r = 0; r < kTileRows; ++r) {
            const T x = a[r * row];
            sum.left[r] += x * b0;
            sum.right[r] += x * b1;
        }
        a += step;
        b += b_step;
    }
}

// tile = from - tile
template <class T>
MERCER_INLINE void take_from(const T* from, std::int64_t stride, Tile<T>& tile) {
#pragma GCC unroll 12
    for (int r = 0; r < kTileRows; ++r) {
        tile.left[r] = load(from + r * stride) - tile.left[r];
        tile.right[r] = load(from + r * stride + lanes<T>) - tile.right[r];
    }
}

template <class T>
MERCER_INLINE void put(const Tile<T>& tile, T* to, std::int64_t stride) {
#pragma GCC unroll 12
    for (int r = 0; r < kTileRows; ++r) {
        store(to + r * stride, tile.left[r]);
        store(to + r * stride + lanes<T>, tile.right[r]);
    }
}

// tile = L^-1 tile
template <class T>
MERCER_INLINE void substitute(const T* triangle, Tile<T>& tile) {
#pragma GCC unroll 12
    for (int c = 0; c < kTileRows; ++c) {
        tile.left[c] *= triangle[c * kTileRows + c];
        tile.right[c] *= triangle[c * kTileRows + c];
#pragma GCC unroll 12
        for (int r = c + 1; r < kTileRows; ++r) {
            tile.left[r] -= triangle[c * kTileRows + r] * tile.left[c];
            tile.right[r] -= triangle[c * kTileRows + r] * tile.right[c];
        }
    }
}

template <class T>
inline void expect_write([[maybe_unused]] const T* at) {
#if defined(MERCER_VECTORS)
    __builtin_prefetch(at, 1);
#endif
}

template <class T>
void rank_update(const T* group, const T* panels, std::int64_t depth, std::int64_t count, T* c, std::int64_t stride) {
    for (std::int64_t p = 0; p < count; ++p) {
        T* to = c + p * kTileColumns<T>;
        for (int r = 0; r < kTileRows; ++r) {
            expect_write(to + r * stride);
            expect_write(to + r * stride + kTileColumns<T> - 1);
        }
        Tile<T> tile;
        products<T>(group, 1, kTileRows, panels + p * kTileColumns<T> * depth, kTileColumns<T>, depth, tile);
        take_from(to, stride, tile);
        put(tile, to, stride);
    }
}

template <class T>
void solve_panel(const T* groups, std::int64_t depth, T* panel) {
    for (std::int64_t k = 0; k < depth; k += kTileRows) {
        const T* group = groups + k * depth;
        Tile<T> tile;
        products<T>(group, 1, kTileRows, panel, kTileColumns<T>, k, tile);
        take_from(panel + k * kTileColumns<T>, kTileColumns<T>, tile);
        substitute(group + k * kTileRows, tile);
        put(tile, panel + k * kTileColumns<T>, kTileColumns<T>);
    }
}

template <class T>
inline T square_root(T x) {
#if defined(MERCER_VECTORS)
    if constexpr (sizeof(T) == sizeof(float)) {
        return __builtin_sqrtf(x);
    } else {
        return __builtin_sqrt(x);
    }
#else
    return std::sqrt(x);
#endif
}

// The lower triangle of a[c][r] (r >= c) becomes its factor's; the number of good pivots.
template <class T>
inline int factor_triangle(T* a, std::int64_t stride, T* triangle) {
    T work[kTileRows][kTileRows];
    for (int c = 0; c < kTileRows; ++c) {
        for (int r = 0; r < kTileRows; ++r) work[c][r] = r < c ? T{0} : a[c * stride + r];
    }
    for (int c = 0; c < kTileRows; ++c) {
        const T pivot = work[c][c];
        if (!(pivot > T{0})) return c;
        const T root = square_root(pivot), inverse = T{1} / root;
        for (int r = 0; r < kTileRows; ++r) work[c][r] *= inverse;
        for (int k = c + 1; k < kTileRows; ++k) {
            const T factor = work[c][k];
            for (int r = 0; r < kTileRows; ++r) work[k][r] -= factor * work[c][r];
        }
        for (int r = 0; r < kTileRows; ++r) triangle[c * kTileRows + r] = work[c][r];
        for (int r = c; r < kTileRows; ++r) a[c * stride + r] = work[c][r];
        a[c * stride + c] = root;
        triangle[c * kTileRows + c] = inverse;
    }
    return kTileRows;
}

template <class T>
std::int64_t factor_block(T* lt, std::int64_t stride, std::int64_t n, T* groups) {
    constexpr int W = kTileColumns<T>;
    for (std::int64_t k = 0; k < n; k += kTileRows) {
        T* group = groups + k * n;
        T* triangle = group + k * kTileRows;
        for (std::int64_t s = 0; s < k; ++s) {
            for (int r = 0; r < kTileRows; ++r) group[s * kTileRows + r] = lt[s * stride + k + r];
        }
        T* rows = lt + k * stride;
        // The tiles that the triangle spans come first: everything else needs it.
        std::int64_t i = k;
        for (; i < k + kTileRows; i += W) {
            Tile<T> tile;
            products<T>(group, 1, kTileRows, lt + i, stride, k, tile);
            take_from(rows + i, stride, tile);
            put(tile, rows + i, stride);
        }
        const int good = factor_triangle(rows + k, stride, triangle);
        if (good < kTileRows) return k + good;
        T kept[kTileRows][kTileRows];
        for (int c = 0; c < kTileRows; ++c) {
            for (int r = 0; r < kTileRows; ++r) kept[c][r] = rows[c * stride + k + r];
        }
        for (std::int64_t j = k; j < i; j += W) {
            Tile<T> tile;
#pragma GCC unroll 12
            for (int r = 0; r < kTileRows; ++r) tile.left[r] = tile.right[r] = Vec<T>{};
            take_from(rows + j, stride, tile);
            substitute(triangle, tile);
            put(tile, rows + j, stride);
        }
        for (int c = 0; c < kTileRows; ++c) {
            for (int r = c; r < kTileRows; ++r) rows[c * stride + k + r] = kept[c][r];
        }
        for (; i < n; i += W) {
            Tile<T> tile;
            products<T>(group, 1, kTileRows, lt + i, stride, k, tile);
            take_from(rows + i, stride, tile);
            substitute(triangle, tile);
            put(tile, rows + i, stride);
        }
    }
    return -1;
}

template <class T>
void regroup(const T* panels, std::int64_t depth, T* groups) {
    constexpr int W = kTileColumns<T>;
    // A group may straddle panels, but a run of this many rows never does.
    constexpr int unit = kTileRows % 4 == 0 && W % 4 == 0 ? 4 : 2;
    static_assert(kTileRows % unit == 0 && W % unit == 0);
    constexpr int units = kTileRows / unit;
    for (int g = 0; g < kRowChunk / kTileRows; ++g) {
        const T* from[units];
        for (int u = 0; u < units; ++u) {
            const int row = g * kTileRows + u * unit;
            from[u] = panels + row / W * W * depth + row % W;
        }
        T* to = groups + g * kTileRows * depth;
        for (std::int64_t k = 0; k < depth; ++k) {
            for (int u = 0; u < units; ++u) {
                for (int r = 0; r < unit; ++r) to[k * kTileRows + u * unit + r] = from[u][k * W + r];
            }
        }
    }
}

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define MERCER_SHUFFLE 1
#endif
#endif

#if defined(MERCER_SHUFFLE)

// Exchanges the two off-diagonal blocks of size S in every 2S x 2S block that rows a and b cross.
template <class T, int S, std::size_t... I>
MERCER_INLINE void exchange(Vec<T>& a, Vec<T>& b, std::index_sequence<I...>) {
    // Indices from lanes<T> on mean b.
    const Vec<T> upper =
        __builtin_shufflevector(a, b, ((I & S) ? lanes<T> + static_cast<int>(I) - S : static_cast<int>(I))...);
    const Vec<T> lower =
        __builtin_shufflevector(a, b, ((I & S) ? lanes<T> + static_cast<int>(I) : static_cast<int>(I) + S)...);
    a = upper;
    b = lower;
}

template <class T, int S>
MERCER_INLINE void exchange_all(Vec<T> (&v)[lanes<T>]) {
    if constexpr (S < lanes<T>) {
#pragma GCC unroll 16
        for (int i = 0; i < lanes<T>; ++i) {
            if ((i & S) == 0) {
                exchange<T, S>(v[i], v[i + S], std::make_index_sequence<static_cast<std::size_t>(lanes<T>)>());
            }
        }
        exchange_all<T, 2 * S>(v);
    }
}

template <class T>
inline void transpose_square(const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride) {
    Vec<T> v[lanes<T>];
#pragma GCC unroll 16
    for (int i = 0; i < lanes<T>; ++i) v[i] = load(from + i * from_stride);
    exchange_all<T, 1>(v);
#pragma GCC unroll 16
    for (int i = 0; i < lanes<T>; ++i) store(to + i * to_stride, v[i]);
}

#else

template <class T>
inline void transpose_square(const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride) {
    for (int i = 0; i < lanes<T>; ++i) {
        for (int j = 0; j < lanes<T>; ++j) to[j * to_stride + i] = from[i * from_stride + j];
    }
}

#endif

template <class T>
void transpose(const T* from, std::int64_t from_stride, std::int64_t rows, std::int64_t columns, T* to,
               std::int64_t to_stride) {
    constexpr int L = lanes<T>;
    const std::int64_t whole_rows = rows / L * L, whole_columns = columns / L * L;
    for (std::int64_t i = 0; i < whole_rows; i += L) {
        for (std::int64_t j = 0; j < whole_columns; j += L) {
            transpose_square(from + i * from_stride + j, from_stride, to + j * to_stride + i, to_stride);
        }
    }
    for (std::int64_t i = 0; i < rows; ++i) {
        const std::int64_t done = i < whole_rows ? whole_columns : 0;
        for (std::int64_t j = done; j < columns; ++j) to[j * to_stride + i] = from[i * from_stride + j];
    }
}

template <class T>
void subtract_products(const T* a, std::int64_t row, std::int64_t step, const T* panel, std::int64_t depth, T* to) {
    Tile<T> tile;
    // No hardware prefetcher follows reads that are `step` elements apart.
    if (row == 1) {
        for (std::int64_t k = 0; k < depth; ++k) prefetch(a + k * step);
        products<T>(a, 1, step, panel, kTileColumns<T>, depth, tile);
    } else {
        products<T>(a, row, 1, panel, kTileColumns<T>, depth, tile);
    }
    take_from(to, kTileColumns<T>, tile);
    put(tile, to, kTileColumns<T>);
}

template <class T>
void solve_tile(const T* triangle, T* to) {
    Tile<T> tile;
#pragma GCC unroll 12
    for (int r = 0; r < kTileRows; ++r) tile.left[r] = tile.right[r] = Vec<T>{};
    take_from(to, kTileColumns<T>, tile);
    substitute(triangle, tile);
    put(tile, to, kTileColumns<T>);
}

template <class T>
void solve_tile_transposed(const T* triangle, T* to) {
    Tile<T> tile;
#pragma GCC unroll 12
    for (int r = 0; r < kTileRows; ++r) tile.left[r] = tile.right[r] = Vec<T>{};
    take_from(to, kTileColumns<T>, tile);
#pragma GCC unroll 12
    for (int i = 0; i < kTileRows; ++i) {
        const int c = kTileRows - 1 - i;
        tile.left[c] *= triangle[c * kTileRows + c];
        tile.right[c] *= triangle[c * kTileRows + c];
#pragma GCC unroll 12
        for (int r = 0; r < c; ++r) {
            tile.left[r] -= triangle[r * kTileRows + c] * tile.left[c];
            tile.right[r] -= triangle[r * kTileRows + c] * tile.right[c];
        }
    }
    put(tile, to, kTileColumns<T>);
}

template <class T>
constexpr CholeskyTiles<T> cholesky_tiles() {
    return {kTileRows,  kTileColumns<T>, factor_block<T>,      solve_panel<T>, rank_update<T>,
            regroup<T>, transpose<T>,    subtract_products<T>, solve_tile<T>,  solve_tile_transposed<T>};
}

}  // namespace
}  // namespace mercer
