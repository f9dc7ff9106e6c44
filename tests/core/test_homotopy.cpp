// The equations of the free variables against elimination in long double, and solutions along homotopies against the
// conditions of Karush, Kuhn and Tucker, written out with the kernel matrix itself; on every level.
#include "solve/homotopy.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "check.hpp"
#include "simd/dispatch.hpp"

namespace {

using mercer::Doubles;
using mercer::Family;
using mercer::Homotopy;
using mercer::Lines;
using Wide = std::vector<long double>;

// M^-1 right by elimination with row pivots.
Wide solve_wide(Wide a, Wide right) {
    const std::size_t n = right.size();
    for (std::size_t k = 0; k < n; ++k) {
        std::size_t pivot = k;
        for (std::size_t i = k + 1; i < n; ++i) {
            if (std::abs(a[i * n + k]) > std::abs(a[pivot * n + k])) pivot = i;
        }
        for (std::size_t j = 0; j < n; ++j) std::swap(a[k * n + j], a[pivot * n + j]);
        std::swap(right[k], right[pivot]);
        for (std::size_t i = k + 1; i < n; ++i) {
            const long double factor = a[i * n + k] / a[k * n + k];
            for (std::size_t j = k; j < n; ++j) a[i * n + j] -= factor * a[k * n + j];
            right[i] -= factor * right[k];
        }
    }
    for (std::size_t k = n; k-- > 0;) {
        for (std::size_t j = k + 1; j < n; ++j) right[k] -= a[k * n + j] * right[j];
        right[k] /= a[k * n + k];
    }
    return right;
}

struct Points {
    std::size_t n, d;
    Doubles x;

    Points(std::size_t count, std::size_t dimensions, std::mt19937& random)
        : n(count), d(dimensions), x(count * dimensions) {
        for (double& value : x) value = std::normal_distribution<>()(random);
    }
    double kernel(std::size_t i, std::size_t j, double gamma) const {  // gamma = 0: linear
        double sum = 0.0;
        for (std::size_t k = 0; k < d; ++k) {
            const double a = x[i * d + k], b = x[j * d + k];
            sum += gamma == 0.0 ? a * b : (a - b) * (a - b);
        }
        return gamma == 0.0 ? sum : std::exp(-gamma * sum);
    }
    Doubles matrix(double gamma) const {
        Doubles out(n * n);
        for (std::size_t i = 0; i < n; ++i) {
            for (std::size_t j = 0; j < n; ++j) out[i * n + j] = kernel(i, j, gamma);
        }
        return out;
    }
};

// Variables come and go, and the system keeps solving its equations.
void check_system(bool bordered, std::size_t most, const mercer::Threads& threads, std::mt19937& random) {
    const Points points(most + 10, 8, random);
    const Doubles K = points.matrix(0.3);
    const double border = bordered ? 2.0 : 0.0;
    const std::size_t first = bordered ? 1 : 0;
    mercer::FreeSystem system(border);
    std::vector<std::size_t> inside;
    const auto check = [&] {
        const std::size_t m = inside.size(), size = first + m;
        Wide M(size * size, 0.0L), right(size);
        for (std::size_t i = 0; i < m; ++i) {
            for (std::size_t j = 0; j < m; ++j) M[(first + i) * size + first + j] = K[inside[i] * points.n + inside[j]];
            if (bordered) M[first + i] = M[(first + i) * size] = border;
        }
        Doubles given(size), x;
        for (std::size_t i = 0; i < size; ++i) right[i] = given[i] = std::normal_distribution<>()(random);
        CHECK(system.size() == size);
        CHECK(system.solve(1, &given, &x, threads));
        const Wide expected = solve_wide(M, right);
        double off = 0.0, most_value = 0.0;
        for (std::size_t i = 0; i < size; ++i) {
            off = std::max(off, std::abs(x[i] - static_cast<double>(expected[i])));
            most_value = std::max(most_value, std::abs(x[i]));
        }
        CHECK(off <= 1e-9 * (1.0 + most_value));
        if (m < 2) return;
        // 1/(M^-1)_kk is the squared distance from the hull of the others.
        Wide unit(size, 0.0L);
        unit[size - 1] = 1.0L;
        const double own = static_cast<double>(solve_wide(M, unit)[size - 1]);
        CHECK(std::abs(system.distances().back() * own - 1.0) < 1e-6);
    };
    // 1. All at once, which is computed afresh.
    for (std::size_t i = 0; i < most; ++i) inside.push_back(i);
    Doubles all(most * most);
    for (std::size_t i = 0; i < most; ++i) {
        for (std::size_t j = 0; j < most; ++j) all[i * most + j] = K[i * points.n + j];
    }
    CHECK(system.fill(all, most, threads));
    CHECK(system.refactorisations() == 1);
    check();
    // 2. One by one.
    for (int k = 0; k < 60; ++k) {
        const bool heads = std::uniform_int_distribution<>(0, 1)(random) == 1;
        const bool adds = inside.size() < 2 || (inside.size() < points.n && heads);
        if (adds) {
            std::size_t v = 0;
            while (std::find(inside.begin(), inside.end(), v) != inside.end()) ++v;
            Doubles column(first + inside.size(), border);
            for (std::size_t i = 0; i < inside.size(); ++i) column[first + i] = K[v * points.n + inside[i]];
            CHECK(system.add(column, K[v * points.n + v], nullptr, threads));
            inside.push_back(v);
        } else {
            const std::size_t place = std::uniform_int_distribution<std::size_t>(0, inside.size() - 1)(random);
            system.remove(place, threads.level);
            inside[place] = inside.back();
            inside.pop_back();
        }
        if (k % 6 == 0) check();
    }
}

// Rows that are computed when they are asked for, and counted.
class CountedRows final : public mercer::KernelRows {
public:
    explicit CountedRows(Doubles K, std::size_t n) : K_(std::move(K)), n_(n) {}
    std::vector<mercer::KernelRow> rows(const std::vector<std::int64_t>& which) override {
        std::vector<mercer::KernelRow> out;
        for (const std::int64_t i : which) {
            const auto from = K_.begin() + i * static_cast<std::int64_t>(n_);
            const auto held = std::make_shared<Doubles>(from, from + static_cast<std::int64_t>(n_));
            out.emplace_back(held, held->data());
            ++count;
        }
        return out;
    }
    Doubles product(const Doubles& coefficients) override {
        Doubles out(n_, 0.0);
        for (std::size_t i = 0; i < n_; ++i) {
            for (std::size_t j = 0; j < n_; ++j) out[i] += K_[i * n_ + j] * coefficients[j];
        }
        return out;
    }
    int count = 0;

private:
    Doubles K_;
    std::size_t n_;
};

struct Problem {
    Doubles K;
    std::size_t n_rows;
    Doubles p, lower, upper, d;
    std::vector<std::int64_t> row;
    double total = 0.0;
    bool biased = true;

