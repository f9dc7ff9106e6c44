// The hash is a sum over entries, so neither the order of entries nor stored zeros matter.
#include "gram/row_hash.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "algebra/rounding.hpp"
#include "algebra/splitmix.hpp"
#include "threads/pool.hpp"

namespace mercer {
namespace {

// Zero contributes nothing, so -0.0 and unstored entries do not either. float32 widens exactly.
template <class T>
std::uint64_t entry(std::uint64_t column, T value) {
    if (value == T{0}) return 0;
    const auto bits = std::bit_cast<std::uint64_t>(static_cast<double>(value));
    // The low bits of short decimals are zero, so a plain sum of bits and column would collide: multiply first.
    return scramble((bits ^ (bits >> 32)) * 0xd6e8feb86659fd93u + (column + 1) * kGolden);
}

// 2^18 entries, about a millisecond of work, but at most 4096 rows.
std::int64_t rows_per_chunk(std::int64_t entries_per_row) {
    return std::clamp<std::int64_t>((1 << 18) / std::max<std::int64_t>(1, entries_per_row), 1, 4096);
}

}  // namespace

template <class T>
void hash_rows(const DenseRows<T>& x, int n_threads, Poll& poll, std::uint64_t* out) {
    const std::int64_t step = rows_per_chunk(x.columns);
    const bool by_column = std::abs(x.row_stride) < std::abs(x.column_stride);
    const auto hash_chunk = [&](std::int64_t c) {
        const std::int64_t first = c * step, last = std::min(x.rows, first + step);
        std::fill(out + first, out + last, 0u);
        const auto add = [&](std::int64_t i, std::int64_t j) {
            out[i] += entry(static_cast<std::uint64_t>(j), x.data[i * x.row_stride + j * x.column_stride]);
        };
        if (by_column) {
            for (std::int64_t j = 0; j < x.columns; ++j) {
                for (std::int64_t i = first; i < last; ++i) add(i, j);
            }
        } else {
            for (std::int64_t i = first; i < last; ++i) {
                for (std::int64_t j = 0; j < x.columns; ++j) add(i, j);
            }
        }
        for (std::int64_t i = first; i < last; ++i) out[i] = scramble(out[i]);
    };
    parallel_for(ceil_div(x.rows, step), n_threads, hash_chunk, poll);
}

template <class T, class Index>
void hash_rows(const T* data, const Index* indices, const std::int64_t* indptr, std::int64_t rows, int n_threads, Poll& poll,
               std::uint64_t* out) {
    if (rows == 0) return;
    const std::int64_t step = rows_per_chunk(static_cast<std::int64_t>(indptr[rows] - indptr[0]) / rows);
    const auto hash_chunk = [&](std::int64_t c) {
        for (std::int64_t i = c * step; i < std::min(rows, (c + 1) * step); ++i) {
            std::uint64_t sum = 0;
            for (std::int64_t k = indptr[i]; k < indptr[i + 1]; ++k) {
                sum += entry(static_cast<std::uint64_t>(indices[k]), data[k]);
            }
            out[i] = scramble(sum);
        }
    };
    parallel_for(ceil_div(rows, step), n_threads, hash_chunk, poll);
}

#define MERCER_FOR_INDICES(T, Index) \
    template void hash_rows(const T*, const Index*, const std::int64_t*, std::int64_t, int, Poll&, std::uint64_t*);
#define MERCER_FOR_VALUES(T)                                                  \
    template void hash_rows(const DenseRows<T>&, int, Poll&, std::uint64_t*); \
    MERCER_FOR_INDICES(T, std::int32_t) \
    MERCER_FOR_INDICES(T, std::int64_t)
MERCER_FOR_VALUES(float)
MERCER_FOR_VALUES(double)
#undef MERCER_FOR_VALUES
#undef MERCER_FOR_INDICES

}  // namespace mercer
