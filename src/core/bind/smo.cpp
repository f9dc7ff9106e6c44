// Python's view of solve/smo.hpp.
#include "solve/smo.hpp"
#include "bind/variables.hpp"
#include "simd/dispatch.hpp"
#include "solve/twin_rows.hpp"

namespace {

TupleOf<std::int64_t, double, nb::str> smo(AnyArray K, AnyArray h, AnyArray beta, AnyArray lower, AnyArray upper, AnyArray d,
              AnyArray group, double tol, std::int64_t max_steps, double max_seconds, bool twins) {
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
    m.def("smo", &smo, "K"_a, "h"_a, "beta"_a, "lower"_a, "upper"_a, "d"_a,
          "group"_a, "tol"_a, "max_steps"_a, "max_seconds"_a, "twins"_a = false,
          "Maximise p'b - 1/2 b'(K + diag d)b over the box, group sums kept; beta is changed in place.\n\n"
          "h = p - Kb - d b is the gradient at beta on entry and is not modified. K is float32 or float64 with contiguous "
          "rows; group -1 has no equality. Twins: variables i and n + i belong to row i of K. Returns the steps made, the "
          "violation reached (NaN if \"nonfinite\", when beta is left as it was) and why it ended: \"converged\", "
          "\"max_steps\", \"max_seconds\", \"stalled\", \"unbounded\" or \"nonfinite\".");
}
