// Sparse samples: rows are laid out dense a strip at a time, columns stay as they are stored.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <vector>

#include "algebra/rounding.hpp"
#include "gram/blocks.hpp"
#include "gram/mirror.hpp"
#include "simd/level_entries.hpp"
#include "simd/padded.hpp"
#include "threads/pool.hpp"
#include "threads/spares.hpp"

namespace mercer {
namespace {

// One strip of rows laid out [feature][row]; all zero but for the entries of its rows.
template <class T>
class Strip {
public:
    Strip(const SparseSamples<T>& samples, int width)
        : samples_(samples), width_(width), data_(samples.d * width, T{0}), norms_(width, T{0}) {}

    void fill(const std::int64_t* rows, std::int64_t m) {
        write(rows, m, [](T value) { return value; });
        for (std::int64_t r = 0; r < m; ++r) norms_[r] = samples_.norms[rows[r]];
    }
    // Clears only what was written: a strip can be far larger than its rows' entries.
    void clear(const std::int64_t* rows, std::int64_t m) {
        write(rows, m, [](T) { return T{0}; });
        std::fill_n(norms_.data(), width_, T{0});
    }

    const T* data() const { return data_.data(); }
    const T* norms() const { return norms_.data(); }

private:
    template <class Value>
    void write(const std::int64_t* rows, std::int64_t m, Value value) {
        for (std::int64_t r = 0; r < m; ++r) {
            for (std::int64_t e = samples_.starts[rows[r]]; e < samples_.starts[rows[r] + 1]; ++e) {
                data_[static_cast<std::int64_t>(samples_.indices[e]) * width_ + r] = value(samples_.values[e]);
            }
        }
    }

