// Python's view of solve/smo.hpp.
#include "solve/smo.hpp"
#include "bind/arguments.hpp"
#include "simd/dispatch.hpp"
#include "solve/twin_rows.hpp"

namespace {

nb::tuple smo(nb::handle K, nb::handle h, nb::handle beta, nb::handle lower, nb::handle upper, nb::handle d,
              nb::handle group, double tol, std::int64_t max_steps, double max_seconds, bool twins) {
    const mercer::SmoResult result = with_matrix<float, double>(K, "K", [&](const auto& kernel) {
        using T = Element<decltype(kernel)>;
        const std::size_t q = kernel.shape(0) * (twins ? 2 : 1);
        if (kernel.shape(1) != kernel.shape(0)) refuse("K", "must be square");
        if (kernel.shape(0) > 1 && kernel.stride(1) != 1) refuse("K", "must have contiguous rows");
        const auto h_ = vector<const double>(h, "h", q);
        const auto beta_ = vector<double>(beta, "beta", q);
        const auto lower_ = vector<const double>(lower, "lower", q);
        const auto upper_ = vector<const double>(upper, "upper", q);
        const auto d_ = vector<const double>(d, "d", q);
        const auto group_ = vector<const std::int32_t>(group, "group", q);
        if (!mercer::all_within(group_.data(), q, -1, INT32_MAX)) {
            refuse("group", "must hold group numbers from 0, or -1 for no equality");
        }
        mercer::TwinRows<T> rows(kernel.data(), static_cast<std::ptrdiff_t>(kernel.stride(0)),
                                 twins ? static_cast<std::int64_t>(kernel.shape(0)) : 0);
        const mercer::SmoProblem<T> problem{.kernel = kernel.data(),
                                            .stride = static_cast<std::ptrdiff_t>(kernel.stride(0)),
                                            .q = static_cast<std::int64_t>(q),
                                            .h = h_.data(),
                                            .beta = beta_.data(),
                                            .lower = lower_.data(),
                                            .upper = upper_.data(),
                                            .d = d_.data(),
                                            .group = group_.data(),
                                            .source = twins ? &rows : nullptr};
        const mercer::Level& level = mercer::level();
        Signals signals;
        const nb::gil_scoped_release unlocked;
        return mercer::smo(problem, {tol, max_steps, max_seconds}, level, signals.poll());
    });
    return nb::make_tuple(result.steps, result.violation, result.reason);
}

}  // namespace

void bind_smo(nb::module_& m) {
    m.def("smo", &smo, "K"_a.none(), "h"_a.none(), "beta"_a.none(), "lower"_a.none(), "upper"_a.none(), "d"_a.none(),
          "group"_a.none(), "tol"_a, "max_steps"_a, "max_seconds"_a, "twins"_a = false,
          "Maximise p'b - 1/2 b'(K + diag d)b over the box, group sums kept; h = p - Kb - d b; changes beta in place. "
          "Twins: variables i and n + i belong to row i of K.");
}
