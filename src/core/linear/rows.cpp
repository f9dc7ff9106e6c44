// Passes over all rows of a linear machine's data, on all threads.
#include "linear/rows.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "linear/row_access.hpp"
#include "threads/pool.hpp"

namespace mercer {
namespace {

// Elements of X per chunk of a parallel pass: about a millisecond.
constexpr std::int64_t kChunk = 1 << 19;
// Passes over fewer elements than this, some 0.1 ms, stay on one thread.
constexpr std::int64_t kWorthSharing = kChunk / 8;
// Partial sums of a transposed product or of outer products; a constant, so that results do not depend on threads.
constexpr std::int64_t kParts = 4;

// Rows [begin, end) of part `part` of `parts`.
std::pair<std::int64_t, std::int64_t> share(std::int64_t n, std::int64_t part, std::int64_t parts) {
    return {n * part / parts, n * (part + 1) / parts};
}

template <class Rows, class Each>
void for_rows(const Rows& rows, std::int64_t stored, const Threads& threads, Each each) {
    if (rows.n == 0) return;
    std::int64_t chunks = std::clamp<std::int64_t>((stored + rows.n) / kChunk, 1, rows.n);
    if (chunks == 1 && stored > kWorthSharing) chunks = std::min<std::int64_t>(rows.n, 2);
    parallel_for(
        chunks, threads.count,
        [&](std::int64_t c) {
            const auto [begin, end] = share(rows.n, c, chunks);
            for (std::int64_t i = begin; i < end; ++i) each(i);
        },
        threads.poll);
}

// out = what add(k, to) adds to `to` for all k below `count`. Each part has sums of its own, which are added up in
// order. `add` returns how many elements it touched.
template <class Add>
void sum_in_parts(std::int64_t count, std::int64_t parts, double* out, std::int64_t size, const Threads& threads,
                  Add add) {
    std::vector<std::vector<double>> others(static_cast<std::size_t>(parts - 1));
    std::fill_n(out, size, 0.0);
    parallel_for(
        parts, threads.count,
        [&](std::int64_t part) {
            double* to = out;
            if (part > 0) {
                auto& own = others[static_cast<std::size_t>(part - 1)];
                own.assign(static_cast<std::size_t>(size), 0.0);
                to = own.data();
            }
            const auto [begin, end] = share(count, part, parts);
            std::int64_t touched = 0;
            for (std::int64_t k = begin; k < end; ++k) {
                if ((touched += add(k, to)) > kChunk) {
                    touched = 0;
                    threads.poll.check();
                }
            }
        },
        threads.poll);
    for (const auto& own : others) {
        for (std::int64_t k = 0; k < size; ++k) out[k] += own[static_cast<std::size_t>(k)];
    }
}

}  // namespace

template <class Rows>
void linear_product(const Rows& rows, const double* w, double shift, double* out, const Threads& threads) {
    const RowAccess<Rows> access(rows, threads.level);
    for_rows(rows, access.stored(), threads, [&](std::int64_t i) { out[i] = access.dot(i, w) + shift; });
}

template <class Rows>
void linear_lengths(const Rows& rows, double* out, const Threads& threads) {
    const RowAccess<Rows> access(rows, threads.level);
    for_rows(rows, access.stored(), threads, [&](std::int64_t i) { out[i] = access.squared_length(i); });
}

template <class Rows>
void linear_transposed(const Rows& rows, const double* c, double* out, const Threads& threads) {
    const RowAccess<Rows> access(rows, threads.level);
    // Zeroing and adding up the parts' sums must be cheap beside the rows themselves.
    const std::int64_t stored = access.stored();
    const std::int64_t parts = stored <= std::max(kWorthSharing, 4 * rows.d) ? 1
                               : stored <= 8 * kParts * rows.d               ? 2
                                                                             : kParts;
    sum_in_parts(rows.n, parts, out, rows.d, threads, [&](std::int64_t i, double* to) -> std::int64_t {
        if (c[i] == 0.0) return 0;
        access.add(i, c[i], to);
        return access.stored(i);
    });
}

template <class Rows>
void linear_outer(const Rows& rows, const std::int64_t* which, const double* c, std::int64_t m, double* out,
                  const Threads& threads) {
    const RowAccess<Rows> access(rows, threads.level);
    const std::int64_t stride = rows.d + 1, size = stride * stride;
    std::int64_t work = 0;
    for (std::int64_t k = 0; k < m; ++k) work += access.stored(which[k]) * access.stored(which[k]);
    const std::int64_t parts = work > 8 * kParts * size ? kParts : 1;
    sum_in_parts(m, parts, out, size, threads, [&](std::int64_t k, double* to) {
        access.outer(which[k], c[k], to, stride);
        return access.stored(which[k]) * access.stored(which[k]);
    });
}

#define MERCER_INSTANTIATE(Rows)                                                               \
    template void linear_product(const Rows&, const double*, double, double*, const Threads&); \
    template void linear_lengths(const Rows&, double*, const Threads&);                        \
    template void linear_transposed(const Rows&, const double*, double*, const Threads&);      \
    template void linear_outer(const Rows&, const std::int64_t*, const double*, std::int64_t, double*, const Threads&);
MERCER_FOR_LINEAR_ROWS(MERCER_INSTANTIATE)
#undef MERCER_INSTANTIATE

}  // namespace mercer
