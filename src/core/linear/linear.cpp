// Rows of linear machines: what needs wide registers is in linear_passes.hpp, the order of things is here.
#include "linear/linear.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "linear/descent_stop.hpp"
#include "linear/packed_descent.hpp"
#include "simd/level_entries.hpp"
#include "threads/pool.hpp"

namespace mercer {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Elements of X per chunk of a parallel pass: about a millisecond.
constexpr std::int64_t kChunk = 1 << 19;
// Partial sums of a transposed product or of outer products; fixed, so that the result does not depend on threads.
constexpr std::int64_t kParts = 4;
// Elements touched between two polls of the sequential descent.
constexpr std::int64_t kElementsPerPoll = 1 << 18;

// The two things every loop here does with a row, for dense and sparse storage.
template <class Rows>
class Access;

template <class T>
class Access<LinearDense<T>> {
public:
    Access(const LinearDense<T>& rows, const Level& level) : rows_(rows), pass_(linear_passes_of<T>(level)) {}
    double dot(std::int64_t i, const double* w) const { return pass_.dot(row(i), w, rows_.d); }
    void add(std::int64_t i, double factor, double* w) const { pass_.add(w, row(i), factor, rows_.d); }
    double length(std::int64_t i) const {
        double sum = 0.0;
        for (std::int64_t k = 0; k < rows_.d; ++k) {
            const auto v = static_cast<double>(row(i)[k]);
            sum += v * v;
        }
        return sum;
    }
    template <class Use>
    void each(std::int64_t i, Use use) const {
        for (std::int64_t k = 0; k < rows_.d; ++k) use(k, static_cast<double>(row(i)[k]));
    }
    std::int64_t stored(std::int64_t) const { return rows_.d; }
    std::int64_t stored() const { return rows_.n * rows_.d; }
    void fetch(std::int64_t i) const {
#if defined(__GNUC__)
        const char* begin = reinterpret_cast<const char*>(row(i));
        const auto bytes = std::min<std::int64_t>(rows_.d * static_cast<std::int64_t>(sizeof(T)), 512);
        for (std::int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(begin + at);
#else
        (void)i;
#endif
    }
    void outer(std::int64_t i, double c, double* out, std::int64_t stride) const {
        const T* x = row(i);
        for (std::int64_t a = 0; a < rows_.d; ++a) {
            if (x[a] != T{0}) pass_.add(out + a * stride, x, c * static_cast<double>(x[a]), a + 1);
        }
        pass_.add(out + rows_.d * stride, x, c, rows_.d);
        out[rows_.d * stride + rows_.d] += c;
    }

private:
    const T* row(std::int64_t i) const { return rows_.data + i * rows_.d; }
    const LinearDense<T>& rows_;
    const LinearPasses<T>& pass_;
};

template <class T, class Index>
class Access<LinearCsr<T, Index>> {
public:
    Access(const LinearCsr<T, Index>& rows, const Level&) : rows_(rows) {}
    double dot(std::int64_t i, const double* w) const {
        const Range r = range(i);
        double sum[4] = {};
        std::int64_t k = r.begin;
        for (; k + 4 <= r.end; k += 4) {
            for (int a = 0; a < 4; ++a) sum[a] += value(k + a) * w[rows_.indices[k + a]];
        }
        for (; k < r.end; ++k) sum[0] += value(k) * w[rows_.indices[k]];
        return (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
    void add(std::int64_t i, double factor, double* w) const {
        const Range r = range(i);
        for (std::int64_t k = r.begin; k < r.end; ++k) w[rows_.indices[k]] += factor * value(k);
    }
    double length(std::int64_t i) const {
        const Range r = range(i);
        double sum = 0.0;
        for (std::int64_t k = r.begin; k < r.end; ++k) sum += value(k) * value(k);
        return sum;
    }
    template <class Use>
    void each(std::int64_t i, Use use) const {
        const Range r = range(i);
        for (std::int64_t k = r.begin; k < r.end; ++k) use(static_cast<std::int64_t>(rows_.indices[k]), value(k));
    }
    std::int64_t stored(std::int64_t i) const { return range(i).end - range(i).begin; }
    std::int64_t stored() const { return rows_.stored; }
    void fetch(std::int64_t i) const {
#if defined(__GNUC__)
        const Range r = range(i);
        for (std::int64_t k = r.begin; k < std::min(r.end, r.begin + 64);
             k += 64 / static_cast<std::int64_t>(sizeof(T))) {
            __builtin_prefetch(rows_.data + k);
        }
        for (std::int64_t k = r.begin; k < std::min(r.end, r.begin + 64);
             k += 64 / static_cast<std::int64_t>(sizeof(Index))) {
            __builtin_prefetch(rows_.indices + k);
        }
#else
        (void)i;
#endif
    }
    void outer(std::int64_t i, double c, double* out, std::int64_t stride) const {
        const Range r = range(i);
        for (std::int64_t a = r.begin; a < r.end; ++a) {
            double* to = out + static_cast<std::int64_t>(rows_.indices[a]) * stride;
            const double scaled = c * value(a);
            for (std::int64_t k = r.begin; k <= a; ++k) to[rows_.indices[k]] += scaled * value(k);
        }
        double* last = out + rows_.d * stride;
        for (std::int64_t k = r.begin; k < r.end; ++k) last[rows_.indices[k]] += c * value(k);
        last[rows_.d] += c;
    }

private:
    struct Range {
        std::int64_t begin, end;
    };
    Range range(std::int64_t i) const {
        return {static_cast<std::int64_t>(rows_.starts[i]), static_cast<std::int64_t>(rows_.ends[i])};
    }
    double value(std::int64_t k) const { return static_cast<double>(rows_.data[k]); }
    const LinearCsr<T, Index>& rows_;
};

inline void prefetch(const void* at) {
#if defined(__GNUC__)
    __builtin_prefetch(at);
#else
    (void)at;
#endif
}

// Rows [begin, end) of part `part` of `parts`.
std::pair<std::int64_t, std::int64_t> share(std::int64_t n, std::int64_t part, std::int64_t parts) {
    return {n * part / parts, n * (part + 1) / parts};
}

template <class Rows, class Each>
void over_rows(const Rows& rows, const Access<Rows>& access, const LinearThreads& threads, Each each) {
    if (rows.n == 0) return;
    const std::int64_t chunks = std::clamp<std::int64_t>((access.stored() + rows.n) / kChunk, 1, rows.n);
    const std::int64_t pieces =
        chunks == 1 && access.stored() > kChunk / 8 ? std::min<std::int64_t>(rows.n, 2) : chunks;
    parallel_for(
        pieces, threads.n_threads,
        [&](std::int64_t c) {
            const auto [begin, end] = share(rows.n, c, pieces);
            for (std::int64_t i = begin; i < end; ++i) each(i);
        },
        threads.poll);
}

// splitmix64 (Steele, Lea, Flood 2014): one word of state, good enough to shuffle with.
std::uint64_t next_random(std::uint64_t* state) {
    std::uint64_t z = (*state += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

// Below `end` < 2^32, by the high half of a product: the bias of 2^-32 is of no consequence for an order of rows.
std::int64_t random_below(std::uint64_t* state, std::int64_t end) {
    const std::uint64_t r = next_random(state);
    if (end <= std::numeric_limits<std::uint32_t>::max()) {
        return static_cast<std::int64_t>(((r >> 32) * static_cast<std::uint64_t>(end)) >> 32);
    }
    return static_cast<std::int64_t>(r % static_cast<std::uint64_t>(end));
}

// Where the objective at one variable still falls, and where it does not, in the two directions that matter: away from
// zero and towards it.
struct Pull {
    double away, towards;  // positive: how fast the objective falls that way; -inf where the box ends
};

// `slope` is the derivative of the smooth part of what is minimised.
inline Pull pull(double slope, double beta, double lower, double upper, double epsilon) {
    const double up = beta < upper ? -(slope + (beta >= 0.0 ? epsilon : -epsilon)) : -kInfinity;
    const double down = beta > lower ? slope + (beta > 0.0 ? epsilon : -epsilon) : -kInfinity;
    if (beta > 0.0) return {up, down};
    if (beta < 0.0) return {down, up};
    return {std::max(up, down), -kInfinity};
}

inline double shrunk(double r, double width) { return r > width ? r - width : r < -width ? r + width : 0.0; }

// The share of the duality gap that a variable is to blame for, with r = p - f: never negative.
inline double gap_term(double r, double beta, double lower, double upper, double d, double epsilon) {
    const double beyond = shrunk(r, epsilon);
    const double best = d > 0.0        ? std::clamp(beyond / d, lower, upper)
                        : beyond > 0.0 ? upper
                        : beyond < 0.0 ? lower
                                       : 0.0;
    return best * (beyond - 0.5 * d * best) - beta * (r - 0.5 * d * beta) + epsilon * std::abs(beta);
}

}  // namespace

template <class Rows>
void linear_product(const Rows& rows, const double* w, double shift, double* out, const LinearThreads& threads) {
    const Access<Rows> access(rows, threads.level);
    over_rows(rows, access, threads, [&](std::int64_t i) { out[i] = access.dot(i, w) + shift; });
}

template <class Rows>
void linear_lengths(const Rows& rows, double* out, const LinearThreads& threads) {
    const Access<Rows> access(rows, threads.level);
    over_rows(rows, access, threads, [&](std::int64_t i) { out[i] = access.length(i); });
}

template <class Rows>
void linear_transposed(const Rows& rows, const double* c, double* out, const LinearThreads& threads) {
    const Access<Rows> access(rows, threads.level);
    std::fill_n(out, rows.d, 0.0);
    if (rows.n == 0) return;
    // Worth more vectors of sums only where the rows outweigh them.
    const std::int64_t stored = access.stored();
    const std::int64_t parts = stored <= kChunk / 8 || stored <= 4 * rows.d ? 1
                               : stored <= 8 * kParts * rows.d              ? 2
                                                                            : kParts;
    std::vector<std::vector<double>> sums(static_cast<std::size_t>(parts - 1));
    parallel_for(
        parts, threads.n_threads,
        [&](std::int64_t part) {
            double* to = out;
            if (part > 0) {
                auto& own = sums[static_cast<std::size_t>(part - 1)];
                own.assign(static_cast<std::size_t>(rows.d), 0.0);
                to = own.data();
            }
            const auto [begin, end] = share(rows.n, part, parts);
            std::int64_t touched = 0;
            for (std::int64_t i = begin; i < end; ++i) {
                if (c[i] == 0.0) continue;
                access.add(i, c[i], to);
                if ((touched += access.stored(i)) > kChunk) {
                    touched = 0;
                    threads.poll.check();
                }
            }
        },
        threads.poll);
    for (const auto& own : sums) {
        for (std::int64_t k = 0; k < rows.d; ++k) out[k] += own[static_cast<std::size_t>(k)];
    }
}

template <class Rows>
void linear_outer(const Rows& rows, const std::int64_t* which, const double* c, std::int64_t m, double* out,
                  const LinearThreads& threads) {
    const Access<Rows> access(rows, threads.level);
    const std::int64_t stride = rows.d + 1, size = stride * stride;
    std::int64_t work = 0;
    for (std::int64_t k = 0; k < m; ++k) work += access.stored(which[k]) * access.stored(which[k]);
    const std::int64_t parts = work > 8 * kParts * size ? kParts : 1;
    std::vector<std::vector<double>> sums(static_cast<std::size_t>(parts - 1));
    std::fill_n(out, size, 0.0);
    parallel_for(
        parts, threads.n_threads,
        [&](std::int64_t part) {
            double* to = out;
            if (part > 0) {
                auto& own = sums[static_cast<std::size_t>(part - 1)];
                own.assign(static_cast<std::size_t>(size), 0.0);
                to = own.data();
            }
            const auto [begin, end] = share(m, part, parts);
            std::int64_t touched = 0;
            for (std::int64_t k = begin; k < end; ++k) {
                access.outer(which[k], c[k], to, stride);
                if ((touched += access.stored(which[k]) * access.stored(which[k])) > kChunk) {
                    touched = 0;
                    threads.poll.check();
                }
            }
        },
        threads.poll);
    for (const auto& own : sums) {
        for (std::int64_t k = 0; k < size; ++k) out[k] += own[static_cast<std::size_t>(k)];
    }
}

namespace {

// Samples per chunk, and sums that are independent of each other within one: both fix the order of summation.
constexpr std::int64_t kSamples = 1 << 13;
constexpr std::int64_t kLanes = 8;

// What r exceeds `width` by on either side, without a branch.
inline double beyond_of(double r, double width) { return std::max(r - width, 0.0) + std::min(r + width, 0.0); }

inline double answer(const Respondents& to, std::int64_t i, double f) {
    return std::min(std::max(beyond_of(to.q[i] - f, to.epsilon[i]) * to.inverse[i], to.lower[i]), to.upper[i]);
}

}  // namespace

Response linear_response(const Respondents& samples, const double* p, const double* d, const double* f, double* t,
                         int n_threads, Poll& poll) {
    std::vector<Response> parts(static_cast<std::size_t>((samples.n + kSamples - 1) / kSamples));
    parallel_for(
        static_cast<std::int64_t>(parts.size()), n_threads,
        [&](std::int64_t c) {
            Response sum{};
            for (std::int64_t i = c * kSamples; i < std::min(samples.n, (c + 1) * kSamples); ++i) {
                const double lower = samples.lower[i], upper = samples.upper[i], epsilon = samples.epsilon[i];
                const double best = answer(samples, i, f[i]), r = p[i] - f[i], beyond = beyond_of(r, epsilon);
                const double truly = d[i] > 0.0 ? std::min(std::max(beyond / d[i], lower), upper)
                                                : (beyond > 0.0   ? upper
                                                   : beyond < 0.0 ? lower
                                                                  : 0.0);
                const double loss = truly * (beyond - 0.5 * d[i] * truly);
                sum.total += best;
                sum.losses += loss;
                sum.shares += loss - best * (r - 0.5 * d[i] * best) + epsilon * std::abs(best);
                t[i] = best;
            }
            parts[static_cast<std::size_t>(c)] = sum;
        },
        poll);
    Response all{};
    for (const Response& part : parts) {
        all.total += part.total;
        all.losses += part.losses;
        all.shares += part.shares;
    }
    return all;
}

double linear_along(const Respondents& samples, const double* f, const double* move, double step, int n_threads,
                    Poll& poll) {
    std::vector<double> parts(static_cast<std::size_t>((samples.n + kSamples - 1) / kSamples));
    parallel_for(
        static_cast<std::int64_t>(parts.size()), n_threads,
        [&](std::int64_t c) {
            const std::int64_t end = std::min(samples.n, (c + 1) * kSamples);
            double sums[kLanes] = {};
            std::int64_t i = c * kSamples;
            for (; i + kLanes <= end; i += kLanes) {
                for (std::int64_t l = 0; l < kLanes; ++l) {
                    sums[l] += answer(samples, i + l, f[i + l] + step * move[i + l]) * move[i + l];
                }
            }
            for (; i < end; ++i) sums[0] += answer(samples, i, f[i] + step * move[i]) * move[i];
            parts[static_cast<std::size_t>(c)] = std::accumulate(sums, sums + kLanes, 0.0);
        },
        poll);
    return std::accumulate(parts.begin(), parts.end(), 0.0);
}

namespace {

// All that a visit needs to know of a variable, in one cache line.
struct alignas(64) Variable {
    double p, lower, upper, d, epsilon, curvature, inverse, beta;
};

}  // namespace

template <class Rows>
DcdResult linear_dcd(const Rows& rows, PackedCsr& kept, const DcdProblem& problem, const DcdStop& stop,
                     std::uint64_t* seed, const LinearThreads& threads) {
    Poll& poll = threads.poll;
    if constexpr (requires { rows.starts; }) {
        if (PackedCsr::possible(rows) && one_sided(problem, rows.n)) {
            const PackedCsr& packed = kept.of(rows, threads.n_threads, poll);
            const auto descend = [&]<bool curved>() {
                PackedDescent<curved, decltype(&random_below)> descent(packed, rows.n, rows.d, problem, stop, seed,
                                                                       &random_below, threads);
                return descent.run(kElementsPerPoll);
            };
            return problem.d[0] > 0.0 ? descend.template operator()<true>() : descend.template operator()<false>();
        }
    }
    if (problem.bias > std::numeric_limits<double>::max()) return {0, 0.0, 0.0, "unsettled"};
    const Access<Rows> access(rows, threads.level);
    const double coupling = problem.bias * problem.bias;
    const auto begun = Poll::Clock::now();
    std::vector<std::int64_t> order(static_cast<std::size_t>(rows.n));
    std::iota(order.begin(), order.end(), std::int64_t{0});
    std::vector<Variable> variables(static_cast<std::size_t>(rows.n));
    for (std::int64_t i = 0; i < rows.n; ++i) {
        const double curvature = problem.lengths[i] + coupling + problem.d[i];
        variables[static_cast<std::size_t>(i)] = {problem.p[i],
                                                  problem.lower[i],
                                                  problem.upper[i],
                                                  problem.d[i],
                                                  problem.epsilon[i],
                                                  curvature,
                                                  curvature > 0.0 ? 1.0 / curvature : 0.0,
                                                  problem.beta[i]};
    }
    auto active = static_cast<std::size_t>(rows.n);
    // Rows that would have to fall behind these to move again are left aside.
    double resists_away = kInfinity, resists_towards = kInfinity;
    std::int64_t visits = 0, since_poll = 0;
    const auto epochs = [&] { return rows.n == 0 ? 0 : (visits + rows.n - 1) / rows.n; };
    double b = coupling * std::accumulate(problem.beta, problem.beta + rows.n, 0.0);
    double worst = 0.0, gap = 0.0, value = problem.value - (coupling > 0.0 ? 0.5 * b * b / coupling : 0.0);
    double* const w = problem.w;
    const auto finish = [&](const char* reason) {
        *problem.b = b;
        for (std::size_t i = 0; i < variables.size(); ++i) problem.beta[i] = variables[i].beta;
        return DcdResult{epochs(), worst, gap, reason};
    };
    std::vector<std::uint8_t> offends(order.size());
    const auto look = [&] {
        Truth all{};
        for (std::size_t i = 0; i < variables.size(); ++i) {
            const Variable& v = variables[i];
            const auto row = static_cast<std::int64_t>(i);
            const double slope = access.dot(row, w) + b + v.d * v.beta - v.p;
            const Pull now = pull(slope, v.beta, v.lower, v.upper, v.epsilon);
            all.gap += gap_term(v.d * v.beta - slope, v.beta, v.lower, v.upper, v.d, v.epsilon);
            const double violation = std::max({0.0, now.away, now.towards});
            all.violation = std::max(all.violation, violation);
            offends[i] = violation > 0.0;
            if ((since_poll += access.stored(row)) > kElementsPerPoll) {
                since_poll = 0;
                poll.check();
            }
        }
        return all;
    };
    DescentStop ends(stop, rows.n);
    while (true) {
        if (visits >= stop.max_epochs * rows.n) return finish("max_epochs");
        double worst_away = 0.0, worst_towards = 0.0;
        gap = 0.0;
        for (std::size_t s = 0; s < active; ++s) {
            // Fisher and Yates, a few places ahead of the descent, so that the rows can be on their way.
            constexpr std::size_t kAhead = 3;
            const std::size_t from = s == 0 ? 0 : s + kAhead;
            for (std::size_t t = from; t <= s + kAhead && t < active; ++t) {
                std::swap(
                    order[t],
                    order[t + static_cast<std::size_t>(random_below(seed, static_cast<std::int64_t>(active - t)))]);
                access.fetch(order[t]);
                prefetch(&variables[static_cast<std::size_t>(order[t])]);
            }
            const std::int64_t i = order[s];
            Variable& v = variables[static_cast<std::size_t>(i)];
            const double beta = v.beta, epsilon = v.epsilon;
            const double slope = access.dot(i, w) + b + v.d * beta - v.p;
            const Pull now = pull(slope, beta, v.lower, v.upper, epsilon);
            ++visits;
            since_poll += access.stored(i) + 8;
            if (-now.away > resists_away && -now.towards > resists_towards) {
                --active;
                std::swap(order[s], order[active]);
                --s;
                continue;
            }
            gap += gap_term(v.d * beta - slope, beta, v.lower, v.upper, v.d, epsilon);
            worst_away = std::max(worst_away, now.away);
            worst_towards = std::max(worst_towards, now.towards);
            if (now.away > 0.0 || now.towards > 0.0) {
                // A row of zeros without ridge is linear in its variable, and its box finite.
                const double to = v.curvature > 0.0 ? std::clamp(shrunk(beta - slope * v.inverse, epsilon * v.inverse),
                                                                 v.lower, v.upper)
                                                    : (shrunk(-slope, epsilon) > 0.0 ? v.upper : v.lower);
                const double step = to - beta;
                if (step != 0.0) {
                    v.beta = to;
                    value -= step * (slope + 0.5 * v.curvature * step) + epsilon * (std::abs(to) - std::abs(beta));
                    access.add(i, step, w);
                    b += step * coupling;
                    since_poll += access.stored(i);
                }
            }
            if (since_poll > kElementsPerPoll) {
                since_poll = 0;
                poll.check();
                if (std::chrono::duration<double>(Poll::Clock::now() - begun).count() > stop.max_seconds) {
                    return finish("max_seconds");
                }
            }
        }
        worst = std::max(worst_away, worst_towards);
        if (ends.worth_a_look(worst, gap, value, static_cast<std::int64_t>(active), visits)) {
            const Truth truth = look();
            if (ends.met(truth, value) || ends.idle(truth, value, visits)) {
                worst = truth.violation, gap = truth.gap;
                return finish("converged");
            }
            active = wake(&order, active, offends);
        }
        if (stop.shrinking) {
            resists_away = worst_towards > 0.0 ? worst_towards : kInfinity;
            resists_towards = worst_away > 0.0 ? worst_away : kInfinity;
        }
    }
}

template <class Rows>
DcdResult linear_joint_dcd(const Rows& rows, const JointDcdProblem& problem, const DcdStop& stop, std::uint64_t* seed,
                           const Level& level, Poll& poll) {
    const Access<Rows> access(rows, level);
    const auto begun = Poll::Clock::now();
    const std::int64_t classes = problem.classes;
    const auto width = static_cast<std::size_t>(classes);
    std::vector<double> e(width), limit(width), sorted(width), step(width);
    std::vector<std::int64_t> order(static_cast<std::size_t>(rows.n));
    std::iota(order.begin(), order.end(), std::int64_t{0});
    double worst = 0.0, gap = 0.0;
    std::int64_t epoch = 0, since_poll = 0;
    while (true) {
        if (epoch >= stop.max_epochs) return {epoch, worst, gap, "max_epochs"};
        ++epoch;
        worst = gap = 0.0;
        for (std::size_t s = 0; s < order.size(); ++s) {
            std::swap(
                order[s],
                order[s + static_cast<std::size_t>(random_below(seed, static_cast<std::int64_t>(order.size() - s)))]);
            const std::int64_t i = order[s], own = problem.y[i];
            const double C = problem.C[i], A = problem.lengths[i] + problem.bias * problem.bias;
            double* beta = problem.beta + i * classes;
            // e_k = f_k + 1 - [k = y].
            for (std::int64_t k = 0; k < classes; ++k) {
                e[static_cast<std::size_t>(k)] = (k == own ? 0.0 : 1.0) + problem.bias * problem.w_bias[k];
            }
            access.each(i, [&](std::int64_t j, double x) {
                const double* w = problem.w + j * classes;
                for (std::size_t k = 0; k < width; ++k) e[k] += x * w[k];
            });
            double top = -kInfinity, bottom = kInfinity, paid = 0.0;
            for (std::int64_t k = 0; k < classes; ++k) {
                const double value = e[static_cast<std::size_t>(k)];
                top = std::max(top, value);
                if (beta[k] < (k == own ? C : 0.0)) bottom = std::min(bottom, value);
                paid -= beta[k] * (value - e[static_cast<std::size_t>(own)]);
            }
            worst = std::max(worst, top - bottom);
            gap += std::max(0.0, C * (top - e[static_cast<std::size_t>(own)]) - paid);
            since_poll += (access.stored(i) + 2) * classes;
            if (top > bottom) {
                if (A > 0.0) {
                    // The new beta_k = min(cap_k, (A beta_k - e_k - level) / A), cap = C for the label and 0 for others: its sum is
                    // zero where the sum over k of max(0, level - limit_k) is A C, limit = A beta - e - A cap.
                    for (std::int64_t k = 0; k < classes; ++k) {
                        const auto c = static_cast<std::size_t>(k);
                        limit[c] = A * beta[k] - e[c] - (k == own ? A * C : 0.0);
                    }
                    sorted = limit;
                    std::sort(sorted.begin(), sorted.end());
                    double sum = A * C + sorted[0], water = sum;
                    for (std::size_t r = 1; r < width && sorted[r] < water; ++r) {
                        sum += sorted[r];
                        water = sum / static_cast<double>(r + 1);
                    }
                    for (std::int64_t k = 0; k < classes; ++k) {
                        const auto c = static_cast<std::size_t>(k);
                        const double to = (k == own ? C : 0.0) + std::min(0.0, limit[c] - water) / A;
                        step[c] = to - beta[k];
                        beta[k] = to;
                    }
                } else {
                    // A row of zeros: its outputs never change, and all of C goes to the largest.
                    const auto best = std::max_element(e.begin(), e.end()) - e.begin();
                    for (std::int64_t k = 0; k < classes; ++k) {
                        const double to = (k == own ? C : 0.0) - (k == best ? C : 0.0);
                        step[static_cast<std::size_t>(k)] = to - beta[k];
                        beta[k] = to;
                    }
                }
                access.each(i, [&](std::int64_t j, double x) {
                    double* w = problem.w + j * classes;
                    for (std::size_t k = 0; k < width; ++k) w[k] += x * step[k];
                });
                for (std::size_t k = 0; k < width; ++k) problem.w_bias[k] += problem.bias * step[k];
                since_poll += access.stored(i) * classes;
            }
            if (since_poll > kElementsPerPoll) {
                since_poll = 0;
                poll.check();
                if (std::chrono::duration<double>(Poll::Clock::now() - begun).count() > stop.max_seconds) {
                    return {epoch, worst, gap, "max_seconds"};
                }
            }
        }
        if (worst > stop.tol) continue;
        if (stop.gap < kInfinity) {
            double value = 0.0;
            for (std::int64_t i = 0; i < rows.n; ++i) value += problem.beta[i * classes + problem.y[i]];
            for (std::int64_t k = 0; k < rows.d * classes; ++k) value -= 0.5 * problem.w[k] * problem.w[k];
            for (std::int64_t k = 0; k < classes; ++k) value -= 0.5 * problem.w_bias[k] * problem.w_bias[k];
            if (gap > stop.gap * std::abs(value)) continue;
        }
        return {epoch, worst, gap, "converged"};
    }
}

#define MERCER_ROWS(Rows)                                                                                     \
    template void linear_product(const Rows&, const double*, double, double*, const LinearThreads&);          \
    template void linear_lengths(const Rows&, double*, const LinearThreads&);                                 \
    template void linear_transposed(const Rows&, const double*, double*, const LinearThreads&);               \
    template void linear_outer(const Rows&, const std::int64_t*, const double*, std::int64_t, double*,        \
                               const LinearThreads&);                                                         \
    template DcdResult linear_dcd(const Rows&, PackedCsr&, const DcdProblem&, const DcdStop&, std::uint64_t*, \
                                  const LinearThreads&);                                                      \
    template DcdResult linear_joint_dcd(const Rows&, const JointDcdProblem&, const DcdStop&, std::uint64_t*,  \
                                        const Level&, Poll&);
MERCER_ROWS(LinearDense<float>)
MERCER_ROWS(LinearDense<double>)
using CsrFloat32 = LinearCsr<float, std::int32_t>;
using CsrFloat64 = LinearCsr<float, std::int64_t>;
using CsrDouble32 = LinearCsr<double, std::int32_t>;
using CsrDouble64 = LinearCsr<double, std::int64_t>;
MERCER_ROWS(CsrFloat32)
MERCER_ROWS(CsrFloat64)
MERCER_ROWS(CsrDouble32)
MERCER_ROWS(CsrDouble64)
#undef MERCER_ROWS

}  // namespace mercer
