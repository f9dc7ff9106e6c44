// Pairs of sparse samples (pairs.hpp). Two samples share few features, so inner products are summed feature by feature
// over the samples of a block that have it: a text of 44 words shares three with another. All values across a pair are
// computed when it begins, those within a block once for all of its pairs, in float64; steps take rows of them.
//
// A certificate rests on the same values, and on nothing else that steps know: the values are computed from the samples
// alone, steps read copies of their rows, and K beta is summed again from beta when they have ended.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "algebra/rounding.hpp"
#include "simd/level_entries.hpp"
#include "simd/padded.hpp"
#include "solve/pair_loop.hpp"
#include "threads/pool.hpp"
#include "threads/spares.hpp"

namespace mercer {
namespace {

// The samples of a block by feature: those that have features[f] are members[starts[f]] ... members[starts[f + 1] - 1].
struct ByFeature {
    std::vector<std::int32_t> features, members;
    std::vector<std::int64_t> starts;
    std::vector<double> values;
    Padded<double> norms;
    std::int64_t n = 0;
};

ByFeature by_feature(const SparseSamples<double>& samples, const std::int64_t* rows, std::int64_t n, std::int64_t width,
                     std::vector<std::int64_t>* counts) {
    ByFeature block;
    block.n = n;
    block.norms = Padded<double>(round_up(n, width), 0.0);
    for (std::int64_t i = 0; i < n; ++i) {
        block.norms[i] = samples.norms[rows[i]];
        for (std::int64_t e = samples.starts[rows[i]]; e < samples.starts[rows[i] + 1]; ++e) {
            if ((*counts)[static_cast<std::size_t>(samples.indices[e])]++ == 0) block.features.push_back(samples.indices[e]);
        }
    }
    std::sort(block.features.begin(), block.features.end());
    std::int64_t total = 0;
    for (const std::int32_t feature : block.features) {
        block.starts.push_back(total);
        // From here on, where the next of its samples goes.
        total += std::exchange((*counts)[static_cast<std::size_t>(feature)], total);
    }
    block.starts.push_back(total);
    block.members.resize(static_cast<std::size_t>(total));
    block.values.resize(static_cast<std::size_t>(total));
    for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t e = samples.starts[rows[i]]; e < samples.starts[rows[i] + 1]; ++e) {
            const auto to = static_cast<std::size_t>((*counts)[static_cast<std::size_t>(samples.indices[e])]++);
            block.members[to] = static_cast<std::int32_t>(i);
            block.values[to] = samples.values[e];
        }
    }
    for (const std::int32_t feature : block.features) (*counts)[static_cast<std::size_t>(feature)] = 0;
    return block;
}

// Rows of kernel values, with room for whole tiles at the end of each.
struct Values {
    Values(std::int64_t rows, std::int64_t columns, std::int64_t width)
        : stride(round_up(columns, width) + kPad), values(rows * stride) {}

    double* row(std::int64_t i) { return values.data() + i * stride; }
    const double* row(std::int64_t i) const { return values.data() + i * stride; }

    std::int64_t stride;
    Padded<double> values;
};

// Kernel values between any samples and a block.
class BlockValues {
public:
    BlockValues(const SparsePairKernel& kernel, const Level& level, std::int64_t most)
        : kernel_(kernel),
          tiles_(level.tiles_double),
          places_(static_cast<std::size_t>(kernel.samples.d), 0),
          sums_(round_up(most, tiles_.columns)) {
        std::copy_n(kernel.numbers, kNumbers, run_.numbers);
    }

    void begin(const ByFeature& block) {
        if (block_ != nullptr) {
            for (const std::int32_t feature : block_->features) places_[static_cast<std::size_t>(feature)] = 0;
        }
        block_ = &block;
        for (std::size_t f = 0; f < block.features.size(); ++f) {
            places_[static_cast<std::size_t>(block.features[f])] = static_cast<std::int32_t>(f) + 1;
        }
    }

