// Python's view of solve/stored.hpp.
#include "solve/stored.hpp"
#include "bind/arguments.hpp"
#include "simd/dispatch.hpp"

namespace {

nb::tuple solve_stored(nb::handle K, nb::handle which, nb::handle p, nb::handle beta, nb::handle u, nb::handle lower,
                       nb::handle upper, nb::handle d, nb::handle group, double tol, std::int64_t max_steps,
                       double max_seconds) {
    const mercer::SmoResult result = with_matrix<float, double>(K, "K", [&](const auto& kernel) {
        using T = Element<decltype(kernel)>;
        const std::size_t q = kernel.shape(1);
        if (q > 1 && kernel.stride(1) != 1) refuse("K", "must have contiguous rows");
        const auto which_ = vector<const std::int64_t>(which, "which", q);
        check_range(which_.data(), q, static_cast<std::int64_t>(kernel.shape(0)), "which");
        const auto p_ = vector<const double>(p, "p", q);
        const auto beta_ = vector<double>(beta, "beta", q);
        const auto u_ = vector<double>(u, "u", q);
        const auto lower_ = vector<const double>(lower, "lower", q);
        const auto upper_ = vector<const double>(upper, "upper", q);
        const auto d_ = vector<const double>(d, "d", q);
        const auto group_ = vector<const std::int32_t>(group, "group", q);
        if (!mercer::all_within(group_.data(), q, -1, INT32_MAX)) {
            refuse("group", "must hold group numbers from 0, or -1 for no equality");
        }
        const mercer::StoredProblem<T> problem{.kernel = kernel.data(),
                                               .stride = static_cast<std::ptrdiff_t>(kernel.stride(0)),
                                               .which = which_.data(),
                                               .q = static_cast<std::int64_t>(q),
                                               .p = p_.data(),
                                               .beta = beta_.data(),
                                               .u = u_.data(),
                                               .lower = lower_.data(),
                                               .upper = upper_.data(),
                                               .d = d_.data(),
                                               .group = group_.data()};
        const mercer::Level& level = mercer::level();
        Signals signals;
        const nb::gil_scoped_release unlocked;
        return mercer::solve_stored(problem, {tol, max_steps, max_seconds}, level, signals.poll());
    });
    return nb::make_tuple(result.steps, result.violation, result.reason);
}

}  // namespace

void bind_stored(nb::module_& m) {
    m.def("solve_stored", &solve_stored, "K"_a.none(), "which"_a.none(), "p"_a.none(), "beta"_a.none(), "u"_a.none(),
          "lower"_a.none(), "upper"_a.none(), "d"_a.none(), "group"_a.none(), "tol"_a, "max_steps"_a, "max_seconds"_a,
          "Like smo, on rows of a stored matrix; beta and u = K beta are changed in place.");
}
