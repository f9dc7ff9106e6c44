// The joint multi-class solver as Python sees it.
#include "solve/joint_ascent.hpp"
#include "bind/variables.hpp"
#include "simd/dispatch.hpp"

namespace {

template <class T>
auto matrix(AnyArray object, const char* name, std::size_t rows) {
    nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu> out;
    if (!nb::try_cast(object, out, false)) {
        refuse(name, std::string("must be a C-contiguous two-dimensional float64 array") +
                         (std::is_const_v<T> ? "" : " that can be written to"));
    }
    check_alignment(out, name);
    if (out.shape(0) != rows) {
        refuse(name, "has " + std::to_string(out.shape(0)) + " rows, but K has " + std::to_string(rows));
    }
    return out;
}

TupleOf<std::int64_t, double, nb::str> joint(AnyArray K, AnyArray excess, AnyArray beta, AnyArray label, AnyArray bound, bool shared,
                double shift, double tol, std::int64_t max_steps, double max_seconds) {
    const mercer::JointResult result = with_matrix<float, double>(K, "K", [&](const auto& kernel) {
        using T = Element<decltype(kernel)>;
        const std::size_t q = kernel.shape(0);
        if (kernel.shape(1) != q) refuse("K", "must be square");
        check_contiguous_rows(kernel);
        const auto excess_ = matrix<const double>(excess, "excess", q);
        const auto beta_ = matrix<double>(beta, "beta", q);
        const std::size_t classes = excess_.shape(1);
        if (classes < 2) refuse("excess", "must have at least two columns, the classes");
        if (beta_.shape(1) != classes) refuse("beta", "must have the shape of excess");
        const auto label_ = vector<const std::int64_t>(label, "label", q);
        const auto bound_ = vector<const double>(bound, "bound", q);
        check_range(label_.data(), q, static_cast<std::int64_t>(classes), "label");
        if (!mercer::all_positive(bound_.data(), q)) refuse("bound", "must be positive");
        const mercer::JointProblem<T> problem{.kernel = kernel.data(),
                                              .stride = static_cast<std::ptrdiff_t>(kernel.stride(0)),
                                              .q = static_cast<std::int64_t>(q),
                                              .classes = static_cast<std::int64_t>(classes),
                                              .shift = shift,
                                              .excess = excess_.data(),
                                              .beta = beta_.data(),
                                              .label = label_.data(),
                                              .bound = bound_.data(),
                                              .shared = shared};
        const mercer::Level& level = mercer::level();
        Signals signals;
        const nb::gil_scoped_release unlocked;
        return mercer::joint(problem, {tol, max_steps, max_seconds}, level, signals.poll());
    });
    return how_ended(result);
}

}  // namespace

void bind_joint(nb::module_& m) {
    m.def("joint", &joint, "K"_a, "excess"_a, "beta"_a, "label"_a, "bound"_a,
          "shared"_a, "shift"_a, "tol"_a, "max_steps"_a, "max_seconds"_a,
          "Ascend the dual of a joint multi-class machine on one block of samples; beta is changed in place.\n\n"
          "excess = f + 1 - [class is the label] at beta, samples x classes. `shared`: the multipliers of a sample "
          "together stay below its bound (Crammer and Singer), else each does (Weston and Watkins). Returns as `smo`.");
}
