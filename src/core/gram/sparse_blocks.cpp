// Sparse samples: rows are laid out dense a strip at a time, over all features or those they have; columns stay as they
// are stored.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <type_traits>
#include <vector>

#include "algebra/rounding.hpp"
#include "gram/blocks.hpp"
#include "gram/combined_coefficients.hpp"
#include "gram/mirror.hpp"
#include "simd/level_entries.hpp"
#include "simd/padded.hpp"
#include "threads/pool.hpp"
#include "threads/spares.hpp"

namespace mercer {
namespace {

// A strip of all features may take this many bytes; beyond, only features that its rows have are laid out. With 50 to
// 150 entries per sample, layouts with and without the map take the same time from here up to eight times as many
// features, and then the map saves time (20 % at 200,000 features).
constexpr std::int64_t kWholeStripBytes = 1 << 20;
// And this many bytes hold the features of a strip's rows: rows of more than 500 entries each, with nothing in common,
// take several turns.
constexpr std::int64_t kStripBytes = 4 << 20;

// One strip of rows laid out [feature][row]; zero except for the entries of its rows.
template <class T>
class Strip {
public:
    Strip(const SparseSamples<T>& samples, int width)
        : samples_(samples), width_(width), mapped_(is_mapped(samples, width)), norms_(width, T{0}), lows_(width, T{0}) {
        if (mapped_) {
            places_.assign(static_cast<std::size_t>(samples.d), 0);
        } else {
            data_ = Padded<T>(samples.d * width, T{0});
        }
    }

    static bool is_mapped(const SparseSamples<T>& samples, int width) {
        return samples.d * width * static_cast<std::int64_t>(sizeof(T)) > kWholeStripBytes;
    }

    void begin(const std::int64_t* rows, std::int64_t m) {
        rows_ = rows;
        m_ = m;
        next_ = {0, m == 0 ? 0 : samples_.starts[rows[0]]};
        std::fill_n(norms_.data(), width_, T{0});
        for (std::int64_t r = 0; r < m; ++r) norms_[r] = samples_.norms[rows[r]];
        if (samples_.lows == nullptr) return;
        std::fill_n(lows_.data(), width_, T{0});
        for (std::int64_t r = 0; r < m; ++r) lows_[r] = samples_.lows[rows[r]];
    }

    // Lays out the next entries, all of them where there is room, and returns whether none is left.
    bool fill() {
        if (mapped_) double_if_crowded();
        first_ = next_;
        last_place_ = 0;
        for (; next_.row < m_; ++next_.row, next_.entry = next_.row < m_ ? samples_.starts[rows_[next_.row]] : 0) {
            for (const std::int64_t end = samples_.starts[rows_[next_.row] + 1]; next_.entry < end; ++next_.entry) {
                const std::int32_t k = samples_.indices[next_.entry];
                if (mapped_ && places_[static_cast<std::size_t>(k)] == 0) {
                    if (last_place_ + 2 * width_ > data_.size()) return false;
                    last_place_ += width_;
                    places_[static_cast<std::size_t>(k)] = static_cast<std::int32_t>(last_place_);
                }
                data_[place(k) + next_.row] = samples_.values[next_.entry];
            }
        }
        return true;
    }

    // Clears only what was written: a strip can be far larger than its rows' entries.
    void clear() {
        for (std::int64_t r = first_.row; r < std::min(next_.row + 1, m_); ++r) {
            const std::int64_t from = r == first_.row ? first_.entry : samples_.starts[rows_[r]];
            const std::int64_t end = r == next_.row ? next_.entry : samples_.starts[rows_[r] + 1];
            for (std::int64_t e = from; e < end; ++e) data_[place(samples_.indices[e]) + r] = T{0};
        }
        if (!mapped_) return;
        for (std::int64_t r = first_.row; r < std::min(next_.row + 1, m_); ++r) {
            const std::int64_t from = r == first_.row ? first_.entry : samples_.starts[rows_[r]];
            const std::int64_t end = r == next_.row ? next_.entry : samples_.starts[rows_[r] + 1];
            for (std::int64_t e = from; e < end; ++e) places_[static_cast<std::size_t>(samples_.indices[e])] = 0;
        }
    }

