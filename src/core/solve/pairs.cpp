// Rows of dense samples, a row at a time.
#include "solve/pairs.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "algebra/rounding.hpp"
#include "simd/level_entries.hpp"
#include "simd/padded.hpp"
#include "solve/pair_loop.hpp"
#include "threads/pool.hpp"

namespace mercer {
namespace {

// Pairs whose kernel values take fewer multiplications than this, a fifth of a millisecond, are done before a second
// thread is awake.
constexpr std::int64_t kAloneMultiplications = 1 << 22;

// How many threads these pairs are worth.
int threads_for(const PairList& pairs, std::int64_t d, const Threads& threads) {
    std::int64_t work = 0;
    for (std::int64_t t = 0; t < pairs.count; ++t) {
        const std::int64_t size = pairs.offsets[t + 1] - pairs.offsets[t];
        work += size * size * (d + 16);
    }
    return work > kAloneMultiplications ? threads.count : 1;
}

// One block laid out as columns.
template <class T>
struct BlockColumns {
    Padded<T> data, norms;
    std::int64_t n = 0, d = 0;

    Panels<T> view() const { return {data.data(), norms.data(), n, d}; }
};

template <class T>
std::vector<BlockColumns<T>> columns_of(const DenseSamples<T>& samples, const BlockRows& rows, const Threads& threads) {
    const std::int64_t width = tiles_of<T>(threads.level).columns;
    std::vector<BlockColumns<T>> out(static_cast<std::size_t>(rows.count));
    for (std::int64_t k = 0; k < rows.count; ++k) {
        BlockColumns<T>& block = out[static_cast<std::size_t>(k)];
        block.n = rows.size(k);
        block.d = samples.d;
        const std::int64_t padded = round_up(block.n, width);
        block.data = Padded<T>(padded * samples.d);
        block.norms = Padded<T>(padded);
        pack(samples, rows.rows(k), block.n, block.data.data(), block.norms.data(), threads);
    }
    return out;
}

// K between the samples of one block.
template <class T>
struct OwnValues {
    Padded<T> values;
    std::int64_t stride = 0;
};

template <class T>
OwnValues<T> own_values(const PairKernel<T>& kernel, const BlockColumns<T>& columns, const std::int64_t* rows,
                        const Threads& threads) {
    const Tiles<T>& tiles = tiles_of<T>(threads.level);
    OwnValues<T> own;
    own.stride = round_up(columns.n, tiles.columns) + kPad;
    own.values = Padded<T>(round_up(columns.n, tiles.rows) * own.stride);
    store_square(columns.view(), kernel.samples, rows, kernel.ending, kernel.numbers, own.values.data(), own.stride,
                 threads);
    for (std::int64_t i = 0; i < columns.n; ++i) {
        own.values[i * own.stride + i] = static_cast<T>(kernel.diagonal[rows[i]]);
    }
    return own;
}

template <class T>
struct Shared {
    const PairKernel<T>& kernel;
    const BlockRows& rows;
    std::vector<BlockColumns<T>> columns;
    std::vector<OwnValues<T>> own;
};

// The rows of one pair, computed when they are asked for, in memory that is reused for the next pair.
template <class T>
class PairRows final : public RowSource<T> {
public:
    PairRows(const Shared<T>& shared, const Level& level, std::int64_t elements, std::int64_t variables)
        : shared_(shared),
          tiles_(tiles_of<T>(level)),
          values_(elements),
          at_(static_cast<std::size_t>(variables)) {}

    void begin(std::int64_t first, std::int64_t second) {
        block_[0] = first;
        block_[1] = second;
        n_[0] = shared_.rows.size(first);
        n_[1] = shared_.rows.size(second);
        stride_ = row_length(n_[0], n_[1], tiles_.columns);
        std::fill_n(at_.begin(), n_[0] + n_[1], nullptr);
        next_ = values_.data();
        asked_.clear();
        computed_ = 0;
    }
    std::int64_t computed() const { return computed_; }

