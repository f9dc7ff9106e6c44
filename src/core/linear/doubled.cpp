// Dot products whose rounding errors are summed as well.
#include "linear/doubled.hpp"

#include <algorithm>
#include <cmath>

#include "algebra/doubled.hpp"
#include "linear/row_access.hpp"
#include "threads/pool.hpp"

namespace mercer {
namespace {

// hi + lo += a b
inline void add_product(double& hi, double& lo, double a, double b) {
    const double product = a * b;
    Doubled<double> sum{hi, lo + std::fma(a, b, -product)};
    sum.collect(product);
    hi = sum.high;
    lo = sum.low;
}

}  // namespace

template <class Rows>
void doubled_transposed(const Rows& rows, const double* c, double* hi, double* lo, const Threads& threads) {
    const RowAccess<Rows> access(rows, threads.level);
    std::fill_n(hi, rows.d, 0.0);
    std::fill_n(lo, rows.d, 0.0);
    std::int64_t touched = 0;
    for (std::int64_t i = 0; i < rows.n; ++i) {
        if (c[i] == 0.0) continue;
        access.each(i, [&](std::int64_t k, double x) { add_product(hi[k], lo[k], c[i], x); });
        if ((touched += access.stored(i)) > kElementsPerPoll) {
            touched = 0;
            threads.poll.check();
        }
    }
}

template <class Rows>
void doubled_product(const Rows& rows, const double* hi, const double* lo, double* out, const Threads& threads) {
    const RowAccess<Rows> access(rows, threads.level);
    const std::int64_t each = std::max<std::int64_t>(1, rows.n == 0 ? 1 : access.stored() / rows.n);
    parallel_for_each(
        rows.n, std::max<std::int64_t>(1, kElementsPerPoll / each), threads.count,
        [&](std::int64_t i) {
            double sum = 0.0, rest = 0.0;
            access.each(i, [&](std::int64_t k, double x) {
                add_product(sum, rest, x, hi[k]);
                rest += x * lo[k];
            });
            out[i] = sum + rest;
        },
        threads.poll);
}

#define MERCER_INSTANTIATE(Rows)                                                                       \
    template void doubled_transposed(const Rows&, const double*, double*, double*, const Threads&);    \
    template void doubled_product(const Rows&, const double*, const double*, double*, const Threads&);
MERCER_FOR_LINEAR_ROWS(MERCER_INSTANTIATE)
#undef MERCER_INSTANTIATE

}  // namespace mercer