    void show(StripRun<T>* run) const {
        run->strip = data_.data();
        run->strip_norms = norms_.data();
        run->strip_lows = lows_.data();
        run->places = mapped_ ? places_.data() : nullptr;
    }
    // Buffer for the sums of samples over a part of the entries; `elements` is its size.
    T* sums(std::int64_t elements) {
        if (sums_.size() < elements) sums_ = Padded<T>(elements);
        return sums_.data();
    }

private:
    struct Cursor {
        std::int64_t row, entry;
    };

    std::int64_t place(std::int32_t k) const {
        return mapped_ ? places_[static_cast<std::size_t>(k)] : static_cast<std::int64_t>(k) * width_;
    }

    // For all features that the rows may have, and the row of zeros, up to the limit.
    void double_if_crowded() {
        std::int64_t entries = 1;
        for (std::int64_t r = 0; r < m_; ++r) entries += samples_.starts[rows_[r] + 1] - samples_.starts[rows_[r]];
        const std::int64_t most = kStripBytes / static_cast<std::int64_t>(sizeof(T));
        const std::int64_t elements = std::min(entries * width_, most);
        if (data_.size() < elements) data_ = Padded<T>(elements, T{0});
    }

    const SparseSamples<T>& samples_;
    const std::int64_t width_;
    const bool mapped_;
    const std::int64_t* rows_ = nullptr;
    std::int64_t m_ = 0, last_place_ = 0;
    Cursor first_{}, next_{};
    Padded<T> data_, norms_, lows_, sums_;
    std::vector<std::int32_t> places_;
};

template <class T>
const Strips<T>& strips_for(const SparseSamples<T>& samples, const Level& level) {
    if constexpr (std::is_same_v<T, double>) {
        if (samples.lows != nullptr) return level.strips_exact;
    }
    return strips_of<T>(level);
}

// Every chunk of columns fills the strips again: with this many columns that is cheap beside the products.
constexpr std::int64_t kColumnsPerChunk = 1024;
// Strips, one after another, between two looks at whether the work was interrupted: some milliseconds.
constexpr std::int64_t kStripsPerTask = 32;

// Calls visit(loops, run, i, j) for every strip of rows, which starts at row i, and every chunk of columns, which
// starts at j. Chunks run in parallel, and so do strips unless `in_order`. Where only the lower triangle of a square is
// wanted, columns before the strip are left out.
template <class T, class Visit>
void for_strips(const SparseColumns<T>& columns, const SparseSamples<T>& samples, const std::int64_t* rows,
                std::int64_t m, int ending, const double* numbers, const Threads& threads, bool in_order,
                bool lower_only, Visit visit) {
    const Strips<T>& strips = strips_for(samples, threads.level);
    const int width = strips.width;
    const bool mapped = Strip<T>::is_mapped(samples, width);
    const StripLoops<T>& loops = mapped ? strips.mapped : strips.all;
    const std::int64_t count = ceil_div(m, width);
    const bool split = in_order || mapped || count < 4 * threads.count;
    const std::int64_t chunk = split ? kColumnsPerChunk : columns.n;
    const std::int64_t chunks = chunk == 0 ? 0 : ceil_div(columns.n, chunk);
    Spares<Strip<T>> spares;
    const auto multiply = [&](std::int64_t s, std::int64_t c, Strip<T>& strip) {
        const std::int64_t i = s * width;
        const std::int64_t first = lower_only ? std::max(c * chunk, i) : c * chunk,
                           end = std::min(columns.n, (c + 1) * chunk);
        if (first >= end) return;
        strip.begin(rows + i, std::min<std::int64_t>(width, m - i));
        StripRun<T> run{};
        run.values = columns.samples.values;
        run.indices = columns.samples.indices;
        run.starts = columns.samples.starts;
        run.norms = columns.samples.norms;
        run.lows = columns.samples.lows;
        run.samples = columns.which + first;
        run.n = end - first;
        std::copy_n(numbers, kNumbers, run.numbers);
        for (bool last = false; !last;) {
            last = strip.fill();
            strip.show(&run);
            if (last) {
                visit(loops, run, i, first);
            } else {
                T* const sums = strip.sums(run.n * strips.sums);
                strips.keep[ending == kLaplacian](run, sums);
                run.sums = sums;
            }
            strip.clear();
        }
    };
    const auto new_strip = [&] { return std::make_unique<Strip<T>>(samples, width); };
    if (!in_order) {
        parallel_for(
            count * chunks, threads.count,
            [&](std::int64_t task) {
                auto strip = spares.take(new_strip);
                multiply(task / chunks, task % chunks, *strip);
                spares.give_back(std::move(strip));
            },
            threads.poll);
        return;
    }
    for (std::int64_t s = 0; s < count; s += kStripsPerTask) {
        parallel_for(
            chunks, threads.count,
            [&](std::int64_t c) {
                auto strip = spares.take(new_strip);
                for (std::int64_t r = s; r < std::min(count, s + kStripsPerTask); ++r) multiply(r, c, *strip);
                spares.give_back(std::move(strip));
            },
            threads.poll);
    }
}

// Calls visit(i) for every sample of d features, 2^17 elements at a time.
template <class Visit>
void for_samples(std::int64_t n, std::int64_t d, const Threads& threads, Visit visit) {
    const std::int64_t per_chunk = std::max<std::int64_t>(1, (std::int64_t{1} << 17) / std::max<std::int64_t>(d, 1));
    parallel_for_each(n, per_chunk, threads.count, visit, threads.poll);
}

}  // namespace

template <class T, class S>
SparseArrays<T> prepare_sparse(const PickedRows<S>& x, const double* centre, double scale, bool l1,
                               const Threads& threads) {
    const std::int64_t n = x.n, d = x.d;
    SparseArrays<T> out;
    out.starts.assign(static_cast<std::size_t>(n) + 1, 0);
    for_samples(n, d, threads, [&](std::int64_t i) {
        const S* row = x.row(i);
        std::int64_t count = 0;
        for (std::int64_t k = 0; k < d; ++k) count += static_cast<double>(row[k]) != centre[k];
        out.starts[static_cast<std::size_t>(i) + 1] = count;
    });
    std::partial_sum(out.starts.begin(), out.starts.end(), out.starts.begin());
    out.values.resize(static_cast<std::size_t>(out.starts.back()));
    out.indices.resize(out.values.size());
    out.norms.resize(static_cast<std::size_t>(n));
    for_samples(n, d, threads, [&](std::int64_t i) {
        auto e = static_cast<std::size_t>(out.starts[static_cast<std::size_t>(i)]);
        const S* row = x.row(i);
        double size = 0.0;
        for (std::int64_t k = 0; k < d; ++k) {
            const auto entry = static_cast<double>(row[k]);
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

void exact_norms(const double* values, const std::int64_t* starts, std::int64_t n, bool l1, double* norms, double* lows,
                 const Threads& threads) {
    parallel_for_each(
        n, 1024, threads.count,
        [&](std::int64_t i) {
            threads.level.exact_norm(values + starts[i], starts[i + 1] - starts[i], l1, norms + i, lows + i);
        },
        threads.poll);
}

template <class T>
void sum_block(const SparseColumns<T>& columns, const SparseSamples<T>& samples, const std::int64_t* rows,
               std::int64_t m, const double* coefficients, int ending, const double* numbers, double* total,
               const Threads& threads) {
    Padded<T> weights(m + strips_of<T>(threads.level).width, T{0});
    std::transform(coefficients, coefficients + m, weights.data(), [](double c) { return static_cast<T>(c); });
    for_strips(columns, samples, rows, m, ending, numbers, threads, true, false,
               [&](const StripLoops<T>& loops, const StripRun<T>& run, std::int64_t i, std::int64_t j) {
                   loops.sum[ending](run, weights.data() + i, total + j);
               });
}

template <class T>
void sum_two_blocks(const SparseColumns<T>& columns, const SparseSamples<T>& samples, const std::int64_t* rows,
                      std::int64_t m, const double* coefficients, const double* numbers, double* total,
                      const Threads& threads) {
    const std::int64_t stride = m + strips_of<T>(threads.level).width;
    Padded<T> weights(kSums * stride, T{0});
    for (int q = 0; q < kSums; ++q) {
        std::transform(coefficients + q * m, coefficients + (q + 1) * m, weights.data() + q * stride,
                       [](double c) { return static_cast<T>(c); });
    }
    for_strips(columns, samples, rows, m, kGaussian, numbers, threads, true, false,
               [&](const StripLoops<T>& loops, const StripRun<T>& run, std::int64_t i, std::int64_t j) {
                   loops.sum_two(run, weights.data() + i, stride, total + j, columns.n);
               });
}

// Here the strips hold the columns, and the samples at `rows` go past them: so the values of a strip with some samples
// are few, and are combined while they are in a cache. These samples are taken in order, and strips on all threads.
template <class T>
void sum_several_blocks(const SparseColumns<T>& columns, const SparseSamples<T>& samples, const std::int64_t* rows,
                        std::int64_t m, const double* coefficients, std::int64_t sums, int ending,
                        const double* numbers, double* total, const Threads& threads) {
    const int width = strips_for(samples, threads.level).width;
    const auto combine = combine_passes_of<T>(threads.level).combine;
    const CombinedCoefficients weights(coefficients, m, sums);
    Spares<Padded<T>> spares;
    for (std::int64_t first = 0; first < m; first += kColumnsPerChunk) {
        const std::int64_t count = std::min(kColumnsPerChunk, m - first);
        const SparseColumns<T> some{samples, rows + first, count};
        for_strips(some, columns.samples, columns.which, columns.n, ending, numbers, threads, false, false,
                   [&](const StripLoops<T>& loops, const StripRun<T>& run, std::int64_t i, std::int64_t) {
                       auto values = spares.take([&] { return std::make_unique<Padded<T>>(kColumnsPerChunk * width); });
                       loops.store[ending](run, values->data(), width);
                       const std::int64_t filled = std::min<std::int64_t>(width, columns.n - i);
                       std::vector<double> sum(static_cast<std::size_t>(kCombined * width));
                       for (std::int64_t q = 0; q < sums; q += kCombined) {
                           std::fill(sum.begin(), sum.end(), 0.0);
                           combine(values->data(), width, count, weights.from(first, q), filled, sum.data(), width);
                           for (std::int64_t o = 0; o < std::min<std::int64_t>(kCombined, sums - q); ++o) {
                               double* const to = total + (q + o) * columns.n + i;
                               for (std::int64_t c = 0; c < filled; ++c) {
                                   to[c] += sum[static_cast<std::size_t>(o * width + c)];
                               }
                           }
                       }
                       spares.give_back(std::move(values));
                   });
    }
}

template <class T>
void store_block(const SparseColumns<T>& columns, const SparseSamples<T>& samples, const std::int64_t* rows,
                 std::int64_t m, int ending, const double* numbers, T* out, std::int64_t stride,
                 const Threads& threads) {
    for_strips(columns, samples, rows, m, ending, numbers, threads, false, false,
               [&](const StripLoops<T>& loops, const StripRun<T>& run, std::int64_t i, std::int64_t j) {
                   loops.store[ending](run, out + j * stride + i, stride);
               });
}

template <class T>
void store_square(const SparseColumns<T>& columns, const SparseSamples<T>& samples, int ending, const double* numbers,
                  T* out, std::int64_t stride, const Threads& threads) {
    // A stored entry costs about what three dense features do.
    const bool halve =
        mirror_pays(3 * (samples.starts[samples.n] - samples.starts[0]) / std::max<std::int64_t>(samples.n, 1));
    for_strips(columns, samples, columns.which, columns.n, ending, numbers, threads, false, halve,
               [&](const StripLoops<T>& loops, const StripRun<T>& run, std::int64_t i, std::int64_t j) {
                   loops.store[ending](run, out + j * stride + i, stride);
               });
    if (halve) mirror(out, columns.n, stride, threads);
}

#define MERCER_FOR(T)                                                                                                  \
    template SparseArrays<T> prepare_sparse(const PickedRows<float>&, const double*, double, bool, const Threads&);    \
    template SparseArrays<T> prepare_sparse(const PickedRows<double>&, const double*, double, bool, const Threads&);   \
    template void sum_block(const SparseColumns<T>&, const SparseSamples<T>&, const std::int64_t*, std::int64_t,       \
                            const double*, int, const double*, double*, const Threads&);                               \
    template void sum_two_blocks(const SparseColumns<T>&, const SparseSamples<T>&, const std::int64_t*,              \
                                   std::int64_t, const double*, const double*, double*, const Threads&);               \
    template void sum_several_blocks(const SparseColumns<T>&, const SparseSamples<T>&, const std::int64_t*,            \
                                     std::int64_t, const double*, std::int64_t, int, const double*, double*,           \
                                     const Threads&);                                                                  \
    template void store_block(const SparseColumns<T>&, const SparseSamples<T>&, const std::int64_t*, std::int64_t,     \
                              int, const double*, T*, std::int64_t, const Threads&);                                   \
    template void store_square(const SparseColumns<T>&, const SparseSamples<T>&, int, const double*, T*, std::int64_t, \
                               const Threads&);
MERCER_FOR(float)
MERCER_FOR(double)
#undef MERCER_FOR

}  // namespace mercer
