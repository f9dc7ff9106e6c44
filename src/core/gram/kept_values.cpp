// Sums over kept kernel values: memory is read once, in order.
#include "gram/kept_values.hpp"

#include <algorithm>
#include <utility>

#include "algebra/prefetch.hpp"
#include "algebra/rounding.hpp"
#include "simd/level_entries.hpp"
#include "threads/pool.hpp"

namespace mercer {
namespace {

// Elements that a thread sums or copies at a time. Copies read scattered elements, which are slower.
constexpr std::int64_t kElementsPerSum = 1 << 19, kElementsPerCopy = 1 << 17;
// Columns that are combined at a time, with their sums in a small array on the stack.
constexpr std::int64_t kColumnsCombined = 16;
// Rows and columns that are transposed at a time: a multiple of every level's vectors, and two blocks fit the first
// cache.
constexpr std::int64_t kTransposedRows = 64;

}  // namespace

template <class T>
void add_table(const KeptValues<const T>& kept, const std::int64_t* rows, std::int64_t count,
               const double* coefficients, double* total, const Threads& threads) {
    const auto dot = linear_passes_of<T>(threads.level).dot;
    const std::int64_t per_chunk =
        std::max<std::int64_t>(1, kElementsPerSum / std::max<std::int64_t>(kept.columns, 1));
    parallel_for_each(
        count, per_chunk, threads.count,
        [&](std::int64_t i) {
            const std::int64_t row = rows == nullptr ? i : rows[i];
            total[i] += dot(kept.values + row * kept.stride, coefficients, kept.columns);
        },
        threads.poll);
}

template <class T>
void transpose(const KeptValues<const T>& from, T* to, std::int64_t stride, const Threads& threads) {
    const auto turn = cholesky_tiles_of<T>(threads.level).transpose;
    parallel_for(
        ceil_div(from.rows, kTransposedRows), threads.count,
        [&](std::int64_t c) {
            const std::int64_t i = c * kTransposedRows, rows = std::min(kTransposedRows, from.rows - i);
            for (std::int64_t j = 0; j < from.columns; j += kTransposedRows) {
                const std::int64_t columns = std::min(kTransposedRows, from.columns - j);
                turn(from.values + i * from.stride + j, from.stride, rows, columns, to + j * stride + i, stride);
            }
        },
        threads.poll);
}

template <class T>
void copy_entries(const KeptValues<const T>& kept, const std::int64_t* rows, std::int64_t row_count,
                  const std::int64_t* sources, const std::int64_t* columns, std::int64_t column_count, T* out,
                  std::int64_t stride, const Threads& threads) {
    const std::int64_t per_chunk =
        std::max<std::int64_t>(1, kElementsPerCopy / std::max<std::int64_t>(column_count, 1));
    parallel_for_each(
        row_count, per_chunk, threads.count,
        [&](std::int64_t i) {
            const T* const from = kept.values + rows[i] * kept.stride;
            // The next row may lie anywhere, which no hardware prefetcher can guess.
            const T* const next = kept.values + rows[std::min(i + 1, row_count - 1)] * kept.stride;
            T* const to = out + i * stride;
            for (std::int64_t j = 0; j < column_count; ++j) {
                prefetch(next + sources[j]);
                to[columns[j]] = from[sources[j]];
            }
        },
        threads.poll);
}

void Combinations::append(std::int64_t first, std::int64_t count, const std::int64_t* outputs, std::int64_t size,
                          const double* coefficients) {
    const std::int64_t groups = ceil_div(size, kCombined);
    Run run{first,
            count,
            {outputs, outputs + size},
            std::vector<double>(static_cast<std::size_t>(groups * count * kCombined))};
    for (std::int64_t j = 0; j < count; ++j) {
        for (std::int64_t o = 0; o < size; ++o) {
            const std::int64_t at = ((o / kCombined) * count + j) * kCombined + o % kCombined;
            run.packed[static_cast<std::size_t>(at)] = coefficients[j * size + o];
        }
    }
    for (const std::int64_t o : run.outputs) outputs_ = std::max(outputs_, o + 1);
    vectors_ = std::max(vectors_, first + count);
    runs_.push_back(std::move(run));
}

template <class T>
void Combinations::add(const KeptValues<const T>& kept, double* total, std::int64_t stride,
                       const Threads& threads) const {
    const auto combine = combine_passes_of<T>(threads.level).combine;
    parallel_for(
        ceil_div(kept.columns, kColumnsCombined), threads.count,
        [&](std::int64_t c) {
            const std::int64_t begin = c * kColumnsCombined, n = std::min(kColumnsCombined, kept.columns - begin);
            double sums[kCombined * kColumnsCombined];
            for (const Run& run : runs_) {
                const auto size = static_cast<std::int64_t>(run.outputs.size());
                for (std::int64_t g = 0; g * kCombined < size; ++g) {
                    std::fill(sums, sums + kCombined * kColumnsCombined, 0.0);
                    combine(kept.values + run.first * kept.stride + begin, kept.stride, run.count,
                            run.packed.data() + g * run.count * kCombined, n, sums, kColumnsCombined);
                    for (std::int64_t o = g * kCombined; o < std::min(size, (g + 1) * kCombined); ++o) {
                        double* to = total + begin * stride + run.outputs[static_cast<std::size_t>(o)];
                        const double* from = sums + (o - g * kCombined) * kColumnsCombined;
                        for (std::int64_t i = 0; i < n; ++i) to[i * stride] += from[i];
                    }
                }
            }
        },
        threads.poll);
}

template void add_table(const KeptValues<const float>&, const std::int64_t*, std::int64_t, const double*, double*,
                        const Threads&);
template void add_table(const KeptValues<const double>&, const std::int64_t*, std::int64_t, const double*, double*,
                        const Threads&);
template void transpose(const KeptValues<const float>&, float*, std::int64_t, const Threads&);
template void transpose(const KeptValues<const double>&, double*, std::int64_t, const Threads&);
template void copy_entries(const KeptValues<const float>&, const std::int64_t*, std::int64_t, const std::int64_t*,
                           const std::int64_t*, std::int64_t, float*, std::int64_t, const Threads&);
template void copy_entries(const KeptValues<const double>&, const std::int64_t*, std::int64_t, const std::int64_t*,
                           const std::int64_t*, std::int64_t, double*, std::int64_t, const Threads&);

template void Combinations::add(const KeptValues<const float>&, double*, std::int64_t, const Threads&) const;
template void Combinations::add(const KeptValues<const double>&, double*, std::int64_t, const Threads&) const;

}  // namespace mercer
