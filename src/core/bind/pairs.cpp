// Problems on pairs of blocks of samples, as Python sees them (solve/pairs.hpp).
#include "solve/pairs.hpp"

#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "bind/samples.hpp"
#include "bind/variables.hpp"

namespace {

// Blocks of samples and the pairs of them, with every index checked.
class PairLayout {
public:
    PairLayout(AnyArray members, AnyArray starts, AnyArray blocks, AnyArray offsets, std::int64_t n)
        : members_(vector<const std::int64_t>(members, "members")),
          starts_(vector<const std::int64_t>(starts, "starts")),
          blocks_(vector<const std::int64_t>(blocks, "blocks")),
          offsets_(vector<const std::int64_t>(offsets, "offsets")) {
        check_range(members_.data(), members_.shape(0), n, "members");
        check_steps(starts_, "starts", static_cast<std::int64_t>(members_.shape(0)));
        check_range(blocks_.data(), blocks_.shape(0), rows().count, "blocks");
        check_steps(offsets_, "offsets", offsets_.shape(0) == 0 ? 0 : offsets_.data()[offsets_.shape(0) - 1]);
        if (blocks_.shape(0) != 2 * static_cast<std::size_t>(pairs().count)) {
            refuse("blocks", "must name two blocks per pair");
        }
        if (!mercer::sizes_agree(rows(), pairs())) {
            refuse("offsets", "must leave each pair as many variables as its blocks have samples");
        }
    }

    mercer::BlockRows rows() const {
        return {members_.data(), starts_.data(), static_cast<std::int64_t>(starts_.shape(0)) - 1};
    }
    mercer::PairList pairs() const {
        return {blocks_.data(), offsets_.data(), static_cast<std::int64_t>(offsets_.shape(0)) - 1};
    }
    std::size_t variables() const { return static_cast<std::size_t>(offsets_.data()[pairs().count]); }

private:
    static void check_steps(const Vector<const std::int64_t>& steps, const char* name, std::int64_t end) {
        const std::size_t n = steps.shape(0);
        const std::int64_t* at = steps.data();
        const bool rising = n > 0 && at[0] == 0 && at[n - 1] == end && mercer::is_nondecreasing(at, n);
        if (!rising) refuse(name, "must rise from 0 to the number of elements");
    }

    Vector<const std::int64_t> members_, starts_, blocks_, offsets_;
};

// The start of every pair: its variables and their gradient.
class StartedPairs {
public:
    StartedPairs(AnyArray h, AnyArray beta, AnyArray lower, AnyArray upper, AnyArray d, std::size_t n,
                 bool paired)
        : h_(vector<const double>(h, "h", n)), variables_(beta, lower, upper, d, n) {
        problems = {h_.data(), variables_.beta.data(), variables_.lower.data(), variables_.upper.data(),
                    variables_.d.data(), paired};
    }
    mercer::PairProblems problems{};

private:
    Vector<const double> h_;
    Variables variables_;
};

// Bounds of all variables once for each fold; the rest is common to all folds.
class Folds {
public:
    Folds(AnyArray p, AnyArray beta, AnyArray lower, AnyArray upper, AnyArray d, AnyArray solutions,
          std::size_t n, bool paired)
        : p_(vector<const double>(p, "p", n)),
          beta_(vector<const double>(beta, "beta", n)),
          d_(vector<const double>(d, "d", n)),
          lower_(vector<const double>(lower, "lower")),
          upper_(vector<const double>(upper, "upper", lower_.shape(0))),
          solutions_(vector<double>(solutions, "solutions", lower_.shape(0))) {
        if (n == 0 || lower_.shape(0) % n != 0) refuse("lower", "must have all variables once for each fold");
        folds = {p_.data(), beta_.data(), lower_.data(), upper_.data(), d_.data(),
                 static_cast<std::int64_t>(lower_.shape(0) / n), paired, solutions_.data()};
    }
    mercer::PairFolds folds{};

private:
    Vector<const double> p_, beta_, d_, lower_, upper_;
    Vector<double> solutions_;
};

struct Solved {
    std::vector<mercer::SmoResult> results;
    std::int64_t values;