    void row(std::int64_t sample, double* out) {
        const SparseSamples<double>& samples = kernel_.samples;
        double* const sums = sums_.data();
        const std::int64_t groups = ceil_div(block_->n, tiles_.columns);
        std::fill_n(sums, groups * tiles_.columns, 0.0);
        for (std::int64_t e = samples.starts[sample]; e < samples.starts[sample + 1]; ++e) {
            const std::int32_t place = places_[static_cast<std::size_t>(samples.indices[e])];
            if (place == 0) continue;
            const double value = samples.values[e];
            const std::int64_t end = block_->starts[static_cast<std::size_t>(place)];
            for (auto m = static_cast<std::size_t>(block_->starts[static_cast<std::size_t>(place) - 1]);
                 m < static_cast<std::size_t>(end); ++m) {
                sums[block_->members[m]] += value * block_->values[m];
            }
        }
        // The sums are panels of one feature that a sample whose only entry is 1 multiplies.
        static constexpr double one = 1.0;
        run_.rows = &one;
        run_.panel = sums;
        run_.row_norms = samples.norms + sample;
        run_.column_norms = block_->norms.data();
        run_.d = 1;
        run_.groups = groups;
        tiles_.store_row[kernel_.ending](run_, out);
    }

private:
    const SparsePairKernel& kernel_;
    const Tiles<double>& tiles_;
    const ByFeature* block_ = nullptr;
    std::vector<std::int32_t> places_;
    Padded<double> sums_;
    TileRun<double> run_{};
};

struct SharedValues {
    const SparsePairKernel& kernel;
    const BlockRows& rows;
    std::vector<ByFeature> blocks;
    std::vector<Values> own;
};

// The rows of one pair as steps want them, in memory that is reused for the next pair.
template <class T>
class SparsePairRows final : public RowSource<T> {
public:
    // For pairs of at most `variables` variables, with at most `first` and `second` samples in their blocks.
    SparsePairRows(const SharedValues& shared, const Level& level, std::int64_t variables, std::int64_t first,
                   std::int64_t second)
        : shared_(shared),
          passes_(level.linear_double),
          values_(shared.kernel, level, second),
          across_(first, second, level.tiles_double.columns),
          length_(round_up(variables, kPad) + kPad),
          rows_(variables * length_),
          at_(static_cast<std::size_t>(variables)) {}

    void begin(std::int64_t first, std::int64_t second) {
        block_[0] = first;
        block_[1] = second;
        n_[0] = shared_.rows.size(first);
        n_[1] = shared_.rows.size(second);
        values_.begin(shared_.blocks[static_cast<std::size_t>(second)]);
        for (std::int64_t i = 0; i < n_[0]; ++i) values_.row(shared_.rows.rows(first)[i], across_.row(i));
        std::fill_n(at_.begin(), n_[0] + n_[1], nullptr);
        next_ = rows_.data();
        asked_.clear();
    }
    std::int64_t computed() const { return n_[0] * n_[1]; }
    const std::vector<std::int64_t>& asked() const { return asked_; }
    const T* rows() const { return rows_.data(); }
    std::int64_t row_stride() const { return length_; }

    const T* row(std::int64_t i) override {
        T*& at = at_[static_cast<std::size_t>(i)];
        if (at == nullptr) at = fill(i);
        return at;
    }
    double diagonal(std::int64_t i) const override {
        return shared_.kernel.diagonal[shared_.rows.rows(block_[side(i)])[i - side(i) * n_[0]]];
    }

    // total = K beta
    void multiply(const double* beta, double* total) const {
        std::fill_n(total, n_[0] + n_[1], 0.0);
        for (std::int64_t i = 0; i < n_[0] + n_[1]; ++i) {
            if (beta[i] == 0.0) continue;
            const int own = side(i);
            passes_.add(total + own * n_[0], within(i), beta[i], n_[own]);
            if (own == 0) passes_.add(total + n_[0], across_.row(i), beta[i], n_[1]);
        }
        for (std::int64_t i = 0; i < n_[0]; ++i) total[i] += passes_.dot(across_.row(i), beta + n_[0], n_[1]);
    }

private:
    int side(std::int64_t i) const { return i < n_[0] ? 0 : 1; }
    const double* within(std::int64_t i) const {
        return shared_.own[static_cast<std::size_t>(block_[side(i)])].row(i - side(i) * n_[0]);
    }

    T* fill(std::int64_t i) {
        T* const to = next_;
        next_ += length_;
        asked_.push_back(i);
        const auto cast = [](double value) { return static_cast<T>(value); };
        std::transform(within(i), within(i) + n_[side(i)], to + side(i) * n_[0], cast);
        if (side(i) == 0) {
            std::transform(across_.row(i), across_.row(i) + n_[1], to + n_[0], cast);
        } else {  // a third of the rows are asked for: a transposed copy of all would take longer
            for (std::int64_t j = 0; j < n_[0]; ++j) to[j] = cast(across_.row(j)[i - n_[0]]);
        }
        return to;
    }

