// Python's view of solve/pegasos.hpp and counter_random.hpp.
#include <vector>

#include "bind/arguments.hpp"
#include "solve/counter_random.hpp"
#include "solve/pegasos.hpp"

namespace {

// The arrays of a run of steps, checked: every draw is a row, every length agrees.
class Steps {
public:
    Steps(AnyArray draws, AnyArray y, std::size_t n, double lam, std::int64_t t, bool project, double norm2,
          AnyArray counts)
        : draws_(vector<const std::int64_t>(draws, "draws")), y_(vector<const double>(y, "y", n)) {
        if (t < 0) refuse("t", "must not be negative");
        check_range(draws_.data(), draws_.shape(0), static_cast<std::int64_t>(n), "draws");
        std::int64_t* violations = nullptr;
        if (!counts.is_none()) {
            counts_ = vector<std::int64_t>(counts, "counts", n);
            violations = counts_.data();
        }
        steps = {draws_.data(), static_cast<std::int64_t>(draws_.shape(0)), y_.data(), lam, t, project, norm2,
                 violations};
    }
    mercer::PegasosSteps steps{};

private:
    Vector<const std::int64_t> draws_;
    Vector<const double> y_;
    Vector<std::int64_t> counts_;
};

class State {
public:
    State(AnyArray theta, AnyArray total, std::size_t d, std::size_t most)
        : theta_(vector<double>(theta, "theta")), total_(vector<double>(total, "total", theta_.shape(0))) {
        if (theta_.shape(0) < d || theta_.shape(0) > most) refuse("theta", "must have one element per feature");
        state = {theta_.data(), total_.data(), static_cast<std::int64_t>(theta_.shape(0))};
    }
    mercer::PegasosState state{};

private:
    Vector<double> theta_, total_;
};

using PegasosSums = TupleOf<std::int64_t, double, double, double>;

PegasosSums as_tuple(const mercer::PegasosResult& result) {
    return nb::make_tuple(result.done, result.scale, result.mass, result.norm2);
}

template <class Rows>
mercer::PegasosResult go(const Rows& rows, const State& state, const Steps& steps) {
    Signals signals;
    const nb::gil_scoped_release unlocked;
    return mercer::pegasos(rows, state.state, steps.steps, signals.poll());
}

PegasosSums pegasos_dense(AnyArray X, AnyArray y, AnyArray draws, double lam, std::int64_t t, bool project,
                        double norm2, AnyArray theta, AnyArray total, AnyArray counts) {
    return as_tuple(with_matrix<float, double>(X, "X", [&](const auto& x) {
        using T = Element<decltype(x)>;
        const std::size_t n = x.shape(0), d = x.shape(1);
        if ((d > 1 && x.stride(1) != 1) || (n > 1 && x.stride(0) != static_cast<std::int64_t>(d))) {
            refuse("X", "must be C-contiguous");
        }
        const State state(theta, total, d, d + 1);
        const Steps steps(draws, y, n, lam, t, project, norm2, counts);
        return go(mercer::PegasosDense<T>{x.data(), static_cast<std::int64_t>(d)}, state, steps);
    }));
}

PegasosSums pegasos_csr(AnyArray data, AnyArray indices, AnyArray indptr, std::int64_t d, AnyArray y,
                      AnyArray draws, double lam, std::int64_t t, bool project, double norm2, AnyArray theta,
                      AnyArray total, AnyArray counts) {
    mercer::PegasosResult result;
    if (d < 0) refuse("d", "must not be negative");
    const State state(theta, total, static_cast<std::size_t>(d), static_cast<std::size_t>(d) + 1);
    with_csr(data, indices, indptr, [&](const auto& data_, const auto& indices_, const std::int64_t* starts, std::int64_t n) {
        const Steps steps(draws, y, static_cast<std::size_t>(n), lam, t, project, norm2, counts);
        const mercer::PegasosSparse<Element<decltype(data_)>, Element<decltype(indices_)>> rows{
            data_.data(), indices_.data(), starts, d};
        if (!mercer::columns_fit(rows, n, steps.steps.draws, steps.steps.count)) {
            refuse("indices", "holds a feature outside of the range");
        }
        result = go(rows, state, steps);
    });
    return as_tuple(result);
}

PegasosSums pegasos_kernel(AnyArray rows, AnyArray slot, double shift, AnyArray u, AnyArray y, AnyArray draws,
                         double lam, std::int64_t t, bool project, double norm2, AnyArray theta, AnyArray total,
                         AnyArray counts) {
    nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu> rows_;
    if (!nb::try_cast(rows, rows_, false)) refuse("rows", "must be a C-contiguous float64 matrix");
    const std::size_t n = rows_.shape(1);
    const auto slot_ = vector<const std::int64_t>(slot, "slot", n);
    const auto last = static_cast<std::int64_t>(rows_.shape(0)) - 1;
    if (!mercer::all_within(slot_.data(), n, INT64_MIN, last)) refuse("slot", "points beyond the rows");
    const auto u_ = vector<double>(u, "u", n);
    const State state(theta, total, n, n);
    const Steps steps(draws, y, n, lam, t, project, norm2, counts);
    return as_tuple(
        go(mercer::PegasosKernel{rows_.data(), slot_.data(), static_cast<std::int64_t>(n), shift, u_.data()}, state,
           steps));
}

void check_span(std::int64_t first, std::int64_t count) {
    if (first < 0) refuse("first", "must not be negative");
    if (count < 0) refuse("count", "must not be negative");
}

OwnArray<std::uint64_t> random_bits(std::uint64_t seed, std::uint64_t stream, std::int64_t first, std::int64_t count) {
    check_span(first, count);
    std::vector<std::uint64_t> out(static_cast<std::size_t>(count));
    mercer::CounterRandom(seed, stream).fill(static_cast<std::uint64_t>(first), out.size(), out.data());
    return as_array(std::move(out));
}

Indices draw_rows(std::uint64_t seed, std::uint64_t stream, std::int64_t first, std::int64_t count,
                     AnyArray cumulative) {
    check_span(first, count);
    const auto cumulative_ = vector<const double>(cumulative, "cumulative");
    if (cumulative_.shape(0) == 0) refuse("cumulative", "must have at least one element");
    std::vector<std::int64_t> out(static_cast<std::size_t>(count));
    {
        const nb::gil_scoped_release unlocked;
        mercer::draw_rows(seed, stream, first, count, cumulative_.data(),
                          static_cast<std::int64_t>(cumulative_.shape(0)), out.data());
    }
    return as_array(std::move(out));
}

}  // namespace

