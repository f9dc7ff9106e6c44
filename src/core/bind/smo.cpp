// Python's view of solve/smo.hpp.
#include "solve/smo.hpp"
#include "bind/variables.hpp"
#include "simd/dispatch.hpp"
#include "solve/twin_rows.hpp"

namespace {

nb::tuple smo(nb::handle K, nb::handle h, nb::handle beta, nb::handle lower, nb::handle upper, nb::handle d,
              nb::handle group, double tol, std::int64_t max_steps, double max_seconds, bool twins) {
    const mercer::SmoResult result = with_matrix<float, double>(K, "K", [&](const auto& kernel) {
        using T = Element<decltype(kernel)>;
        const std::size_t q = kernel.shape(0) * (twins ? 2 : 1);
        if (kernel.shape(1) != kernel.shape(0)) refuse("K", "must be square");
        check_contiguous_rows(kernel);
        const auto h_ = vector<const double>(h, "h", q);
        const Variables variables(beta, lower, upper, d, q);
        const auto group_ = group_of_each(group, q);
        mercer::TwinRows<T> rows(kernel.data(), static_cast<std::ptrdiff_t>(kernel.stride(0)),
                                 twins ? static_cast<std::int64_t>(kernel.shape(0)) : 0);
        const mercer::SmoProblem<T> problem{.kernel = kernel.data(),
                                            .stride = static_cast<std::ptrdiff_t>(kernel.stride(0)),
                                            .q = static_cast<std::int64_t>(q),
                                            .h = h_.data(),
                                            .beta = variables.beta.data(),
                                            .lower = variables.lower.data(),
                                            .upper = variables.upper.data(),
                                            .d = variables.d.data(),
                                            .group = group_.data(),
                                            .source = twins ? &rows : nullptr};
        const mercer::Level& level = mercer::level();
        Signals signals;
        const nb::gil_scoped_release unlocked;
        return mercer::smo(problem, {tol, max_steps, max_seconds}, level, signals.poll());
    });
    return how_ended(result);
}

}  // namespace

void bind_smo(nb::module_& m) {
    m.def("smo", &smo, "K"_a.none(), "h"_a.none(), "beta"_a.none(), "lower"_a.none(), "upper"_a.none(), "d"_a.none(),
          "group"_a.none(), "tol"_a, "max_steps"_a, "max_seconds"_a, "twins"_a = false,
          "Maximise p'b - 1/2 b'(K + diag d)b over the box, group sums kept; h = p - Kb - d b; changes beta in place. "
          "Twins: variables i and n + i belong to row i of K.");
}