    auto steps() const {
        return as_list(results, [](const mercer::SmoResult& result) { return result.steps; });
    }
    auto reasons() const {
        return as_list(results, [](const mercer::SmoResult& result) { return word_of(result.reason); });
    }
};

using PairReasons = TupleOf<nb::typed<nb::list, nb::str>, std::int64_t>;
using PairSteps = TupleOf<nb::typed<nb::list, std::int64_t>, nb::typed<nb::list, nb::str>, std::int64_t>;

// Calls solve(results, threads), which returns how many kernel values it computed.
template <class Solve>
Solved solved(std::int64_t problems, int n_threads, Solve solve) {
    check_threads(n_threads);
    Solved out{std::vector<mercer::SmoResult>(static_cast<std::size_t>(problems)), 0};
    Signals signals;
    const nb::gil_scoped_release unlocked;
    out.values = solve(out.results.data(), mercer::Threads{n_threads, mercer::level(), signals.poll()});
    return out;
}

template <class Kind>
Vector<const double> diagonal_of(const Kind& samples, AnyArray diagonal) {
    return vector<const double>(diagonal, "diagonal", static_cast<std::size_t>(samples.n));
}

void check_inner_products(const Samples& self, const mercer::SparseSamples<double>& samples, const char* name) {
    if (self.ending == mercer::kLaplacian || samples.lows != nullptr) {
        refuse("samples", std::string("must have inner products for ") + name);
    }
}

PairSteps solve_pairs(const Samples& self, AnyArray members, AnyArray starts, AnyArray blocks, AnyArray offsets,
                      AnyArray diagonal, AnyArray h, AnyArray beta, AnyArray lower, AnyArray upper,
                      AnyArray d, bool paired, double tol, std::int64_t max_steps, double max_seconds,
                      int n_threads) {
    const auto solve = [&]<class Kind>(const Kind& samples) -> PairSteps {
        if constexpr (is_dense<Kind>) {
            const PairLayout layout(members, starts, blocks, offsets, samples.n);
            const auto diagonal_ = diagonal_of(samples, diagonal);
            const StartedPairs started(h, beta, lower, upper, d, layout.variables(), paired);
            const Solved out = solved(layout.pairs().count, n_threads, [&](auto* results, const auto& threads) {
                return mercer::solve_pairs<ValueOf<Kind>>({samples, diagonal_.data(), self.ending, self.numbers},
                                                          layout.rows(), layout.pairs(), started.problems,
                                                          {tol, max_steps, max_seconds}, results, threads);
            });
            return nb::make_tuple(out.steps(), out.reasons(), out.values);
        } else {
            refuse("samples", "must be dense for solve_pairs");
        }
    };
    return std::visit(solve, self.any);
}

PairSteps solve_sparse_pairs(const Samples& self, AnyArray members, AnyArray starts, AnyArray blocks,
                             AnyArray offsets, AnyArray diagonal, AnyArray h, AnyArray beta, AnyArray lower,
                             AnyArray upper, AnyArray d, AnyArray products, bool single, bool paired, double tol,
                             std::int64_t max_steps, double max_seconds, int n_threads) {
    const auto* samples = std::get_if<mercer::SparseSamples<double>>(&self.any);
    if (samples == nullptr) refuse("samples", "must be sparse and float64 for solve_sparse_pairs");
    const PairLayout layout(members, starts, blocks, offsets, samples->n);
    check_inner_products(self, *samples, "solve_sparse_pairs");
    const auto diagonal_ = diagonal_of(*samples, diagonal);
    const auto products_ = vector<double>(products, "products", layout.variables());
    const StartedPairs started(h, beta, lower, upper, d, layout.variables(), paired);
    const Solved out = solved(layout.pairs().count, n_threads, [&](auto* results, const auto& threads) {
        const auto solve = single ? mercer::solve_sparse_pairs<float> : mercer::solve_sparse_pairs<double>;
        return solve({*samples, diagonal_.data(), self.ending, self.numbers}, layout.rows(), layout.pairs(),
                     started.problems, {tol, max_steps, max_seconds}, results, products_.data(), threads);
    });
    return nb::make_tuple(out.steps(), out.reasons(), out.values);
}

PairReasons solve_folds(const Samples& self, AnyArray members, AnyArray starts, AnyArray blocks, AnyArray offsets,
                      AnyArray diagonal, AnyArray p, AnyArray beta, AnyArray lower, AnyArray upper,
                      AnyArray d, AnyArray solutions, bool single, bool paired, double tol, std::int64_t max_steps,
                      double max_seconds, int n_threads) {
    const auto solve = [&]<class Kind>(const Kind& samples) -> PairReasons {
        if constexpr (std::is_same_v<Kind, mercer::SparseSamples<float>>) {
            refuse("samples", "must be dense, or sparse and float64, for solve_folds");
        } else {
            if constexpr (!is_dense<Kind>) check_inner_products(self, samples, "solve_folds");
            const PairLayout layout(members, starts, blocks, offsets, samples.n);
            const auto diagonal_ = diagonal_of(samples, diagonal);
            const Folds given(p, beta, lower, upper, d, solutions, layout.variables(), paired);
            const mercer::SmoStop stop{tol, max_steps, max_seconds};
            const std::int64_t problems = layout.pairs().count * given.folds.count;
            const Solved out = solved(problems, n_threads, [&](auto* results, const auto& threads) {
                if constexpr (is_dense<Kind>) {
                    return mercer::solve_folds<ValueOf<Kind>>({samples, diagonal_.data(), self.ending, self.numbers},
                                                              layout.rows(), layout.pairs(), given.folds, stop,
                                                              results, threads);
                } else {
                    const auto core = single ? mercer::solve_sparse_folds<float> : mercer::solve_sparse_folds<double>;
                    return core({samples, diagonal_.data(), self.ending, self.numbers}, layout.rows(), layout.pairs(),
                                given.folds, stop, results, threads);
                }
            });
            return nb::make_tuple(out.reasons(), out.values);
        }
    };
    return std::visit(solve, self.any);
}

std::int64_t add_pairs(const Samples& self, AnyArray members, AnyArray starts, AnyArray blocks, AnyArray offsets,
                       AnyArray beta, AnyArray total, int n_threads) {
    const auto add = [&]<class Kind>(const Kind& samples) -> std::int64_t {
        if constexpr (is_dense<Kind>) {
            const PairLayout layout(members, starts, blocks, offsets, samples.n);
            const auto beta_ = vector<const double>(beta, "beta", layout.variables());
            const auto total_ = vector<double>(total, "total", layout.variables());
            check_threads(n_threads);
            Signals signals;
            const nb::gil_scoped_release unlocked;
            return mercer::add_pairs<ValueOf<Kind>>({samples, nullptr, self.ending, self.numbers}, layout.rows(),
                                             layout.pairs(), beta_.data(), total_.data(),
                                             {n_threads, mercer::level(), signals.poll()});
        } else {
            refuse("samples", "must be dense for add_pairs");
        }
    };
    return std::visit(add, self.any);
}

}  // namespace

