// The loops over pairs, for any kind of samples: threads take one pair at a time and reuse their memory from pair to pair.
//
// A `Source` is a RowSource<T> with begin(first, second) and computed(), the number of its kernel values since then.
// `make` returns a new one. Time counts from `watch` on.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "algebra/infinity.hpp"
#include "simd/level_entries.hpp"
#include "solve/pairs.hpp"
#include "threads/pool.hpp"
#include "threads/spares.hpp"

namespace mercer {

struct PairRun {
    const PairList& pairs;
    const SmoStop& stop;
    const Stopwatch& watch;
    int n_threads;
    const Threads& threads;

    SmoStop left() const { return {stop.tol, stop.max_steps, std::max(0.0, stop.max_seconds - watch.seconds())}; }
    std::int64_t largest() const {
        std::int64_t most = 0;
        for (std::int64_t t = 0; t < pairs.count; ++t) most = std::max(most, pairs.offsets[t + 1] - pairs.offsets[t]);
        return most;
    }
    std::vector<std::int32_t> groups(bool paired) const {
        return std::vector<std::int32_t>(static_cast<std::size_t>(largest()), paired ? 0 : -1);
    }
};

// Calls each(source, t) for every pair t; returns how many kernel values that took.
template <class Source, class Make, class Each>
std::int64_t for_each_pair(const PairRun& run, Make make, Each each) {
    std::atomic<std::int64_t> values{0};
    Spares<Source> spares;
    parallel_for(
        run.pairs.count, run.n_threads,
        [&](std::int64_t t) {
            auto source = spares.take(make);
            source->begin(run.pairs.blocks[2 * t], run.pairs.blocks[2 * t + 1]);
            each(*source, t);
            values += source->computed();
            spares.give_back(std::move(source));
        },
        run.threads.poll);
    return values;
}

// `finish` is called with the source of a solved pair.
template <class T, class Source, class Make, class Finish>
std::int64_t solve_each_pair(const PairRun& run, const PairProblems& problems, SmoResult* results, Make make,
                             Finish finish) {
    const std::vector<std::int32_t> group = run.groups(problems.paired);
    return for_each_pair<Source>(run, make, [&](Source& source, std::int64_t t) {
        const std::int64_t from = run.pairs.offsets[t];
        const SmoProblem<T> problem{.kernel = nullptr,
                                    .stride = 0,
                                    .q = run.pairs.offsets[t + 1] - from,
                                    .h = problems.h + from,
                                    .beta = problems.beta + from,
                                    .lower = problems.lower + from,
                                    .upper = problems.upper + from,
                                    .d = problems.d + from,
                                    .group = group.data(),
                                    .source = &source};
        results[t] = smo(problem, run.left(), run.threads.level, run.threads.poll);
        finish(source, t);
    });
}

// Makes the sum of beta zero by lowering as few coefficients as possible, the largest first.
inline void balance(std::vector<double>& beta) {
    double excess = 0.0;
    for (const double b : beta) excess += b;
    std::vector<std::size_t> heavy;
    for (std::size_t i = 0; i < beta.size(); ++i) {
        if (beta[i] * excess > 0.0) heavy.push_back(i);
    }
    std::sort(heavy.begin(), heavy.end(), [&](std::size_t a, std::size_t b) {
        return std::abs(beta[a]) > std::abs(beta[b]) || (std::abs(beta[a]) == std::abs(beta[b]) && a < b);
    });
    for (const std::size_t i : heavy) {
        const double taken = std::min(std::abs(beta[i]), std::abs(excess));
        if (taken == 0.0) break;
        beta[i] -= std::copysign(taken, excess);
        excess -= std::copysign(taken, excess);
    }
}

// `Source` also has asked(), the variables whose rows are there, in the order in which they were asked for, and
// rows(), row_stride(), where these rows lie.
template <class T, class Source, class Make>
std::int64_t solve_each_fold(const PairRun& run, const PairFolds& folds, SmoResult* results, Make make) {
    const std::vector<std::int32_t> group = run.groups(folds.paired);
    const std::int64_t all = run.pairs.offsets[run.pairs.count];
    const auto combine = combine_passes_of<T>(run.threads.level).combine;
    const auto count = static_cast<std::size_t>(folds.count);

    // K beta of every fold. A row is read once for kCombined of them.
    const auto multiply = [&](const Source& source, const std::vector<std::vector<double>>& beta, std::size_t q) {
        constexpr std::size_t together = 64;  // rows: one line of each is in the first-level cache
        std::vector<std::vector<double>> products(count);
        const std::vector<std::int64_t>& asked = source.asked();
        for (std::size_t f = 0; f < count; f += kCombined) {
            const std::size_t some = std::min<std::size_t>(kCombined, count - f);
            std::vector<double> out(kCombined * q, 0.0), coefficients(together * kCombined);
            for (std::size_t first = 0; first < asked.size(); first += together) {
                const std::size_t rows = std::min(together, asked.size() - first);
                for (std::size_t r = 0; r < rows; ++r) {
                    for (std::size_t o = 0; o < kCombined; ++o) {
                        const auto i = static_cast<std::size_t>(asked[first + r]);
                        coefficients[r * kCombined + o] = o < some ? beta[f + o][i] : 0.0;
                    }
                }
                combine(source.rows() + static_cast<std::int64_t>(first) * source.row_stride(), source.row_stride(),
                        static_cast<std::int64_t>(rows), coefficients.data(), static_cast<std::int64_t>(q), out.data(),
                        static_cast<std::int64_t>(q));
            }
            for (std::size_t o = 0; o < some; ++o) {
                const auto begin = out.begin() + static_cast<std::ptrdiff_t>(o * q);
                products[f + o].assign(begin, begin + static_cast<std::ptrdiff_t>(q));
            }
        }
        return products;
    };

    return for_each_pair<Source>(run, make, [&](Source& source, std::int64_t t) {
        const std::int64_t from = run.pairs.offsets[t];
        const auto q = static_cast<std::size_t>(run.pairs.offsets[t + 1] - from);
        const double *p = folds.p + from, *d = folds.d + from, *start = folds.beta + from;
        for (std::size_t i = 0; i < q; ++i) {
            if (start[i] != 0.0) source.row(static_cast<std::int64_t>(i));
        }
        std::vector<std::vector<double>> beta(count, std::vector<double>(q));
        const auto bound = [&](const double* bounds, std::size_t f) {
            return bounds + static_cast<std::int64_t>(f) * all + from;
        };
        for (std::size_t f = 0; f < count; ++f) {
            for (std::size_t i = 0; i < q; ++i) {
                beta[f][i] = std::clamp(start[i], bound(folds.lower, f)[i], bound(folds.upper, f)[i]);
            }
            if (folds.paired) balance(beta[f]);
        }
        const std::vector<std::vector<double>> u = multiply(source, beta, q);
        std::vector<double> h(q);
        for (std::size_t f = 0; f < count; ++f) {
            for (std::size_t i = 0; i < q; ++i) h[i] = p[i] - u[f][i] - d[i] * beta[f][i];
            const SmoProblem<T> problem{.kernel = nullptr,
                                        .stride = 0,
                                        .q = static_cast<std::int64_t>(q),
                                        .h = h.data(),
                                        .beta = beta[f].data(),
                                        .lower = bound(folds.lower, f),
                                        .upper = bound(folds.upper, f),
                                        .d = d,
                                        .group = group.data(),
                                        .source = &source};
            results[static_cast<std::size_t>(t) * count + f] =
                smo(problem, run.left(), run.threads.level, run.threads.poll);
        }
        for (std::size_t f = 0; f < count; ++f) {
            std::copy(beta[f].begin(), beta[f].end(), folds.solutions + static_cast<std::int64_t>(f) * all + from);
        }
    });
}

}  // namespace mercer
