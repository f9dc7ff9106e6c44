// The loop over pairs, for any kind of samples. Threads take one pair of blocks at a time, with all problems that are on
// it, and reuse their memory from pair to pair.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "solve/pairs.hpp"
#include "threads/pool.hpp"
#include "threads/spares.hpp"

namespace mercer {

// Where the problems on the same two blocks begin, and the end.
inline std::vector<std::int64_t> runs_of(const PairList& pairs) {
    std::vector<std::int64_t> starts;
    for (std::int64_t t = 0; t < pairs.count; ++t) {
        if (t == 0 || !std::equal(pairs.blocks + 2 * t, pairs.blocks + 2 * t + 2, pairs.blocks + 2 * t - 2)) {
            starts.push_back(t);
        }
    }
    starts.push_back(pairs.count);
    return starts;
}

// `Source` is a RowSource<T> with begin(first, second), computed() since then, and multiply(beta, total), which makes
// total = K beta. `make` returns a new one. The time of `stop` counts from `watch` on. Returns how many kernel values the sources computed.
template <class T, class Source, class Make>
std::int64_t solve_each_pair(const PairList& pairs, const PairProblems& problems, const SmoStop& stop,
                             SmoResult* results, const Stopwatch& watch, int n_threads, const Threads& threads, Make make) {
    std::atomic<std::int64_t> values{0};
    std::int64_t most = 0;
    for (std::int64_t t = 0; t < pairs.count; ++t) most = std::max(most, pairs.offsets[t + 1] - pairs.offsets[t]);
    const std::vector<std::int32_t> group(static_cast<std::size_t>(most), problems.paired ? 0 : -1);
    const std::vector<std::int64_t> runs = runs_of(pairs);
    Spares<Source> spares;

    const auto solve = [&](Source& source, std::int64_t t) {
        const std::int64_t from = pairs.offsets[t], q = pairs.offsets[t + 1] - from;
        const double *h = problems.h + from, *d = problems.d + from;
        double* const beta = problems.beta + from;
        std::vector<double> gradient;
        if (problems.at_zero) {
            gradient.resize(static_cast<std::size_t>(q));
            source.multiply(beta, gradient.data());
            for (std::int64_t i = 0; i < q; ++i) {
                double& own = gradient[static_cast<std::size_t>(i)];
                own = h[i] - own - d[i] * beta[i];
            }
            h = gradient.data();
        }
        const SmoProblem<T> problem{.kernel = nullptr,
                                    .stride = 0,
                                    .q = q,
                                    .h = h,
                                    .beta = beta,
                                    .lower = problems.lower + from,
                                    .upper = problems.upper + from,
                                    .d = d,
                                    .group = group.data(),
                                    .source = &source};
        const double left = std::max(0.0, stop.max_seconds - watch.seconds());
        results[t] = smo(problem, {stop.tol, stop.max_steps, left}, threads.level, threads.poll);
        if (problems.products != nullptr) source.multiply(beta, problems.products + from);
    };
    parallel_for(
        static_cast<std::int64_t>(runs.size()) - 1, n_threads,
        [&](std::int64_t r) {
            auto source = spares.take(make);
            const std::int64_t first = runs[static_cast<std::size_t>(r)], end = runs[static_cast<std::size_t>(r) + 1];
            source->begin(pairs.blocks[2 * first], pairs.blocks[2 * first + 1]);
            for (std::int64_t t = first; t < end; ++t) solve(*source, t);
            values += source->computed();
            spares.give_back(std::move(source));
        },
        threads.poll);
    return values;
}

}  // namespace mercer
