// Problems on pairs of blocks: solved, summed and certified against loops over the whole matrix; on every level.
// Folds of dense and of sparse samples against separate solves.
#include "solve/pairs.hpp"

#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "check.hpp"
#include "simd/dispatch.hpp"
#include "solve/findings.hpp"

namespace {

using Doubles = std::vector<double>;
using Indices = std::vector<std::int64_t>;

constexpr std::int64_t kFeatures = 7;
constexpr double kNumbers[mercer::kNumbers] = {1.0, 0.0, 0.0, 0.0};

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// Blocks of very different sizes, whose samples do not lie side by side.
struct Blocks {
    Indices members, starts{0}, pairs, offsets{0};

    explicit Blocks(const Indices& sizes) {
        const auto count = static_cast<std::int64_t>(sizes.size());
        std::int64_t n = 0;
        for (const std::int64_t size : sizes) n += size;
        for (std::int64_t k = 0; k < count; ++k) {
            for (std::int64_t i = 0; i < sizes[at(k)]; ++i) {
                members.push_back((starts.back() + i) * 5 % n);  // n is not one of fives
            }
            starts.push_back(starts.back() + sizes[at(k)]);
        }
        for (std::int64_t a = 0; a < count; ++a) {
            for (std::int64_t b = count - 1; b > a; --b) {
                pairs.insert(pairs.end(), {a, b});
                offsets.push_back(offsets.back() + sizes[at(a)] + sizes[at(b)]);
            }
        }
    }
    mercer::BlockRows rows() const {
        return {members.data(), starts.data(), static_cast<std::int64_t>(starts.size()) - 1};
    }
    mercer::PairList list() const {
        return {pairs.data(), offsets.data(), static_cast<std::int64_t>(offsets.size()) - 1};
    }
    std::int64_t sample(std::int64_t t, std::int64_t i) const {
        const std::int64_t a = pairs[at(2 * t)], n = starts[at(a + 1)] - starts[at(a)];
        return i < n ? members[at(starts[at(a)] + i)] : members[at(starts[at(pairs[at(2 * t + 1)])] + i - n)];
    }
};

template <class T>
struct Samples {
    std::int64_t n;
    std::vector<T> x, norms;
    Doubles diagonal;

