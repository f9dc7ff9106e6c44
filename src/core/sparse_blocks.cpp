// Sparse samples: rows are laid out dense a strip at a time, columns stay as they are stored.
#include <algorithm>

#include "blocks.hpp"
#include "mirror.hpp"
#include "padded.hpp"
#include "pool.hpp"
#include "tables.hpp"

namespace mercer {
namespace {

// Columns a thread takes at a time: a fraction of a millisecond.
constexpr std::int64_t kColumnsPerChunk = 256;

// One strip of rows laid out [feature][row], of which only the entries in use are not zero.
template <class T>
class Strip {
public:
    Strip(const SparseSamples<T>& samples, int width)
        : samples_(samples), width_(width), data_(samples.d * width, T{0}), norms_(width, T{0}) {}

    void fill(const std::int64_t* rows, std::int64_t m) {
        write(rows, m, [](T value) { return value; });
        for (std::int64_t r = 0; r < m; ++r) norms_[r] = samples_.norms[rows[r]];
    }
    // Only what was written is cleared: the strip can be far larger than what it holds.
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

// Calls visit(run, i, j) for every strip of rows, which starts at row i, and every chunk of columns, which starts at j.
template <class T, class Visit>
void for_strips(const SparseColumns<T>& columns, const SparseSamples<T>& samples, const std::int64_t* rows, std::int64_t m,
                const double* numbers, const Threads& threads, bool lower_only, Visit visit) {
    const int width = strips_of<T>(threads.level).width;
    const std::int64_t n = columns.n;
    Strip<T> strip(samples, width);
    for (std::int64_t i = 0; i < m; i += width) {
        const std::int64_t count = std::min<std::int64_t>(width, m - i);
        strip.fill(rows + i, count);
        parallel_for(
            (n + kColumnsPerChunk - 1) / kColumnsPerChunk, threads.count,
            [&](std::int64_t c) {
                const std::int64_t j = c * kColumnsPerChunk;
                if (lower_only && j + kColumnsPerChunk <= i) return;
                StripRun<T> run{};
                run.strip = strip.data();
                run.strip_norms = strip.norms();
                run.values = columns.samples.values;
                run.indices = columns.samples.indices;
                run.starts = columns.samples.starts;
                run.norms = columns.samples.norms;
                run.samples = columns.which + j;
                run.n = std::min(kColumnsPerChunk, n - j);
                std::copy_n(numbers, kNumbers, run.numbers);
                visit(run, i, j);
            },
            threads.poll);
        strip.clear(rows + i, count);
    }
}

}  // namespace

template <class T>
void sum_block(const SparseColumns<T>& columns, const SparseSamples<T>& samples, const std::int64_t* rows, std::int64_t m,
               const double* coefficients, int ending, const double* numbers, double* total, const Threads& threads) {
    const Strips<T>& strips = strips_of<T>(threads.level);
    Padded<T> weights(m + strips.width, T{0});
    std::transform(coefficients, coefficients + m, weights.data(), [](double c) { return static_cast<T>(c); });
    for_strips(columns, samples, rows, m, numbers, threads, false, [&](const StripRun<T>& run, std::int64_t i, std::int64_t j) {
        strips.sum[ending](run, weights.data() + i, total + j);
    });
}

template <class T>
void store_block(const SparseColumns<T>& columns, const SparseSamples<T>& samples, const std::int64_t* rows, std::int64_t m,
                 int ending, const double* numbers, T* out, std::int64_t stride, const Threads& threads) {
    const Strips<T>& strips = strips_of<T>(threads.level);
    for_strips(columns, samples, rows, m, numbers, threads, false, [&](const StripRun<T>& run, std::int64_t i, std::int64_t j) {
        strips.store[ending](run, out + j * stride + i, stride);
    });
}

template <class T>
void store_square(const SparseColumns<T>& columns, const SparseSamples<T>& samples, int ending, const double* numbers, T* out,
                  std::int64_t stride, const Threads& threads) {
    const Strips<T>& strips = strips_of<T>(threads.level);
    const auto store = [&](const StripRun<T>& run, std::int64_t i, std::int64_t j) {
        strips.store[ending](run, out + j * stride + i, stride);
    };
    const bool halve = mirror_pays((samples.starts[samples.n] - samples.starts[0]) / std::max<std::int64_t>(samples.n, 1));
    for_strips(columns, samples, columns.which, columns.n, numbers, threads, halve, store);
    if (halve) mirror(out, columns.n, stride, threads);
}

#define MERCER_FOR(T)                                                                                                      \
    template void sum_block(const SparseColumns<T>&, const SparseSamples<T>&, const std::int64_t*, std::int64_t,           \
                            const double*, int, const double*, double*, const Threads&);                                   \
    template void store_block(const SparseColumns<T>&, const SparseSamples<T>&, const std::int64_t*, std::int64_t, int,    \
                              const double*, T*, std::int64_t, const Threads&);                                            \
    template void store_square(const SparseColumns<T>&, const SparseSamples<T>&, int, const double*, T*, std::int64_t,     \
                               const Threads&);
MERCER_FOR(float)
MERCER_FOR(double)
#undef MERCER_FOR

}  // namespace mercer
