#include "machines.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "algebra/doubled.hpp"
#include "simd/level_entries.hpp"
#include "solve/dual_findings.hpp"
#include "solve/stored.hpp"

namespace mercer {
extern const Level level_plain;
}

namespace mercer::page {
namespace {

constexpr double kEps = std::numeric_limits<double>::epsilon();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
// The violation at which pair steps end, for the equations of the free variables do the rest, and that if these fail.
constexpr double kRough = 1e-4, kFine = 1e-11;
// A violation that is good enough: kernel values of 1e5 leave no better one.
constexpr double kGood = 1e-5;
// Pair steps for each variable: before another way is tried, at the beginning of a path, where all else failed, and in a
// round of the hard margin.
constexpr std::int64_t kRoughSteps = 12, kFirstSteps = 200, kFineSteps = 500, kHardSteps = 300;
// Where a path begins: a C at which pair steps are few, in units of 1/max k(x, x).
constexpr double kFirstC = 0.1;
// The C beyond which no margin is sought, in the same unit.
constexpr double kLastC = 1e9;
// The bounds of mercer/solvers/dual/hulls.py: what rounding can leave of two equal points, the first tolerance as a
// share of K, its factor, and the last.
constexpr double kRoundingShare = 16.0 * kEps, kFirstTol = 1e-2, kTolFactor = 1e-2, kHardTol = 1e-10;

SmoResult pair_steps(const Problem& problem, double tol, std::int64_t most, Vector* beta) {
    // The core wants a column for every variable: of the two that a target has, both have their point's.
    const std::size_t n = problem.n(), m = problem.m;
    Vector wide;
    const double* kernel = problem.kernel.data();
    if (n != m) {
        wide.resize(m * n);
        for (std::size_t i = 0; i < m; ++i) {
            for (std::size_t v = 0; v < n; ++v) {
                wide[i * n + v] = kernel[i * m + static_cast<std::size_t>(problem.row[v])];
            }
        }
        kernel = wide.data();
    }
    const Vector d(n, 0.0);
    Vector u(n, 0.0);
    for (std::size_t v = 0; v < n; ++v) {
        if ((*beta)[v] == 0.0) continue;
        const double* const row = kernel + static_cast<std::size_t>(problem.row[v]) * n;
        for (std::size_t w = 0; w < n; ++w) u[w] += (*beta)[v] * row[w];
    }
    const StoredProblem<double> stored{.kernel = kernel,
                                       .stride = static_cast<std::ptrdiff_t>(n),
                                       .which = problem.row.data(),
                                       .q = static_cast<std::int64_t>(n),
                                       .p = problem.p.data(),
                                       .beta = beta->data(),
                                       .u = u.data(),
                                       .lower = problem.lower.data(),
                                       .upper = problem.upper.data(),
                                       .d = d.data(),
                                       .group = problem.group.data()};
    const SmoStop stop{tol, most * static_cast<std::int64_t>(n), kInfinity};
    return solve_stored(stored, stop, one_thread().level, one_thread().poll);
}

Vector times(const Problem& problem, const Vector& coefficients) {
    const std::size_t m = problem.m;
    Vector u(m, 0.0);
    for (std::size_t j = 0; j < m; ++j) {
        if (coefficients[j] == 0.0) continue;
        const double* const row = problem.kernel.data() + j * m;
        for (std::size_t i = 0; i < m; ++i) u[i] += coefficients[j] * row[i];
    }
    return u;
}

// As mercer/certificates/dual.py has it.
Certificate certify(const Part& part, const Problem& problem, const std::vector<Term>& terms, const Vector& beta,
                    double* energy) {
    const Vector coefficients = problem.coefficients(beta);
    const Vector u = times(problem, coefficients), error = rounding(part.points(), terms, coefficients);
    const Vector d(problem.n(), 0.0);
    Vector reach(problem.m);
    for (std::size_t i = 0; i < problem.m; ++i) {
        reach[i] = std::sqrt(std::abs(problem.kernel[i * problem.m + i])) * (1.0 + 1e-6);
    }
    const DualPoint at{problem.p.data(),
                       problem.lower.data(),
                       problem.upper.data(),
                       d.data(),
                       problem.row.data(),
                       problem.group.data(),
                       beta.data(),
                       static_cast<std::int64_t>(problem.n()),
                       problem.totals.data(),
                       static_cast<std::int64_t>(problem.totals.size()),
                       coefficients.data(),
                       u.data(),
                       error.data(),
                       reach.data(),
                       static_cast<std::int64_t>(problem.m)};
    const DualFindings found = certify_dual(at);
    const double summed = kEps * static_cast<double>(problem.n()), highest = found.found.losses;
    double primal = 0.5 * found.energy + highest;
    for (std::size_t g = 0; g < problem.totals.size(); ++g) primal += found.bias[g] * problem.totals[g];
    const double dual = found.gain - 0.5 * found.energy - 0.5 * found.curved - found.repair.of_dual();
    *energy = found.energy;
    return {primal + 0.5 * found.wrong + summed * (found.size + highest),
            dual - 0.5 * found.wrong - summed * (found.size + found.curved),
            (found.found.shares + found.repair.of_gap()) * (1.0 + summed),
            found.violation,
            found.found.box,
            found.equality,
            found.found.outward,
            found.found.inward,
            found.bias};
}

// What rounding has left in the sums goes to the free variable of each group that is furthest from its bounds.
void balance(const Problem& problem, Vector* beta) {
    for (std::size_t g = 0; g < problem.totals.size(); ++g) {
        for (int again = 0; again < 2; ++again) {
            Doubled<double> sum;
            std::size_t best = problem.n();
            double room = 0.0;
            for (std::size_t v = 0; v < problem.n(); ++v) {
                if (problem.group[v] != static_cast<std::int32_t>(g)) continue;
                const double own = (*beta)[v];
                sum.collect(own);
                const double here = std::min(own - problem.lower[v], problem.upper[v] - own);
                if (here > room) {
                    room = here;
                    best = v;
                }
            }
            sum.collect(-problem.totals[g]);
            const double missing = sum.high + sum.low;
            if (best < problem.n() && std::abs(missing) < room) (*beta)[best] -= missing;
        }
    }
}

// Points that are the same share what they have, as the library's fit of merged rows has it.
void share_among_copies(const Part& part, Vector* beta) {
    const Problem& problem = part.problem;
    std::vector<bool> done(problem.n(), false);
    for (std::size_t v = 0; v < problem.n(); ++v) {
        if (done[v]) continue;
        std::vector<std::size_t> same;
        for (std::size_t w = v; w < problem.n(); ++w) {
            if (problem.p[w] != problem.p[v] || problem.lower[w] != problem.lower[v] ||
                problem.upper[w] != problem.upper[v]) {
                continue;
            }
            const auto a = static_cast<std::size_t>(problem.row[v]) * part.d;
            const auto b = static_cast<std::size_t>(problem.row[w]) * part.d;
            bool equal = true;
            for (std::size_t k = 0; k < part.d; ++k) equal = equal && part.x[a + k] == part.x[b + k];
            if (equal) same.push_back(w);
        }
        if (same.size() < 2) continue;
        double sum = 0.0;
        bool at_bound = true;
        for (const std::size_t w : same) {
            done[w] = true;
            sum += (*beta)[w];
            at_bound = at_bound && (*beta)[w] == (*beta)[v];
        }
        if (at_bound) continue;
        for (const std::size_t w : same) (*beta)[w] = sum / static_cast<double>(same.size());
    }
}

// Whether some point has both labels.
bool holds_both_labels(const Part& part) {
    for (std::size_t i = 0; i < part.y.size(); ++i) {
        for (std::size_t j = i + 1; j < part.y.size(); ++j) {
            bool same = part.y[i] != part.y[j];
            for (std::size_t k = 0; same && k < part.d; ++k) same = part.x[i * part.d + k] == part.x[j * part.d + k];
            if (same) return true;
        }
    }
    return false;
}

Problem hulls(const Problem& problem) {
    Problem two = problem;
    const std::size_t n = problem.n();
    two.totals = {1.0, -1.0};
    for (std::size_t v = 0; v < n; ++v) {
        const bool positive = problem.p[v] > 0;
        two.p[v] = 0.0;
        two.lower[v] = positive ? 0.0 : -2.0;
        two.upper[v] = positive ? 2.0 : 0.0;
        two.group[v] = positive ? 0 : 1;
    }
    return two;
}

}  // namespace

const Threads& one_thread() {
    static Poll poll;
    static const Threads threads{1, level_plain, poll};
    return threads;
}

Vector Problem::coefficients(const Vector& beta) const {
    Vector out(m, 0.0);
    for (std::size_t v = 0; v < n(); ++v) out[static_cast<std::size_t>(row[v])] += beta[v];
    return out;
}

Family Problem::family() const {
    const Vector zeros(n(), 0.0);
    return {{p, zeros}, {lower, zeros}, {upper, zeros}, {totals[0], 0.0}, true};
}

Family Problem::in_bounds() const {
    const Vector zeros(n(), 0.0);
    return {{p, zeros}, {zeros, lower}, {zeros, upper}, {0.0, totals[0]}, true};
}

std::shared_ptr<const HomotopyMatrix> Problem::matrix() const {
    Vector diagonal(m);
    for (std::size_t i = 0; i < m; ++i) diagonal[i] = kernel[i * m + i];
    auto rows = std::make_shared<StoredKernel>(kernel.data(), m, m, one_thread().level);
    return std::make_shared<const HomotopyMatrix>(HomotopyMatrix{std::move(rows), std::move(diagonal), Vector(n(), 0.0), row});
}

Vector Problem::feasible_start() const {
    Vector beta(n());
    for (std::size_t v = 0; v < n(); ++v) beta[v] = std::clamp(0.0, lower[v], upper[v]);
    for (std::size_t g = 0; g < totals.size(); ++g) {
        double missing = totals[g];
        for (std::size_t v = 0; v < n(); ++v) {
            if (group[v] != static_cast<std::int32_t>(g) || missing == 0.0) continue;
            const double to = std::clamp(beta[v] + missing, lower[v], upper[v]);
            missing -= to - beta[v];
            beta[v] = to;
        }
    }
    return beta;
}

int Part::n_free() const {
    int count = 0;
    for (std::size_t v = 0; v < beta.size(); ++v) count += beta[v] > problem.lower[v] && beta[v] < problem.upper[v];
    return count;
}

int Part::n_bounded() const {
    int count = 0;
    for (std::size_t v = 0; v < beta.size(); ++v) {
        count += beta[v] != 0.0 && (beta[v] <= problem.lower[v] || beta[v] >= problem.upper[v]);
    }
    return count;
}

namespace {

Problem rows_of(std::size_t variables, Vector kernel, std::size_t m) {
    Problem out;
    out.p.assign(variables, 0.0);
    out.lower.assign(variables, 0.0);
    out.upper.assign(variables, 0.0);
    out.group.assign(variables, 0);
    out.totals = {0.0};
    out.kernel = std::move(kernel);
    out.m = m;
    for (std::size_t v = 0; v < variables; ++v) out.row.push_back(static_cast<std::int64_t>(v % m));
    return out;
}

}  // namespace

Problem soft_margin(const Vector& y, double C, Vector kernel) {
    Problem out = rows_of(y.size(), std::move(kernel), y.size());
    out.p = y;
    for (std::size_t i = 0; i < y.size(); ++i) (y[i] > 0 ? out.upper[i] : out.lower[i]) = y[i] > 0 ? C : -C;
    return out;
}

Problem tube(const Vector& y, double C, double epsilon, Vector kernel) {
    const std::size_t n = y.size();
    Problem out = rows_of(2 * n, std::move(kernel), n);
    for (std::size_t i = 0; i < n; ++i) {
        out.p[i] = y[i] - epsilon;
        out.p[n + i] = y[i] + epsilon;
        out.upper[i] = C;
        out.lower[n + i] = -C;
    }
    return out;
}

Problem one_class(std::size_t n, double nu, Vector kernel) {
    Problem out = rows_of(n, std::move(kernel), n);
    std::fill(out.upper.begin(), out.upper.end(), 1.0);
    out.totals = {nu * static_cast<double>(n)};
    return out;
}

void conclude(Part* part, const std::vector<Term>& terms, Vector beta) {
    share_among_copies(*part, &beta);
    balance(part->problem, &beta);
    part->proof = certify(*part, part->problem, terms, beta, &part->energy);
    part->b = part->proof.b[0];
    part->beta = std::move(beta);
}

Part with_coefficients(const Part& part, const std::vector<Term>& terms, Vector beta, double b) {
    Part out = part;
    out.proof = certify(out, out.problem, terms, beta, &out.energy);
    out.b = b;
    out.beta = std::move(beta);
    out.exact = false;
    return out;
}

namespace {

double largest_diagonal(const Problem& problem) {
    double largest = 0.0;
    for (std::size_t i = 0; i < problem.m; ++i) largest = std::max(largest, std::abs(problem.kernel[i * problem.m + i]));
    return largest > 0.0 ? largest : 1.0;
}

bool all_finite(const Vector& x) {
    return std::all_of(x.begin(), x.end(), [](double value) { return std::isfinite(value); });
}

// The variables where the homotopy is; false if its equations are singular.
bool beta_of(Homotopy* homotopy, Vector* beta) {
    const Segment* const segment = homotopy->segment(one_thread());
    if (segment == nullptr) return false;
    *beta = homotopy->beta(homotopy->t(), *segment, one_thread());
    return all_finite(*beta);
}

// The exact solution from a point in the box; false where rounding decides.
bool settle_at(const Problem& problem, const Vector& start, Vector* beta) {
    std::optional<Homotopy> settled = settle(problem.matrix(), problem.family(), start, one_thread());
    return settled.has_value() && beta_of(&*settled, beta);
}

// The solution for bounds C times those of `unit`, by the path from a small C: pair steps at a large one take
// long where a path of a few hundred events does not.
bool solve_by_path(const Problem& unit, double C, Vector* beta, std::int64_t* steps) {
    const double first = std::min(C, kFirstC / largest_diagonal(unit));
    Problem small = unit;
    for (std::size_t v = 0; v < unit.n(); ++v) {
        small.lower[v] = first * unit.lower[v];
        small.upper[v] = first * unit.upper[v];
    }
    Vector rough = small.feasible_start();
    *steps += pair_steps(small, kRough, kFirstSteps, &rough).steps;
    std::optional<Homotopy> path = settle(small.matrix(), small.family(), rough, one_thread());
    if (!path.has_value()) return false;
    path->change_family(unit.in_bounds(), first, one_thread());
    for (std::size_t left = 60 * unit.n() + 2000; left > 0; --left) {
        const Homotopy::Next next = path->advance(C, true, one_thread());
        if (next == Homotopy::Next::kEnd) return beta_of(&*path, beta);
        if (next == Homotopy::Next::kStalled || !path->apply(one_thread())) return false;
    }
    return false;
}

}  // namespace

void solve(Part* part, const std::vector<Term>& terms) {
    const Problem& problem = part->problem;
    Vector rough = problem.feasible_start(), beta;
    const SmoResult begun = pair_steps(problem, kRough, kRoughSteps, &rough);
    part->steps = begun.steps;
    part->exact = true;
    if (begun.reason == StopReason::converged && settle_at(problem, rough, &beta)) {
        conclude(part, terms, beta);
        if (part->proof.violation <= kGood) return;
    }
    if (problem.totals[0] == 0.0) {  // bounds that are multiples of one C
        Problem unit = problem;
        double C = 0.0;
        for (std::size_t v = 0; v < problem.n(); ++v) C = std::max(C, problem.upper[v]);
        for (std::size_t v = 0; v < problem.n(); ++v) {
            unit.lower[v] = problem.lower[v] < 0.0 ? -1.0 : 0.0;
            unit.upper[v] = problem.upper[v] > 0.0 ? 1.0 : 0.0;
        }
        if (solve_by_path(unit, C, &beta, &part->steps)) {
            Part other = *part;
            conclude(&other, terms, beta);
            if (part->beta.empty() || other.proof.violation <= part->proof.violation) *part = std::move(other);
            if (part->proof.violation <= kGood) return;
        }
    }
    Part other = *part;
    other.exact = false;
    other.steps += pair_steps(problem, kFine, kFineSteps, &rough).steps;
    conclude(&other, terms, rough);
    if (part->beta.empty() || other.proof.violation < part->proof.violation) *part = std::move(other);
}

// The nearest points of the two classes' hulls: apart, and then the margin; or they meet, which refutes every margin.
void solve_hard_margin(Part* part, const std::vector<Term>& terms) {
    const Problem two = hulls(part->problem);
    const double typical = largest_diagonal(two);
    Vector beta = two.feasible_start();
    Certificate proof{};
    double energy = 0.0, tol = kFirstTol * typical, unit = 0.0;
    const double least = std::max(kEps * typical, std::numeric_limits<double>::min());
    part->steps = 0;
    part->exact = false;
    part->verdict = -1;
    // Gaussian and Laplacian kernels separate any two classes of distinct points: hulls that meet to rounding then leave
    // the question open.
    const bool radial = std::any_of(terms.begin(), terms.end(), [](const Term& term) {
        return term.kind == kGaussianKind || term.kind == kLaplacianKind;
    });
    const bool separates_all = radial && !holds_both_labels(*part);
    while (true) {
        const SmoResult result = pair_steps(two, tol, kHardSteps, &beta);
        part->steps += result.steps;
        balance(two, &beta);
        proof = certify(*part, two, terms, beta, &energy);
        double size = 0.0;
        for (std::size_t i = 0; i < two.m; ++i) size += std::sqrt(std::abs(two.kernel[i * two.m + i])) * std::abs(beta[i]);
        unit = size * size;
        const double below = std::max(0.0, -2.0 * (proof.dual + proof.gap));
        const double wanted = -kHardTol * proof.dual;
        if (energy <= kRoundingShare * unit) {
            if (separates_all) break;
            part->verdict = 0;
        }
        if (below > kRoundingShare * unit) part->verdict = 1;
        if (part->verdict == 0 || (part->verdict == 1 && proof.violation <= wanted)) break;
        const StopReason reason = result.reason;
        if ((reason != StopReason::converged && reason != StopReason::stalled) || tol <= least) break;
        // At once what is wanted, if that is near; but rounding may keep the proof above it for ever.
        const double next = wanted < proof.violation ? std::max(0.5 * wanted, kTolFactor * tol) : kTolFactor * tol;
        tol = std::max(least, std::min(next, 0.5 * tol));
    }
    // In the machine's scale the equations of the support vectors make it exact; and the path in C ends at the hard
    // margin. Either may prove what pair steps could not. The box only has to be wide enough.
    Problem wide = part->problem;
    const auto try_out = [&](const Vector& candidate) {
        double half = 0.0;
        for (const double value : candidate) half += 0.5 * std::abs(value);
        if (!(half > 0.0) || !all_finite(candidate)) return;
        Vector again(candidate.size());
        for (std::size_t i = 0; i < candidate.size(); ++i) again[i] = candidate[i] / half;
        share_among_copies(*part, &again);
        balance(two, &again);
        const Certificate better = certify(*part, two, terms, again, &energy);
        const bool apart = -2.0 * (better.dual + better.gap) > kRoundingShare * unit;
        if (!apart || (part->verdict == 1 && better.violation > proof.violation)) return;
        proof = better;
        beta = again;
        part->exact = true;
        part->verdict = 1;
    };
    const auto widen = [&](double bound) {
        for (std::size_t i = 0; i < beta.size(); ++i) (wide.p[i] > 0 ? wide.upper[i] : wide.lower[i]) = wide.p[i] * bound;
    };
    const double rho = -proof.dual;
    Vector exact;
    if (part->verdict != 0 && rho > std::numeric_limits<double>::min()) {
        Vector scaled(beta.size());
        double sum = 0.0;
        for (std::size_t i = 0; i < beta.size(); ++i) {
            scaled[i] = beta[i] / rho;
            sum += std::abs(scaled[i]);
        }
        widen(10.0 * sum);
        if (settle_at(wide, scaled, &exact)) try_out(exact);
    }
    if (part->verdict == -1) {
        widen(1.0);
        if (solve_by_path(wide, kLastC / typical, &exact, &part->steps)) try_out(exact);
    }
    widen(kLastC / typical);
    part->hulls = beta;
    if (part->verdict != 1) {
        part->beta.assign(beta.size(), 0.0);
        part->b = part->energy = 0.0;
        part->proof = proof;
        const double far = std::max(0.0, -2.0 * proof.dual);
        part->proof.primal = part->proof.gap = kInfinity;
        part->proof.dual = far > 0.0 ? 2.0 / far : kInfinity;
        return;
    }
    const double scale = -proof.dual;
    part->problem = wide;
    part->beta.resize(beta.size());
    for (std::size_t i = 0; i < beta.size(); ++i) part->beta[i] = beta[i] / scale;
    part->b = 0.5 * (proof.b[0] + proof.b[1]) / scale;
    part->energy = 2.0 / scale;
    const double near = (1.0 - 8.0 * kEps) * std::sqrt(std::max(0.0, -2.0 * (proof.dual + proof.gap)));
    const double far = (1.0 + 8.0 * kEps) * std::sqrt(std::max(0.0, -2.0 * proof.dual));
    part->proof = proof;
    part->proof.primal = near > 0.0 ? 2.0 / near / near : kInfinity;
    part->proof.dual = 2.0 / far / far;
    part->proof.gap = std::max(0.0, part->proof.primal - part->proof.dual);
    part->proof.violation = proof.violation / scale;
    part->proof.outward = proof.outward / scale;
    part->proof.inward = proof.inward / scale;
    part->proof.box = proof.box / scale;
    part->proof.equality = proof.equality / scale;
}

}  // namespace mercer::page
