// Python's view of solve/pairs.hpp: arguments checked, then the core without the interpreter's lock.
#pragma once

#include <vector>

#include "bind/arguments.hpp"
#include "simd/dispatch.hpp"
#include "solve/pairs.hpp"

// Blocks of samples and the pairs of them, with every index checked.
class PairLayout {
public:
    PairLayout(nb::handle members, nb::handle starts, nb::handle blocks, nb::handle offsets, std::int64_t n)
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

// Calls solve(problems, results, threads), which returns how many kernel values it computed.
template <class Solve>
nb::tuple with_pair_problems(const PairLayout& layout, nb::handle h, nb::handle beta, nb::handle lower, nb::handle upper,
                             nb::handle d, bool paired, int n_threads, Solve solve) {
    const std::size_t n = layout.variables();
    const auto h_ = vector<const double>(h, "h", n), lower_ = vector<const double>(lower, "lower", n);
    const auto upper_ = vector<const double>(upper, "upper", n), d_ = vector<const double>(d, "d", n);
    const auto beta_ = vector<double>(beta, "beta", n);
    check_threads(n_threads);
    std::vector<mercer::SmoResult> results(static_cast<std::size_t>(layout.pairs().count));
    std::int64_t values = 0;
    {
        Signals signals;
        const nb::gil_scoped_release unlocked;
        values = solve(
            mercer::PairProblems{h_.data(), beta_.data(), lower_.data(), upper_.data(), d_.data(), paired},
            results.data(), mercer::Threads{n_threads, mercer::level(), signals.poll()});
    }
    const nb::list steps = as_list(results, [](const mercer::SmoResult& result) { return result.steps; });
    const nb::list reasons = as_list(results, [](const mercer::SmoResult& result) { return result.reason; });
    return nb::make_tuple(steps, reasons, values);
}

template <class T>
nb::tuple solve_pairs(const mercer::DenseSamples<T>& samples, int ending, const double* numbers,
                      const PairLayout& layout, nb::handle diagonal, nb::handle h, nb::handle beta, nb::handle lower,
                      nb::handle upper, nb::handle d, bool paired, double tol, std::int64_t max_steps,
                      double max_seconds, int n_threads) {
    const auto diagonal_ = vector<const double>(diagonal, "diagonal", static_cast<std::size_t>(samples.n));
    return with_pair_problems(
        layout, h, beta, lower, upper, d, paired, n_threads,
        [&](const mercer::PairProblems& problems, mercer::SmoResult* results, const mercer::Threads& threads) {
            return mercer::solve_pairs<T>({samples, diagonal_.data(), ending, numbers}, layout.rows(), layout.pairs(),
                                          problems, {tol, max_steps, max_seconds}, results, threads);
        });
}

inline nb::tuple solve_sparse_pairs(const mercer::SparseSamples<double>& samples, int ending, const double* numbers,
                                    const PairLayout& layout, nb::handle diagonal, nb::handle h, nb::handle beta,
                                    nb::handle lower, nb::handle upper, nb::handle d, nb::handle products, bool single,
                                    bool paired, double tol, std::int64_t max_steps, double max_seconds,
                                    int n_threads) {
    if (ending == mercer::kLaplacian || samples.lows != nullptr) {
        refuse("samples", "must have inner products for solve_sparse_pairs");
    }
    const auto diagonal_ = vector<const double>(diagonal, "diagonal", static_cast<std::size_t>(samples.n));
    const auto products_ = vector<double>(products, "products", layout.variables());
    return with_pair_problems(
        layout, h, beta, lower, upper, d, paired, n_threads,
        [&](const mercer::PairProblems& problems, mercer::SmoResult* results, const mercer::Threads& threads) {
            const auto solve = single ? mercer::solve_sparse_pairs<float> : mercer::solve_sparse_pairs<double>;
            return solve({samples, diagonal_.data(), ending, numbers}, layout.rows(), layout.pairs(), problems,
                         {tol, max_steps, max_seconds}, results, products_.data(), threads);
        });
}

// Calls solve(folds, results, threads); why each fold of each pair ended.
template <class Solve>
nb::tuple with_folds(const PairLayout& layout, nb::handle p, nb::handle beta, nb::handle lower, nb::handle upper,
                     nb::handle d, nb::handle values, bool paired, int n_threads, Solve solve) {
    const std::size_t n = layout.variables();
    const auto p_ = vector<const double>(p, "p", n), beta_ = vector<const double>(beta, "beta", n);
    const auto d_ = vector<const double>(d, "d", n), lower_ = vector<const double>(lower, "lower");
    const auto values_ = vector<double>(values, "values", lower_.shape(0));
    const auto upper_ = vector<const double>(upper, "upper", lower_.shape(0));
    if (n == 0 || lower_.shape(0) % n != 0) refuse("lower", "must have all variables once for each fold");
    check_threads(n_threads);
    const std::size_t folds = lower_.shape(0) / n;
    std::vector<mercer::SmoResult> results(static_cast<std::size_t>(layout.pairs().count) * folds);
    std::int64_t computed = 0;
    {
        Signals signals;
        const nb::gil_scoped_release unlocked;
        computed = solve(mercer::PairFolds{p_.data(), beta_.data(), lower_.data(), upper_.data(), d_.data(),
                                           static_cast<std::int64_t>(folds), paired, values_.data()},
                         results.data(), mercer::Threads{n_threads, mercer::level(), signals.poll()});
    }
    return nb::make_tuple(as_list(results, [](const mercer::SmoResult& result) { return result.reason; }), computed);
}

template <class T>
void add_pairs(const mercer::DenseSamples<T>& samples, int ending, const double* numbers, const PairLayout& layout,
               nb::handle beta, nb::handle total, int n_threads) {
    const auto beta_ = vector<const double>(beta, "beta", layout.variables());
    const auto total_ = vector<double>(total, "total", layout.variables());
    check_threads(n_threads);
    Signals signals;
    const nb::gil_scoped_release unlocked;
    mercer::add_pairs<T>({samples, nullptr, ending, numbers}, layout.rows(), layout.pairs(), beta_.data(),
                         total_.data(), {n_threads, mercer::level(), signals.poll()});
}