void bind_pairs(nb::class_<Samples>& samples) {
    samples
        .def("solve_pairs", &solve_pairs, "members"_a, "starts"_a, "blocks"_a,
             "offsets"_a, "diagonal"_a, "h"_a, "beta"_a, "lower"_a, "upper"_a,
             "d"_a, "paired"_a, "tol"_a, "max_steps"_a, "max_seconds"_a, "n_threads"_a,
             "Solve a problem on each pair of blocks of dense samples; beta is changed in place.\n\n"
             "Block k holds the samples members[starts[k]:starts[k + 1]]; problem t is on blocks[2t] and then "
             "blocks[2t + 1], and its variables begin at offsets[t]. Returns the steps of each and why it ended, as in "
             "`smo`, and how many kernel values that took.")
        .def("solve_sparse_pairs", &solve_sparse_pairs, "members"_a, "starts"_a,
             "blocks"_a, "offsets"_a, "diagonal"_a, "h"_a, "beta"_a,
             "lower"_a, "upper"_a, "d"_a, "products"_a, "single"_a, "paired"_a, "tol"_a,
             "max_steps"_a, "max_seconds"_a, "n_threads"_a,
             "`solve_pairs` for sparse float64 samples, not for the Laplacian; products becomes K beta on each pair. Steps "
             "are taken in float32 where `single`.")
        .def("solve_folds", &solve_folds, "members"_a, "starts"_a, "blocks"_a,
             "offsets"_a, "diagonal"_a, "p"_a, "beta"_a, "lower"_a,
             "upper"_a, "d"_a, "solutions"_a, "single"_a, "paired"_a, "tol"_a, "max_steps"_a,
             "max_seconds"_a, "n_threads"_a,
             "Solve several problems on each pair of blocks, which differ in bounds only and start from what these leave of "
             "beta: lower, upper and solutions have the variables of all pairs once for each.\n\n"
             "Steps on sparse samples take float32 values where these are to be `single`. Returns why each fold of each pair ended, as in `smo`, and how many kernel values that took.")
        .def("add_pairs", &add_pairs, "members"_a, "starts"_a, "blocks"_a,
             "offsets"_a, "beta"_a, "total"_a, "n_threads"_a,
             "total += K beta on each pair of blocks of dense samples, from values computed for this sum; returns their number.");
}
