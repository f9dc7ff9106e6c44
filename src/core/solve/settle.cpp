// The exact solution from any point in the box (solve/homotopy.hpp).
#include <algorithm>
#include <cmath>
#include <limits>

#include "algebra/infinity.hpp"
#include "solve/homotopy.hpp"

namespace mercer {
namespace {

constexpr double kEps = std::numeric_limits<double>::epsilon();
// Coefficients of a combination below this are zero.
constexpr double kNoMove = 1e-9;

// Moves beta, without changing K beta, until none of the variables inside their bounds depends on the others; the sets
// of the result. The bounds of that homotopy are all zero: it only says who depends on whom.
std::optional<Homotopy> make_independent(const std::shared_ptr<const HomotopyMatrix>& matrix, const Family& family,
                                         Doubles* beta, const Threads& threads) {
    const std::size_t n = family.n();
    const Lines zeros(n);
    const Family nothing{zeros, zeros, zeros, {}, family.has_total};
    std::vector<std::int8_t> held(n);
    std::vector<std::size_t> inside;
    for (std::size_t v = 0; v < n; ++v) {
        const double low = family.lower.start[v], high = family.upper.start[v];
        double& own = (*beta)[v];
        own = std::clamp(own, low, high);
        held[v] = own >= high ? kUpper : kLower;
        if (own > low && own < high) inside.push_back(v);
    }
    Homotopy sets(matrix, nothing, std::move(held), 0.0, threads);
    for (const std::size_t v : inside) {
        threads.poll.check();
        const std::optional<Doubles> z = sets.combination(v, threads);
        if (z.has_value()) {
            std::vector<std::size_t> F = sets.order();
            F.push_back(v);
            Doubles moves(F.size(), 1.0);
            for (std::size_t i = 0; i < z->size(); ++i) moves[i] = -(*z)[i];
            double least = kInfinity, sign = 1.0;
            std::size_t hit = F.size() - 1;
            for (const double way : {1.0, -1.0}) {
                for (std::size_t i = 0; i < F.size(); ++i) {
                    const double move = way * moves[i];
                    if (std::abs(move) <= kNoMove) continue;
                    const double bound = (move > 0 ? family.upper : family.lower).start[F[i]];
                    const double step = (bound - (*beta)[F[i]]) / move;
                    if (step < least) {
                        least = step;
                        sign = way;
                        hit = i;
                    }
                }
            }
            if (!std::isfinite(least)) return std::nullopt;
            for (std::size_t i = 0; i < F.size(); ++i) {
                double& own = (*beta)[F[i]];
                own = std::clamp(own + least * sign * moves[i], family.lower.start[F[i]], family.upper.start[F[i]]);
            }
            const Side to = sign * moves[hit] > 0 ? kUpper : kLower;
            (*beta)[F[hit]] = family.bound(F[hit], to).start;
            sets.fix(F[hit], to, threads);
            if (F[hit] == v) continue;
        }
        if (!sets.sound() || !sets.release(v, threads)) return std::nullopt;
    }
    return sets;
}

}  // namespace

std::optional<Homotopy> settle(const std::shared_ptr<const HomotopyMatrix>& matrix, const Family& family, Doubles beta,
                               const Threads& threads) {
    const std::size_t n = family.n();
    // 1. A point with the same Kb whose free variables are independent.
    std::optional<Homotopy> homotopy = make_independent(matrix, family, &beta, threads);
    if (!homotopy.has_value()) return std::nullopt;
    const std::vector<std::int8_t>& side = homotopy->side();
    // 2. Its gradient and bias.
    Doubles coefficients(matrix->n_rows(), 0.0), h(n);
    double sum = 0.0, size = 0.0;
    for (std::size_t v = 0; v < n; ++v) {
        coefficients[matrix->row_of(v)] += beta[v];
        sum += beta[v];
        size += std::abs(beta[v]);
    }
    const Doubles u = matrix->kernel->product(coefficients);
    double mean = 0.0, top = -kInfinity, bottom = kInfinity;
    for (std::size_t v = 0; v < n; ++v) {
        h[v] = family.p.start[v] - u[matrix->row_of(v)] - matrix->d[v] * beta[v];
        if (side[v] == kFree) mean += h[v];
        if (family.lower.start[v] == family.upper.start[v]) continue;
        if (side[v] == kLower) top = std::max(top, h[v]);
        if (side[v] == kUpper) bottom = std::min(bottom, h[v]);
    }
    const std::size_t n_free = homotopy->order().size();
    const bool low = std::isfinite(top), high = std::isfinite(bottom);
    double b = 0.0;
    if (family.has_total && n_free > 0) b = mean / static_cast<double>(n_free);
    if (family.has_total && n_free == 0) b = low && high ? 0.5 * (top + bottom) : low ? top : high ? bottom : 0.0;
    // 3. The targets for which it is optimal, and the way from there.
    Family way = family;
    std::uint32_t random = 12345;
    for (std::size_t v = 0; v < n; ++v) {
        const double rho = h[v] - b, p = family.p.start[v];
        const bool pinned = family.lower.start[v] == family.upper.start[v];
        const bool wrong = side[v] == kFree || (side[v] == kLower && rho > 0) || (side[v] == kUpper && rho < 0);
        random = random * 1664525U + 1013904223U;
        const double apart = side[v] == kFree ? 0.0 : 0.1 + 0.9 * static_cast<double>(random >> 8) / 16777216.0;
        const double first = wrong && !pinned ? p - rho * (1.0 + apart) : p;
        way.p.set(v, {first, p - first});
    }
    // A sum that is off by rounding must not make a variable free.
    if (std::abs(family.total.start - sum) > kEps * static_cast<double>(n) * size) {
        way.total = {sum, family.total.start - sum};
    }
    homotopy->change_family(std::move(way), 0.0, threads);
    if (!homotopy->follow(1.0, threads)) return std::nullopt;
    return homotopy;
}

}  // namespace mercer