    explicit Samples(std::int64_t size) : n(size), x(at(size * kFeatures)), norms(at(size)), diagonal(at(size), 1.0) {
        std::mt19937 generator(7);
        std::normal_distribution<double> normal(0.0, 0.6);
        for (T& value : x) value = static_cast<T>(normal(generator));
        for (std::int64_t i = 0; i < n; ++i) norms[at(i)] = static_cast<T>(0.5 * dot(i, i));
    }
    // Sets every third entry to 0.
    void drop_entries() {
        for (std::size_t e = 0; e < x.size(); e += 3) x[e] = T{0};
        for (std::int64_t i = 0; i < n; ++i) norms[at(i)] = static_cast<T>(0.5 * dot(i, i));
    }
    double dot(std::int64_t i, std::int64_t j) const {
        double sum = 0.0;
        for (std::int64_t k = 0; k < kFeatures; ++k) {
            sum += static_cast<double>(x[at(i * kFeatures + k)]) * static_cast<double>(x[at(j * kFeatures + k)]);
        }
        return sum;
    }
    double k(std::int64_t i, std::int64_t j) const { return std::exp2(dot(i, j) - 0.5 * dot(i, i) - 0.5 * dot(j, j)); }
    mercer::DenseSamples<T> view() const { return {x.data(), n, kFeatures, norms.data()}; }
};

template <class T>
void check(const Blocks& blocks, bool paired, double curved, const mercer::Level& level, int n_threads) {
    constexpr double tol = sizeof(T) == sizeof(float) ? 1e-3 : 1e-8, noise = sizeof(T) == sizeof(float) ? 1e-5 : 1e-12;
    mercer::Poll poll;
    const mercer::Threads threads{n_threads, level, poll};
    const Samples<T> samples(static_cast<std::int64_t>(blocks.members.size()));
    const std::int64_t m = blocks.offsets.back(), count = blocks.list().count;
    Doubles p(at(m)), lower(at(m)), upper(at(m)), d(at(m), curved), beta(at(m), 0.0), u(at(m), 0.25);
    for (std::int64_t t = 0; t < count; ++t) {
        const std::int64_t a = blocks.pairs[at(2 * t)], n = blocks.starts[at(a + 1)] - blocks.starts[at(a)];
        for (std::int64_t i = blocks.offsets[at(t)]; i < blocks.offsets[at(t + 1)]; ++i) {
            const bool first = i - blocks.offsets[at(t)] < n;
            p[at(i)] = first ? 1.0 : -1.0;
            (first ? upper : lower)[at(i)] = first ? 2.0 : -3.0;
        }
    }
    const mercer::DenseSamples<T> view = samples.view();
    const mercer::PairKernel<T> kernel{view, samples.diagonal.data(), mercer::kGaussian, kNumbers};
    std::vector<mercer::SmoResult> results(at(count));
    const std::int64_t values = mercer::solve_pairs<T>(
        kernel, blocks.rows(), blocks.list(), {p.data(), beta.data(), lower.data(), upper.data(), d.data(), paired},
        {tol, 1'000'000, 60.0}, results.data(), threads);
    CHECK(values > 0);
    CHECK(mercer::sizes_agree(blocks.rows(), blocks.list()));
    mercer::add_pairs<T>(kernel, blocks.rows(), blocks.list(), beta.data(), u.data(), threads);
    for (std::int64_t t = 0; t < count; ++t) {
        CHECK(results[at(t)].reason == mercer::StopReason::converged);
        const std::int64_t from = blocks.offsets[at(t)], n = blocks.offsets[at(t + 1)] - from;
        Doubles exact(at(n), 0.0);
        double top = -1e300, bottom = 1e300, sum = 0.0, energy = 0.0;
        for (std::int64_t i = 0; i < n; ++i) {
            for (std::int64_t j = 0; j < n; ++j) {
                exact[at(i)] += beta[at(from + j)] * samples.k(blocks.sample(t, i), blocks.sample(t, j));
            }
            const std::size_t v = at(from + i);
            CHECK(std::abs(u[v] - 0.25 - exact[at(i)]) <= noise);
            CHECK(beta[v] >= lower[v] && beta[v] <= upper[v]);
            const double h = p[v] - exact[at(i)] - d[v] * beta[v];
            if (beta[v] < upper[v]) top = std::max(top, h);
            if (beta[v] > lower[v]) bottom = std::min(bottom, h);
            sum += beta[v];
            energy += beta[v] * exact[at(i)];
        }
        const double violation = paired ? top - bottom : std::max(top, -bottom);
        CHECK(violation <= 1.1 * tol);
        if (paired) CHECK(std::abs(sum) <= 1e-12);
        Doubles none(exact.size(), 0.0), reach(exact.size());
        for (std::int64_t i = 0; i < n; ++i) {
            reach[at(i)] = std::sqrt(samples.k(blocks.sample(t, i), blocks.sample(t, i)));
        }
        const mercer::PairFindings found =
            mercer::certify_pair({p.data() + from, lower.data() + from, upper.data() + from, d.data() + from,
                                  exact.data(), none.data(), reach.data(), beta.data() + from, n, paired});
        CHECK(
            std::abs((paired ? found.found.top - found.found.bottom : std::max(found.found.top, -found.found.bottom)) -
                     violation) <= 1e-12);
        CHECK(std::abs(found.energy - energy) <= 1e-10);
        CHECK(found.found.box == 0.0);
        CHECK(paired ? found.b >= bottom - 1e-12 && found.b <= top + 1e-12 : found.b == 0.0);
        // The gap is the difference of the two values; a sum that rounding has moved costs next to nothing.
        const double primal = 0.5 * found.energy + found.found.losses,
                     dual = found.gain - 0.5 * found.energy - 0.5 * found.curved;
        CHECK(std::abs(primal - dual - found.found.shares) <= 1e-9);
        CHECK(found.repair.of_gap() >= 0.0 && found.repair.of_gap() <= 1e-9);
    }
}

// The samples' entries that are not zero, row after row.
struct Csr {
    Doubles values;
    std::vector<std::int32_t> indices;
    Indices starts{0};