    const SharedValues& shared_;
    const LinearPasses<double>& passes_;
    BlockValues values_;
    Values across_;  // a row for each sample of the first block
    const std::int64_t length_;
    Padded<T> rows_;
    std::vector<T*> at_;
    std::vector<std::int64_t> asked_;
    T* next_ = nullptr;
    std::int64_t block_[2] = {}, n_[2] = {};
};

SharedValues shared_values(const SparsePairKernel& kernel, const BlockRows& rows, const Threads& threads) {
    const std::int64_t width = threads.level.tiles_double.columns;
    SharedValues shared{kernel, rows, {}, {}};
    std::vector<std::int64_t> counts(static_cast<std::size_t>(kernel.samples.d), 0);
    std::int64_t most = 0;
    for (std::int64_t k = 0; k < rows.count; ++k) {
        shared.blocks.push_back(by_feature(kernel.samples, rows.rows(k), rows.size(k), width, &counts));
        shared.own.emplace_back(rows.size(k), rows.size(k), width);
        most = std::max(most, rows.size(k));
    }
    Spares<BlockValues> spares;
    parallel_for(
        rows.count, threads.count,
        [&](std::int64_t k) {
            auto values = spares.take([&] { return std::make_unique<BlockValues>(kernel, threads.level, most); });
            Values& own = shared.own[static_cast<std::size_t>(k)];
            values->begin(shared.blocks[static_cast<std::size_t>(k)]);
            for (std::int64_t i = 0; i < rows.size(k); ++i) {
                const std::int64_t sample = rows.rows(k)[i];
                values->row(sample, own.row(i));
                own.row(i)[i] = kernel.diagonal[sample];
            }
            spares.give_back(std::move(values));
        },
        threads.poll);
    return shared;
}

// Calls solve(make), where make() returns the rows of a pair; returns how many kernel values were computed in all.
template <class T, class Solve>
std::int64_t with_sparse_rows(const SparsePairKernel& kernel, const BlockRows& rows, const PairList& pairs,
                              const Threads& threads, Solve solve) {
    const SharedValues shared = shared_values(kernel, rows, threads);
    std::int64_t values = 0, variables = 0, first = 0, second = 0;
    for (std::int64_t k = 0; k < rows.count; ++k) values += rows.size(k) * rows.size(k);
    for (std::int64_t t = 0; t < pairs.count; ++t) {
        variables = std::max(variables, pairs.offsets[t + 1] - pairs.offsets[t]);
        first = std::max(first, rows.size(pairs.blocks[2 * t]));
        second = std::max(second, rows.size(pairs.blocks[2 * t + 1]));
    }
    return values + solve([&] {
        return std::make_unique<SparsePairRows<T>>(shared, threads.level, variables, first, second);
    });
}

}  // namespace

template <class T>
std::int64_t solve_sparse_pairs(const SparsePairKernel& kernel, const BlockRows& rows, const PairList& pairs,
                                const PairProblems& problems, const SmoStop& stop, SmoResult* results, double* products,
                                const Threads& threads) {
    const Stopwatch watch;
    const PairRun run{pairs, stop, watch, threads.count, threads};
    return with_sparse_rows<T>(kernel, rows, pairs, threads, [&](const auto& make) {
        return solve_each_pair<T, SparsePairRows<T>>(
            run, problems, results, make, [&](SparsePairRows<T>& source, std::int64_t t) {
                source.multiply(problems.beta + pairs.offsets[t], products + pairs.offsets[t]);
            });
    });
}

template <class T>
std::int64_t solve_sparse_folds(const SparsePairKernel& kernel, const BlockRows& rows, const PairList& pairs,
                                const PairFolds& folds, const SmoStop& stop, SmoResult* results,
                                const Threads& threads) {
    const Stopwatch watch;
    const PairRun run{pairs, stop, watch, threads.count, threads};
    return with_sparse_rows<T>(kernel, rows, pairs, threads, [&](const auto& make) {
        return solve_each_fold<T, SparsePairRows<T>>(run, folds, results, make);
    });
}

#define MERCER_FOR(T)                                                                                              \
    template std::int64_t solve_sparse_pairs<T>(const SparsePairKernel&, const BlockRows&, const PairList&,        \
                                                const PairProblems&, const SmoStop&, SmoResult*, double*,          \
                                                const Threads&);                                                   \
    template std::int64_t solve_sparse_folds<T>(const SparsePairKernel&, const BlockRows&, const PairList&,        \
                                                const PairFolds&, const SmoStop&, SmoResult*, const Threads&);
MERCER_FOR(float)
MERCER_FOR(double)
#undef MERCER_FOR

}  // namespace mercer