    const SparseSamples<T>& samples_;
    const std::int64_t width_;
    Padded<T> data_, norms_;
};

// Every chunk of columns fills the strips anew: with this many columns that is cheap beside the products.
constexpr std::int64_t kColumnsPerChunk = 1024;

// Calls visit(run, i, j) for every strip of rows, which starts at row i, and every chunk of columns, which starts at j.
// Chunks run in parallel, and so do strips unless `in_order`. Where only the lower triangle of a square is wanted,
// columns before the strip are left out.
template <class T, class Visit>
void for_strips(const SparseColumns<T>& columns, const SparseSamples<T>& samples, const std::int64_t* rows,
                std::int64_t m, const double* numbers, const Threads& threads, bool in_order, bool lower_only,
                Visit visit) {
    const int width = strips_of<T>(threads.level).width;
    const std::int64_t strips = ceil_div(m, width);
    const bool few = in_order || strips < 4 * threads.count;
    const std::int64_t chunk = few ? kColumnsPerChunk : columns.n;
    const std::int64_t chunks = chunk == 0 ? 0 : ceil_div(columns.n, chunk);
    Spares<Strip<T>> spares;
    const auto multiply = [&](std::int64_t s, std::int64_t c, Strip<T>& strip) {
        const std::int64_t i = s * width, count = std::min<std::int64_t>(width, m - i);
        const std::int64_t first = lower_only ? std::max(c * chunk, i) : c * chunk,
                           end = std::min(columns.n, (c + 1) * chunk);
        if (first >= end) return;
        strip.fill(rows + i, count);
        StripRun<T> run{};
        run.strip = strip.data();
        run.strip_norms = strip.norms();
        run.values = columns.samples.values;
        run.indices = columns.samples.indices;
        run.starts = columns.samples.starts;
        run.norms = columns.samples.norms;
        run.samples = columns.which + first;
        run.n = end - first;
        std::copy_n(numbers, kNumbers, run.numbers);
        visit(run, i, first);
        strip.clear(rows + i, count);
    };
    parallel_for(
        in_order ? chunks : strips * chunks, threads.count,
        [&](std::int64_t task) {
            auto strip = spares.take([&] { return std::make_unique<Strip<T>>(samples, width); });
            if (in_order) {
                for (std::int64_t s = 0; s < strips; ++s) multiply(s, task, *strip);
            } else {
                multiply(task / chunks, task % chunks, *strip);
            }
            spares.give_back(std::move(strip));
        },
        threads.poll);
}

// Calls visit(i) for every sample of d features, 2^17 elements at a time.
template <class Visit>
void for_samples(std::int64_t n, std::int64_t d, const Threads& threads, Visit visit) {
    const std::int64_t per_chunk = std::max<std::int64_t>(1, (std::int64_t{1} << 17) / std::max<std::int64_t>(d, 1));
    parallel_for_each(n, per_chunk, threads.count, visit, threads.poll);
}

}  // namespace

template <class T, class S>
SparseArrays<T> prepare_sparse(const S* x, std::int64_t n, std::int64_t d, const double* centre, double scale, bool l1,
                               const Threads& threads) {
    SparseArrays<T> out;
    out.starts.assign(static_cast<std::size_t>(n) + 1, 0);
    for_samples(n, d, threads, [&](std::int64_t i) {
        std::int64_t count = 0;
        for (std::int64_t k = 0; k < d; ++k) count += static_cast<double>(x[i * d + k]) != centre[k];
        out.starts[static_cast<std::size_t>(i) + 1] = count;
    });
    std::partial_sum(out.starts.begin(), out.starts.end(), out.starts.begin());
    out.values.resize(static_cast<std::size_t>(out.starts.back()));
    out.indices.resize(out.values.size());
    out.norms.resize(static_cast<std::size_t>(n));
    for_samples(n, d, threads, [&](std::int64_t i) {
        auto e = static_cast<std::size_t>(out.starts[static_cast<std::size_t>(i)]);
        double size = 0.0;
        for (std::int64_t k = 0; k < d; ++k) {
            const auto entry = static_cast<double>(x[i * d + k]);
            if (entry == centre[k]) continue;
            const auto value = static_cast<T>((entry - centre[k]) * scale);
            out.values[e] = value;
            out.indices[e++] = static_cast<std::int32_t>(k);
            const auto stored = static_cast<double>(value);
            size += l1 ? std::abs(stored) : 0.5 * stored * stored;
        }
        out.norms[static_cast<std::size_t>(i)] = static_cast<T>(size);
    });
    return out;
}

template <class T>
void sum_block(const SparseColumns<T>& columns, const SparseSamples<T>& samples, const std::int64_t* rows,
               std::int64_t m, const double* coefficients, int ending, const double* numbers, double* total,
               const Threads& threads) {
    const Strips<T>& strips = strips_of<T>(threads.level);
    Padded<T> weights(m + strips.width, T{0});
    std::transform(coefficients, coefficients + m, weights.data(), [](double c) { return static_cast<T>(c); });
    for_strips(columns, samples, rows, m, numbers, threads, true, false,
               [&](const StripRun<T>& run, std::int64_t i, std::int64_t j) {
                   strips.sum[ending](run, weights.data() + i, total + j);
               });
}

template <class T>
void store_block(const SparseColumns<T>& columns, const SparseSamples<T>& samples, const std::int64_t* rows,
                 std::int64_t m, int ending, const double* numbers, T* out, std::int64_t stride,
                 const Threads& threads) {
    const Strips<T>& strips = strips_of<T>(threads.level);
    for_strips(columns, samples, rows, m, numbers, threads, false, false,
               [&](const StripRun<T>& run, std::int64_t i, std::int64_t j) {
                   strips.store[ending](run, out + j * stride + i, stride);
               });
}

template <class T>
void store_square(const SparseColumns<T>& columns, const SparseSamples<T>& samples, int ending, const double* numbers,
                  T* out, std::int64_t stride, const Threads& threads) {
    const Strips<T>& strips = strips_of<T>(threads.level);
    const auto store = [&](const StripRun<T>& run, std::int64_t i, std::int64_t j) {
        strips.store[ending](run, out + j * stride + i, stride);
    };
    // A stored entry costs about what three dense features do.
    const bool halve =
        mirror_pays(3 * (samples.starts[samples.n] - samples.starts[0]) / std::max<std::int64_t>(samples.n, 1));
    for_strips(columns, samples, columns.which, columns.n, numbers, threads, false, halve, store);
    if (halve) mirror(out, columns.n, stride, threads);
}

#define MERCER_FOR(T)                                                                                                  \
    template SparseArrays<T> prepare_sparse(const float*, std::int64_t, std::int64_t, const double*, double, bool,     \
                                            const Threads&);                                                           \
    template SparseArrays<T> prepare_sparse(const double*, std::int64_t, std::int64_t, const double*, double, bool,    \
                                            const Threads&);                                                           \
    template void sum_block(const SparseColumns<T>&, const SparseSamples<T>&, const std::int64_t*, std::int64_t,       \
                            const double*, int, const double*, double*, const Threads&);                               \
    template void store_block(const SparseColumns<T>&, const SparseSamples<T>&, const std::int64_t*, std::int64_t,     \
                              int, const double*, T*, std::int64_t, const Threads&);                                   \
    template void store_square(const SparseColumns<T>&, const SparseSamples<T>&, int, const double*, T*, std::int64_t, \
                               const Threads&);
MERCER_FOR(float)
MERCER_FOR(double)
#undef MERCER_FOR

}  // namespace mercer