void bind_pegasos(nb::module_& m) {
    m.def("pegasos_dense", &pegasos_dense, "X"_a, "y"_a, "draws"_a, "lam"_a, "t"_a, "project"_a,
          "norm2"_a, "theta"_a, "total"_a, "counts"_a.none(),
          "Steps t + 1, ... of stochastic subgradient descent on C-contiguous rows, one for each draw.\n\n"
          "theta, and total, the sum of theta / t, are changed in place; they have an element more than X has columns where "
          "every row is followed by a constant 1. Violations are added to counts. Returns the steps made, the factor by "
          "which projections have shrunk theta, the sum of that factor over t, and |theta|^2, which is right if it was on "
          "entry and project is true.");
    m.def("pegasos_csr", &pegasos_csr, "data"_a, "indices"_a, "indptr"_a, "d"_a, "y"_a,
          "draws"_a, "lam"_a, "t"_a, "project"_a, "norm2"_a, "theta"_a, "total"_a,
          "counts"_a.none(), "`pegasos_dense` on a CSR matrix of d columns; a step costs what its row has entries.");
    m.def("pegasos_kernel", &pegasos_kernel, "rows"_a, "slot"_a, "shift"_a, "u"_a, "y"_a,
          "draws"_a, "lam"_a, "t"_a, "project"_a, "norm2"_a, "theta"_a, "total"_a,
          "counts"_a.none(), "`pegasos_dense` on rows of a kernel matrix: row i is rows[slot[i]], and missing where slot[i] is negative.\n\n"
          "theta are coefficients, u = K theta is kept up to date. Stops before a step that needs a missing row.");
    m.def("random_bits", &random_bits, "seed"_a, "stream"_a, "first"_a, "count"_a, "Numbers first, first + 1, ... of a stream of random 64-bit numbers; the same on every platform.");
    m.def("draw_rows", &draw_rows, "seed"_a, "stream"_a, "first"_a, "count"_a, "cumulative"_a,
          "Random rows: each is the first whose cumulative weight exceeds a uniform number times the total weight.");
}