    std::size_t n() const { return p.size(); }
    std::shared_ptr<const mercer::HomotopyMatrix> matrix(std::shared_ptr<mercer::KernelRows> rows) const {
        Doubles diagonal(n_rows);
        for (std::size_t i = 0; i < n_rows; ++i) diagonal[i] = K[i * n_rows + i];
        using mercer::HomotopyMatrix;
        return std::make_shared<const HomotopyMatrix>(HomotopyMatrix{std::move(rows), diagonal, d, row});
    }
    std::shared_ptr<const mercer::HomotopyMatrix> matrix(const mercer::Level& level) const {
        return matrix(std::make_shared<mercer::StoredKernel>(K.data(), n_rows, n_rows, level));
    }
    Family constant() const {
        const Doubles zeros(n(), 0.0);
        return {Lines(p, zeros), Lines(lower, zeros), Lines(upper, zeros), {total, 0.0}, biased};
    }
    Family in_bounds() const {
        const Doubles zeros(n(), 0.0);
        return {Lines(p, zeros), Lines(zeros, lower), Lines(zeros, upper), {0.0, total}, biased};
    }

    // The largest violation of optimality where all bounds and the total are multiplied by C, in long double; infinite
    // outside the box, or where the sum is wrong.
    double violation(const Doubles& beta, double C) const {
        Wide u(n_rows, 0.0L);
        long double sum = 0.0L, size = 1.0L;
        for (std::size_t v = 0; v < n(); ++v) {
            if (!(beta[v] >= C * lower[v] && beta[v] <= C * upper[v])) return std::numeric_limits<double>::infinity();
            sum += beta[v];
            size += std::abs(beta[v]);
            const auto from = static_cast<std::size_t>(row[v]) * n_rows;
            for (std::size_t i = 0; i < n_rows; ++i) u[i] += static_cast<long double>(beta[v]) * K[from + i];
        }
        if (biased && std::abs(sum - C * total) > 1e-12L * size) return std::numeric_limits<double>::infinity();
        long double top = biased ? -1e300L : 0.0L, bottom = biased ? 1e300L : 0.0L;
        for (std::size_t v = 0; v < n(); ++v) {
            const long double h = p[v] - u[static_cast<std::size_t>(row[v])] - static_cast<long double>(d[v]) * beta[v];
            if (beta[v] < C * upper[v]) top = std::max(top, h);
            if (beta[v] > C * lower[v]) bottom = std::min(bottom, h);
        }
        return static_cast<double>(std::max(0.0L, top - bottom));
    }
};

enum Kind { kClasses, kWithoutBias, kSquared, kTargets, kTotal, kDependent, kKinds };

Problem random_problem(Kind kind, std::size_t n, std::mt19937& random) {
    const Points points(n, 2, random);
    Problem out;
    out.n_rows = n;
    out.K = points.matrix(kind == kDependent ? 0.0 : 0.5);
    const std::size_t variables = kind == kTargets ? 2 * n : n;
    for (Doubles* part : {&out.p, &out.lower, &out.upper, &out.d}) part->assign(variables, 0.0);
    out.biased = kind != kWithoutBias;
    for (std::size_t v = 0; v < variables; ++v) {
        const std::size_t i = v % n;
        out.row.push_back(static_cast<std::int64_t>(i));
        const double noise = std::normal_distribution<>()(random), f = points.x[2 * i] + 0.7 * noise;
        if (kind == kTargets) {
            out.p[v] = f + (v < n ? -0.2 : 0.2);
            (v < n ? out.upper : out.lower)[v] = v < n ? 1.0 : -1.0;
        } else if (kind == kTotal) {
            out.upper[v] = 1.0;
        } else {
            out.p[v] = v < 2 ? (v == 0 ? 1.0 : -1.0) : f > 0 ? 1.0 : -1.0;
            (out.p[v] > 0 ? out.upper : out.lower)[v] = out.p[v];
        }
        if (kind == kSquared) {
            out.d[v] = 0.5;
            const double none = std::numeric_limits<double>::infinity();
            (out.p[v] > 0 ? out.upper : out.lower)[v] = out.p[v] > 0 ? none : -none;
        }
    }
    if (kind == kTotal) out.total = 0.3 * static_cast<double>(n);
    return out;
}

Doubles any_point(const Problem& problem, std::mt19937& random) {
    Doubles out(problem.n());
    for (std::size_t v = 0; v < out.size(); ++v) {
        const double low = std::max(problem.lower[v], -1.0), high = std::min(problem.upper[v], 1.0);
        const int where = std::uniform_int_distribution<>(0, 2)(random);
        out[v] = where == 0 ? low : where == 1 ? high : std::uniform_real_distribution<>(low, high)(random);
    }
    return out;
}

Doubles beta_of(Homotopy& homotopy, const mercer::Threads& threads) {
    const mercer::Segment* const segment = homotopy.segment(threads);
    CHECK(segment != nullptr);
    return segment == nullptr ? Doubles() : homotopy.beta(homotopy.t(), *segment, threads);
}

// From any point to the solution, and from there along the path in C; samples are left out. Adds the events of the path
// and the rows that were computed.
void check_homotopies(Kind kind, const mercer::Threads& threads, std::mt19937& random, int* events, int* rows) {
    const Problem problem = random_problem(kind, 25, random);
    const Doubles start = any_point(problem, random);
    auto settled = mercer::settle(problem.matrix(threads.level), problem.constant(), start, threads);
    CHECK(settled.has_value());
    if (!settled.has_value()) return;
    CHECK(settled->t() == 1.0);
    const Doubles beta = beta_of(*settled, threads);
    CHECK(problem.violation(beta, 1.0) < 1e-9);
    // The gradient and the energy are those of the matrix.
    double energy = 0.0;
    const Doubles h = settled->gradient(1.0, beta, threads);
    for (std::size_t v = 0; v < problem.n(); ++v) {
        double u = 0.0;
        for (std::size_t w = 0; w < problem.n(); ++w) {
            u += beta[w] * problem.K[static_cast<std::size_t>(problem.row[v]) * problem.n_rows +
                                     static_cast<std::size_t>(problem.row[w])];
        }
        energy += beta[v] * u;
        CHECK(std::abs(problem.p[v] - u - problem.d[v] * beta[v] - h[v]) < 1e-9);
    }
    CHECK(std::abs(settled->energy(1.0, *settled->segment(threads)) - energy) < 1e-9 * (1.0 + energy));

    if (kind == kSquared) return;  // bounds are infinite, and d would change with C
    // 1. Every event up to C = 20 joins two optimal segments.
    settled->change_family(problem.in_bounds(), 1.0, threads);
    double before = 1.0;
    while (settled->advance(20.0, true, threads) == Homotopy::Next::kEvent) {
        ++*events;
        CHECK(settled->t() >= before);
        const mercer::Segment here = *settled->segment(threads);
        for (const double C : {before, 0.5 * (before + settled->t()), settled->t()}) {
            CHECK(problem.violation(settled->beta(C, here, threads), C) < 1e-8);
        }
        before = settled->t();
        CHECK(settled->apply(threads));
    }
    CHECK(settled->t() == 20.0);
    CHECK(problem.violation(beta_of(*settled, threads), 20.0) < 1e-8);
    // 2. Rows that are computed when they are needed give the same sets.
    const auto counted = std::make_shared<CountedRows>(problem.K, problem.n_rows);
    auto again = mercer::settle(problem.matrix(counted), problem.constant(), beta, threads);
    CHECK(again.has_value());
    CHECK(again.has_value() && problem.violation(beta_of(*again, threads), 1.0) < 1e-9);
    *rows += counted->count;
    if (!again.has_value()) return;
    // 3. Without a variable, by shrinking its bounds to zero.
    if (kind == kTotal) return;
    const auto largest =
        std::max_element(beta.begin(), beta.end(), [](double a, double b) { return std::abs(a) < std::abs(b); });
    const auto v = static_cast<std::size_t>(largest - beta.begin());
    Problem less = problem;
    less.lower[v] = less.upper[v] = 0.0;
    Family shrinking = less.constant();
    (*largest > 0 ? shrinking.upper : shrinking.lower).set(v, {*largest, -*largest});
    again->change_family(shrinking, 0.0, threads);
    again->fix(v, *largest > 0 ? mercer::kUpper : mercer::kLower, threads);
    CHECK(again->follow(1.0, threads));
    CHECK(less.violation(beta_of(*again, threads), 1.0) < 1e-9);
}

// So many variables that only the residuals near zero are followed.
void check_many(const mercer::Threads& threads, std::mt19937& random) {
    const Problem problem = random_problem(kClasses, 560, random);
    auto path = mercer::settle(problem.matrix(threads.level), problem.constant(), any_point(problem, random), threads);
    CHECK(path.has_value());
    if (!path.has_value()) return;
    path->change_family(problem.in_bounds(), 1.0, threads);
    int events = 0;
    bool partial = false;
    while (events < 120 && path->advance(30.0, true, threads) == Homotopy::Next::kEvent) {
        partial = partial || path->segment(threads)->partial;
        if (++events % 8 == 0) {
            CHECK(problem.violation(path->beta(path->t(), *path->segment(threads), threads), path->t()) < 1e-8);
        }
        CHECK(path->apply(threads));
    }
    CHECK(events == 120);
    CHECK(partial);
}

}  // namespace

void test_homotopy() {
    for (const mercer::Level* level : mercer::levels()) {
        std::mt19937 random(7);
        mercer::Poll poll;
        const mercer::Threads threads{1, *level, poll};
        for (const bool bordered : {true, false}) {
            check_system(bordered, 1, threads, random);
            check_system(bordered, 20, threads, random);
            check_system(bordered, 90, threads, random);
        }
        for (int kind = 0; kind < kKinds; ++kind) {
            int events = 0, rows = 0;
            for (int k = 0; k < 5; ++k) check_homotopies(static_cast<Kind>(kind), threads, random, &events, &rows);
            CHECK(kind == kSquared || rows > 0);
            // Bounds and a total that grow together only multiply the solution without targets.
            CHECK(kind == kSquared || kind == kTotal || events >= 10);
        }
        check_many(threads, random);
    }
}