    explicit Csr(const Samples<double>& samples) {
        for (std::int64_t i = 0; i < samples.n; ++i) {
            for (std::int64_t k = 0; k < kFeatures; ++k) {
                const double value = samples.x[at(i * kFeatures + k)];
                if (value == 0.0) continue;
                values.push_back(value);
                indices.push_back(static_cast<std::int32_t>(k));
            }
            starts.push_back(static_cast<std::int64_t>(values.size()));
        }
    }
    mercer::SparseSamples<double> view(const Samples<double>& samples) const {
        return {values.data(), indices.data(), starts.data(), samples.n, kFeatures, samples.norms.data()};
    }
};

// p'b - 1/2 b'(K + diag d)b of problem t, and the violation of its optimality; K value by value.
template <class T>
struct Value {
    double dual = 0.0, violation = 0.0, sum = 0.0;

    Value(const Samples<T>& samples, const Blocks& blocks, std::int64_t t, const Doubles& p, const double* lower,
          const double* upper, const Doubles& d, const double* beta, bool paired) {
        const std::int64_t from = blocks.offsets[at(t)], n = blocks.offsets[at(t + 1)] - from;
        double top = -1e300, bottom = 1e300;
        for (std::int64_t i = from; i < from + n; ++i) {
            double u = 0.0;
            for (std::int64_t j = from; j < from + n; ++j) {
                u += beta[j] * samples.k(blocks.sample(t, i - from), blocks.sample(t, j - from));
            }
            const double h = p[at(i)] - u - d[at(i)] * beta[i];
            if (beta[i] < upper[i]) top = std::max(top, h);
            if (beta[i] > lower[i]) bottom = std::min(bottom, h);
            CHECK(beta[i] >= lower[i] && beta[i] <= upper[i]);
            dual += beta[i] * (p[at(i)] - 0.5 * u - 0.5 * d[at(i)] * beta[i]);
            sum += beta[i];
        }
        violation = paired ? top - bottom : std::max(top, -bottom);
    }
};

// Folds, each of which holds out other samples of every block, together and one by one: the same optima.
template <class T, class S, class Solve, class Separate>
void check_folds(const Samples<S>& samples, const Blocks& blocks, bool paired, double curved, bool near, Solve solve,
                 Separate separate) {
    constexpr std::int64_t kFolds = 3;
    constexpr double tol = sizeof(T) == sizeof(float) ? 1e-3 : 1e-8;
    const std::int64_t m = blocks.offsets.back(), count = blocks.list().count;
    Doubles p(at(m)), d(at(m), curved), start(at(m), 0.0), lower(at(kFolds * m), 0.0), upper(at(kFolds * m), 0.0);
    for (std::int64_t t = 0; t < count; ++t) {
        const std::int64_t a = blocks.pairs[at(2 * t)], n = blocks.starts[at(a + 1)] - blocks.starts[at(a)];
        for (std::int64_t i = blocks.offsets[at(t)]; i < blocks.offsets[at(t + 1)]; ++i) {
            const std::int64_t place = i - blocks.offsets[at(t)];
            const bool first = place < n;
            p[at(i)] = first ? 1.0 : -1.0;
            // A start near the solutions, whose sums are not those of the folds.
            start[at(i)] = near ? p[at(i)] * 0.1 * static_cast<double>(1 + place % 3) : 0.0;
            for (std::int64_t f = 0; f < kFolds; ++f) {
                if (place % kFolds != f) (first ? upper : lower)[at(f * m + i)] = first ? 2.0 : -3.0;
            }
        }
    }
    Doubles solutions(at(kFolds * m), 99.0);
    std::vector<mercer::SmoResult> results(at(kFolds * count));
    const mercer::SmoStop stop{tol, 1'000'000, 60.0};
    CHECK(solve(mercer::PairFolds{p.data(), start.data(), lower.data(), upper.data(), d.data(), kFolds, paired,
                                  solutions.data()},
                stop, results.data()) > 0);
    for (std::int64_t f = 0; f < kFolds; ++f) {
        Doubles alone(at(m), 0.0);
        std::vector<mercer::SmoResult> own(at(count));
        const double *low = lower.data() + f * m, *high = upper.data() + f * m, *together = solutions.data() + f * m;
        separate(mercer::PairProblems{p.data(), alone.data(), low, high, d.data(), paired}, stop, own.data());
        for (std::int64_t t = 0; t < count; ++t) {
            CHECK(results[at(t * kFolds + f)].reason == mercer::StopReason::converged);
            CHECK(own[at(t)].reason == mercer::StopReason::converged);
            const Value<S> found(samples, blocks, t, p, low, high, d, together, paired);
            const Value<S> wanted(samples, blocks, t, p, low, high, d, alone.data(), paired);
            CHECK(found.violation <= 1.1 * tol && wanted.violation <= 1.1 * tol);
            if (paired) CHECK(std::abs(found.sum) <= 1e-12);
            // Both are optimal to tol times what a solution can move.
            const double reach = 5.0 * static_cast<double>(blocks.offsets[at(t + 1)] - blocks.offsets[at(t)]);
            CHECK(std::abs(found.dual - wanted.dual) <= tol * reach);
        }
    }
}

void check_folds(const Blocks& blocks, bool paired, double curved, bool near, const mercer::Level& level,
                 int n_threads) {
    mercer::Poll poll;
    const mercer::Threads threads{n_threads, level, poll};
    const auto dense = [&]<class T>(T) {
        const Samples<T> samples(static_cast<std::int64_t>(blocks.members.size()));
        const mercer::DenseSamples<T> view = samples.view();
        const mercer::PairKernel<T> kernel{view, samples.diagonal.data(), mercer::kGaussian, kNumbers};
        check_folds<T>(
            samples, blocks, paired, curved, near,
            [&](const auto& folds, const auto& stop, auto* results) {
                return mercer::solve_folds<T>(kernel, blocks.rows(), blocks.list(), folds, stop, results, threads);
            },
            [&](const auto& problems, const auto& stop, auto* results) {
                mercer::solve_pairs<T>(kernel, blocks.rows(), blocks.list(), problems, stop, results, threads);
            });
    };
    dense(float{});
    dense(double{});
    Samples<double> samples(static_cast<std::int64_t>(blocks.members.size()));
    samples.drop_entries();
    const Csr csr(samples);
    const mercer::SparseSamples<double> view = csr.view(samples);
    const mercer::SparsePairKernel kernel{view, samples.diagonal.data(), mercer::kGaussian, kNumbers};
    const auto sparse = [&]<class T>(T) {
        check_folds<T>(
            samples, blocks, paired, curved, near,
            [&](const auto& folds, const auto& stop, auto* results) {
                return mercer::solve_sparse_folds<T>(kernel, blocks.rows(), blocks.list(), folds, stop, results,
                                                     threads);
            },
            [&](const auto& problems, const auto& stop, auto* results) {
                Doubles products(at(blocks.offsets.back()));
                mercer::solve_sparse_pairs<T>(kernel, blocks.rows(), blocks.list(), problems, stop, results,
                                              products.data(), threads);
            });
    };
    sparse(float{});
    sparse(double{});
}

// Blocks of 2, 3 and 1 samples, and offsets that are one off.
void sizes_that_disagree() {
    const Blocks blocks({2, 3, 1});
    for (std::size_t t = 0; t + 1 < blocks.offsets.size(); ++t) {
        Indices offsets = blocks.offsets;
        ++offsets[t];
        CHECK(!mercer::sizes_agree(blocks.rows(), {blocks.pairs.data(), offsets.data(), 3}));
    }
}

}  // namespace

int main() {
    sizes_that_disagree();
    for (const Indices& sizes : {Indices{37, 1, 64, 99}, Indices{16, 33}, Indices{3, 2, 2, 1, 4}}) {
        const Blocks blocks(sizes);
        for (const mercer::Level* level : mercer::levels()) {
            for (const int n_threads : {1, 3}) {
                for (const bool paired : {true, false}) {
                    for (const double curved : {0.0, 0.5}) {
                        check<float>(blocks, paired, curved, *level, n_threads);
                        check<double>(blocks, paired, curved, *level, n_threads);
                        for (const bool near : {false, true}) {
                            check_folds(blocks, paired, curved, near, *level, n_threads);
                        }
                    }
                }
            }
        }
    }
    std::printf("pairs: %s\n", failures == 0 ? "passed" : "FAILED");
    return failures == 0 ? 0 : 1;
}