    // The second part of a row follows the first without a gap, and its last tile needs room.
    static std::int64_t row_length(std::int64_t first, std::int64_t second, std::int64_t width) {
        return round_up(std::max(first + round_up(second, width), round_up(first, width)), kPad) + kPad;
    }

    const T* row(std::int64_t i) override {
        T*& at = at_[static_cast<std::size_t>(i)];
        if (at == nullptr) at = fill(i);
        return at;
    }
    double diagonal(std::int64_t i) const override { return shared_.kernel.diagonal[sample(i)]; }

    const std::vector<std::int64_t>& asked() const { return asked_; }
    const T* rows() const { return values_.data(); }
    std::int64_t row_stride() const { return stride_; }

private:
    int side(std::int64_t i) const { return i < n_[0] ? 0 : 1; }
    std::int64_t sample(std::int64_t i) const {
        return shared_.rows.rows(block_[side(i)])[side(i) == 0 ? i : i - n_[0]];
    }

    T* fill(std::int64_t i) {
        T* const to = next_;
        next_ += stride_;
        asked_.push_back(i);
        const int own = side(i), other = 1 - own;
        const DenseSamples<T>& samples = shared_.kernel.samples;
        const BlockColumns<T>& columns = shared_.columns[static_cast<std::size_t>(block_[other])];
        const std::int64_t s = sample(i);
        TileRun<T> run{};
        run.rows = samples.rows + s * samples.d;
        run.panel = columns.data.data();
        run.row_norms = samples.norms + s;
        run.column_norms = columns.norms.data();
        run.d = samples.d;
        run.groups = ceil_div(columns.n, tiles_.columns);
        std::copy_n(shared_.kernel.numbers, kNumbers, run.numbers);
        tiles_.store_row[shared_.kernel.ending](
            run, to + (other == 0 ? 0 : n_[0]));  // its padding may reach into the other part
        const OwnValues<T>& same = shared_.own[static_cast<std::size_t>(block_[own])];
        const T* from = same.values.data() + (own == 0 ? i : i - n_[0]) * same.stride;
        std::copy_n(from, n_[own], to + (own == 0 ? 0 : n_[0]));
        computed_ += columns.n;
        return to;
    }

