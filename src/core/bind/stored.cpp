// Python's view of solve/stored.hpp.
#include "solve/stored.hpp"
#include "bind/variables.hpp"
#include "simd/dispatch.hpp"

namespace {

TupleOf<std::int64_t, double, nb::str> solve_stored(AnyArray K, AnyArray which, AnyArray p, AnyArray beta, AnyArray u, AnyArray lower,
                       AnyArray upper, AnyArray d, AnyArray group, double tol, std::int64_t max_steps,
                       double max_seconds) {
    const mercer::SmoResult result = with_matrix<float, double>(K, "K", [&](const auto& kernel) {
        using T = Element<decltype(kernel)>;
        const std::size_t q = kernel.shape(1);
        check_contiguous_rows(kernel);
        const auto which_ = vector<const std::int64_t>(which, "which", q);
        check_range(which_.data(), q, static_cast<std::int64_t>(kernel.shape(0)), "which");
        const auto p_ = vector<const double>(p, "p", q);
        const auto u_ = vector<double>(u, "u", q);
        const Variables variables(beta, lower, upper, d, q);
        const auto group_ = group_of_each(group, q);
        const mercer::StoredProblem<T> problem{.kernel = kernel.data(),
                                               .stride = static_cast<std::ptrdiff_t>(kernel.stride(0)),
                                               .which = which_.data(),
                                               .q = static_cast<std::int64_t>(q),
                                               .p = p_.data(),
                                               .beta = variables.beta.data(),
                                               .u = u_.data(),
                                               .lower = variables.lower.data(),
                                               .upper = variables.upper.data(),
                                               .d = variables.d.data(),
                                               .group = group_.data()};
        const mercer::Level& level = mercer::level();
        Signals signals;
        const nb::gil_scoped_release unlocked;
        return mercer::solve_stored(problem, {tol, max_steps, max_seconds}, level, signals.poll());
    });
    return how_ended(result);
}

}  // namespace

void bind_stored(nb::module_& m) {
    m.def("solve_stored", &solve_stored, "K"_a, "which"_a, "p"_a, "beta"_a, "u"_a,
          "lower"_a, "upper"_a, "d"_a, "group"_a, "tol"_a, "max_steps"_a, "max_seconds"_a,
          "`smo` on a matrix that is stored for many problems: K has a column for every variable, and variable i the row "
          "which[i]; p and u = K beta stand in for h. beta and u, whose change is summed in float64, are changed in place.");
}
