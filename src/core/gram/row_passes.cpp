// Each pass is cut into chunks of rows; where chunks have sums of their own, these are added up in order.
#include "gram/row_passes.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <vector>

#include "algebra/rounding.hpp"
#include "threads/pool.hpp"

namespace mercer {
namespace {

// Elements of a chunk, some tenths of a millisecond of reading memory.
constexpr std::int64_t kElementsPerPass = 1 << 18;
// Rows of a chunk at least, where it has sums of its own for each column: these take a thirty-second of the rows.
constexpr std::int64_t kRowsPerSum = 64;
// Sums over a row that go side by side, so that they fill registers and need not wait for each other.
constexpr int kLanes = 8;

std::int64_t rows_per_pass(std::int64_t d, std::int64_t least = 1) {
    return std::max(least, kElementsPerPass / std::max<std::int64_t>(d, 1));
}

double total(const double* lanes) {
    double sum = 0.0;
    for (int l = 0; l < kLanes; ++l) sum += lanes[l];
    return sum;
}

}  // namespace

template <class T>
void copy_rows(const PickedRows<T>& x, T* out, int n_threads, Poll& poll) {
    parallel_for_each(
        x.n, rows_per_pass(x.d), n_threads, [&](std::int64_t i) { std::copy_n(x.row(i), x.d, out + i * x.d); }, poll);
}

template <class T>
void column_moments(const PickedRows<T>& x, const double* centre, double* sums, double* squares, int n_threads,
                    Poll& poll) {
    const std::int64_t d = x.d, step = rows_per_pass(d, kRowsPerSum), chunks = ceil_div(x.n, step);
    std::vector<double> parts(static_cast<std::size_t>(2 * chunks * d), 0.0);
    parallel_for(
        chunks, n_threads,
        [&](std::int64_t c) {
            double* sum = parts.data() + 2 * c * d;
            double* square = sum + d;
            const std::int64_t end = std::min(x.n, (c + 1) * step);
            std::int64_t i = c * step;
            // Four rows at a time, since sums are read and written for each element.
            for (; i + 4 <= end; i += 4) {
                const T *p = x.row(i), *q = x.row(i + 1), *r = x.row(i + 2), *s = x.row(i + 3);
                for (std::int64_t k = 0; k < d; ++k) {
                    const double a = static_cast<double>(p[k]) - centre[k], b = static_cast<double>(q[k]) - centre[k];
                    const double e = static_cast<double>(r[k]) - centre[k], f = static_cast<double>(s[k]) - centre[k];
                    sum[k] += (a + b) + (e + f);
                    square[k] += (a * a + b * b) + (e * e + f * f);
                }
            }
            for (; i < end; ++i) {
                const T* row = x.row(i);
                for (std::int64_t k = 0; k < d; ++k) {
                    const double apart = static_cast<double>(row[k]) - centre[k];
                    sum[k] += apart;
                    square[k] += apart * apart;
                }
            }
        },
        poll);
    std::fill_n(sums, d, 0.0);
    std::fill_n(squares, d, 0.0);
    for (std::int64_t c = 0; c < chunks; ++c) {
        const double* sum = parts.data() + 2 * c * d;
        for (std::int64_t k = 0; k < d; ++k) sums[k] += sum[k];
        for (std::int64_t k = 0; k < d; ++k) squares[k] += sum[d + k];
    }
}

template <class T>
void row_moments(const PickedRows<T>& x, double centre, double* sums, double* squares, int n_threads, Poll& poll) {
    parallel_for_each(
        x.n, rows_per_pass(x.d), n_threads,
        [&](std::int64_t i) {
            const T* row = x.row(i);
            double sum[kLanes] = {}, square[kLanes] = {};
            std::int64_t k = 0;
            for (; k + kLanes <= x.d; k += kLanes) {
                for (int l = 0; l < kLanes; ++l) {
                    const double apart = static_cast<double>(row[k + l]) - centre;
                    sum[l] += apart;
                    square[l] += apart * apart;
                }
            }
            for (int l = 0; k + l < x.d; ++l) {
                const double apart = static_cast<double>(row[k + l]) - centre;
                sum[l] += apart;
                square[l] += apart * apart;
            }
            sums[i] = total(sum);
            squares[i] = total(square);
        },
        poll);
}

template <class T>
bool all_finite(const T* x, std::int64_t count, int n_threads, Poll& poll) {
    std::atomic<bool> finite{true};
    parallel_for(
        ceil_div(count, kElementsPerPass), n_threads,
        [&](std::int64_t c) {
            const std::int64_t end = std::min(count, (c + 1) * kElementsPerPass);
            // Zero times what is not finite is not a number, and stays so in a sum.
            T zero[kLanes] = {};
            std::int64_t k = c * kElementsPerPass;
            for (; k + kLanes <= end; k += kLanes) {
                for (int l = 0; l < kLanes; ++l) zero[l] += x[k + l] * T{0};
            }
            for (; k < end; ++k) zero[0] += x[k] * T{0};
            if (!std::all_of(zero, zero + kLanes, [](T sum) { return sum == T{0}; })) {
                finite.store(false, std::memory_order_relaxed);
            }
        },
        poll);
    return finite.load();
}

template <class T>
void equal_rows(const PickedRows<T>& x, const std::int64_t* left, const std::int64_t* right, std::int64_t count,
                std::uint8_t* out, int n_threads, Poll& poll) {
    parallel_for_each(
        count, rows_per_pass(x.d), n_threads,
        [&](std::int64_t k) {
            const T* a = x.row(left[k]);
            out[k] = std::equal(a, a + x.d, x.row(right[k]));
        },
        poll);
}

#define MERCER_FOR(T)                                                                                             \
    template void copy_rows(const PickedRows<T>&, T*, int, Poll&);                                                \
    template void column_moments(const PickedRows<T>&, const double*, double*, double*, int, Poll&);              \
    template void row_moments(const PickedRows<T>&, double, double*, double*, int, Poll&);                        \
    template bool all_finite(const T*, std::int64_t, int, Poll&);                                                 \
    template void equal_rows(const PickedRows<T>&, const std::int64_t*, const std::int64_t*, std::int64_t,        \
                             std::uint8_t*, int, Poll&);
MERCER_FOR(float)
MERCER_FOR(double)
#undef MERCER_FOR

}  // namespace mercer