    const Shared<T>& shared_;
    const Tiles<T>& tiles_;
    Padded<T> values_;
    std::vector<T*> at_;
    std::vector<std::int64_t> asked_;
    T* next_ = nullptr;
    std::int64_t block_[2] = {}, n_[2] = {}, stride_ = 0, computed_ = 0;
};

}  // namespace

bool sizes_agree(const BlockRows& rows, const PairList& pairs) {
    for (std::int64_t t = 0; t < pairs.count; ++t) {
        const std::int64_t samples = rows.size(pairs.blocks[2 * t]) + rows.size(pairs.blocks[2 * t + 1]);
        if (samples != pairs.offsets[t + 1] - pairs.offsets[t]) return false;
    }
    return true;
}

namespace {

// Makes the values that pairs share, and calls solve(make), where make() returns the rows of a pair. Returns the number
// of kernel values computed in all.
template <class T, class Solve>
std::int64_t with_rows(const PairKernel<T>& kernel, const BlockRows& rows, const PairList& pairs,
                       const Threads& threads, Solve solve) {
    std::int64_t values = 0, elements = 0, variables = 0;
    Shared<T> shared{kernel, rows, columns_of(kernel.samples, rows, threads), {}};
    for (std::int64_t k = 0; k < rows.count; ++k) {
        shared.own.push_back(own_values(kernel, shared.columns[static_cast<std::size_t>(k)], rows.rows(k), threads));
        values += rows.size(k) * rows.size(k);
    }
    for (std::int64_t t = 0; t < pairs.count; ++t) {
        const std::int64_t first = rows.size(pairs.blocks[2 * t]), second = rows.size(pairs.blocks[2 * t + 1]);
        const std::int64_t length = PairRows<T>::row_length(first, second, tiles_of<T>(threads.level).columns);
        variables = std::max(variables, first + second);
        elements = std::max(elements, (first + second) * length);
    }
    return values + solve([&] { return std::make_unique<PairRows<T>>(shared, threads.level, elements, variables); });
}

}  // namespace

template <class T>
std::int64_t solve_pairs(const PairKernel<T>& kernel, const BlockRows& rows, const PairList& pairs,
                         const PairProblems& problems, const SmoStop& stop, SmoResult* results,
                         const Threads& threads) {
    const Stopwatch watch;
    const PairRun run{pairs, stop, watch, threads_for(pairs, kernel.samples.d, threads), threads};
    return with_rows(kernel, rows, pairs, threads, [&](const auto& make) {
        return solve_each_pair<T, PairRows<T>>(run, problems, results, make, [](PairRows<T>&, std::int64_t) {});
    });
}

template <class T>
std::int64_t solve_folds(const PairKernel<T>& kernel, const BlockRows& rows, const PairList& pairs,
                         const PairFolds& folds, const SmoStop& stop, SmoResult* results, const Threads& threads) {
    const Stopwatch watch;
    const PairRun run{pairs, stop, watch, threads_for(pairs, kernel.samples.d, threads), threads};
    return with_rows(kernel, rows, pairs, threads, [&](const auto& make) {
        return solve_each_fold<T, PairRows<T>>(run, folds, results, make);
    });
}

template <class T>
std::int64_t add_pairs(const PairKernel<T>& kernel, const BlockRows& rows, const PairList& pairs, const double* beta,
                       double* total, const Threads& threads) {
    const std::vector<BlockColumns<T>> columns = columns_of(kernel.samples, rows, threads);
    std::vector<std::int64_t> values(static_cast<std::size_t>(pairs.count));
    const Threads alone{1, threads.level, threads.poll};
    parallel_for(
        pairs.count, threads_for(pairs, kernel.samples.d, threads),
        [&](std::int64_t t) {
            const std::int64_t first = pairs.blocks[2 * t], second = pairs.blocks[2 * t + 1], n = rows.size(first);
            const std::int64_t from = pairs.offsets[t];
            std::vector<std::int64_t> vectors;
            std::vector<double> coefficients;
            for (std::int64_t i = 0; i < pairs.offsets[t + 1] - from; ++i) {
                if (beta[from + i] == 0.0) continue;
                vectors.push_back(i < n ? rows.rows(first)[i] : rows.rows(second)[i - n]);
                coefficients.push_back(beta[from + i]);
            }
            const auto sum = [&](std::int64_t block, double* to) {
                sum_block(columns[static_cast<std::size_t>(block)].view(), kernel.samples, vectors.data(),
                          static_cast<std::int64_t>(vectors.size()), coefficients.data(), kernel.ending, kernel.numbers,
                          to, alone);
            };
            sum(first, total + from);
            sum(second, total + from + n);
            values[static_cast<std::size_t>(t)] =
                static_cast<std::int64_t>(vectors.size()) * (pairs.offsets[t + 1] - from);
        },
        threads.poll);
    return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

#define MERCER_FOR(T)                                                                                               \
    template std::int64_t solve_pairs(const PairKernel<T>&, const BlockRows&, const PairList&, const PairProblems&, \
                                      const SmoStop&, SmoResult*, const Threads&);                                  \
    template std::int64_t solve_folds(const PairKernel<T>&, const BlockRows&, const PairList&, const PairFolds&,    \
                                      const SmoStop&, SmoResult*, const Threads&);                                  \
    template std::int64_t add_pairs(const PairKernel<T>&, const BlockRows&, const PairList&, const double*, double*, \
                                    const Threads&);
MERCER_FOR(float)
MERCER_FOR(double)
#undef MERCER_FOR

}  // namespace mercer
