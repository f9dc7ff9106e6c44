// Sums over kept kernel values: memory is read once, in order.
#include "table.hpp"

#include <algorithm>
#include <cstring>

#include "pool.hpp"
#include "tables.hpp"

namespace mercer {
namespace {

constexpr std::int64_t kElementsPerChunk = 1 << 19, kElementsPerCopy = 1 << 17;

inline void fetch_soon([[maybe_unused]] const void* address) {
#if defined(__GNUC__)
    __builtin_prefetch(address);
#endif
}

}  // namespace

template <class T>
void add_table(const Table<const T>& table, const double* coefficients, double* total, const Threads& threads) {
    const auto dot = linear_passes_of<T>(threads.level).dot;
    const std::int64_t chunk = std::max<std::int64_t>(1, kElementsPerChunk / std::max<std::int64_t>(table.columns, 1));
    parallel_for(
        (table.rows + chunk - 1) / chunk, threads.count,
        [&](std::int64_t c) {
            for (std::int64_t i = c * chunk; i < std::min(table.rows, (c + 1) * chunk); ++i) {
                total[i] += dot(table.values + i * table.stride, coefficients, table.columns);
            }
        },
        threads.poll);
}

template <class T>
void keep_rows(const Table<T>& table, const std::int64_t* which, std::int64_t count) {
    for (std::int64_t r = 0; r < count; ++r) {
        if (which[r] == r) continue;
        std::memmove(table.values + r * table.stride, table.values + which[r] * table.stride,
                     static_cast<std::size_t>(table.columns) * sizeof(T));
    }
}

template <class T>
void copy_entries(const Table<const T>& table, const std::int64_t* rows, std::int64_t row_count, const std::int64_t* sources,
                  const std::int64_t* columns, std::int64_t column_count, T* out, std::int64_t stride, const Threads& threads) {
    const std::int64_t chunk = std::max<std::int64_t>(1, kElementsPerCopy / std::max<std::int64_t>(column_count, 1));
    parallel_for(
        (row_count + chunk - 1) / chunk, threads.count,
        [&](std::int64_t c) {
            for (std::int64_t i = c * chunk; i < std::min(row_count, (c + 1) * chunk); ++i) {
                const T* const from = table.values + rows[i] * table.stride;
                // The next row lies anywhere, so the processor must be told.
                const T* const next = table.values + rows[std::min(i + 1, row_count - 1)] * table.stride;
                T* const to = out + i * stride;
                for (std::int64_t j = 0; j < column_count; ++j) {
                    fetch_soon(next + sources[j]);
                    to[columns[j]] = from[sources[j]];
                }
            }
        },
        threads.poll);
}

template void add_table(const Table<const float>&, const double*, double*, const Threads&);
template void add_table(const Table<const double>&, const double*, double*, const Threads&);
template void keep_rows(const Table<float>&, const std::int64_t*, std::int64_t);
template void keep_rows(const Table<double>&, const std::int64_t*, std::int64_t);
template void copy_entries(const Table<const float>&, const std::int64_t*, std::int64_t, const std::int64_t*, const std::int64_t*,
                           std::int64_t, float*, std::int64_t, const Threads&);
template void copy_entries(const Table<const double>&, const std::int64_t*, std::int64_t, const std::int64_t*,
                           const std::int64_t*, std::int64_t, double*, std::int64_t, const Threads&);

}  // namespace mercer
