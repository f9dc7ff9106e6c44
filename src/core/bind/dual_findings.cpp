// Python's view of solve/dual_findings.hpp.
#include "solve/dual_findings.hpp"

#include <cmath>

#include "bind/arguments.hpp"

namespace {

TupleOf<nb::any, nb::ellipsis> dual_findings(AnyArray p, AnyArray lower, AnyArray upper, AnyArray d, AnyArray row,
                        AnyArray group, AnyArray totals, AnyArray beta, AnyArray coefficients, AnyArray u,
                        AnyArray error, AnyArray reach) {
    const auto p_ = vector<const double>(p, "p"), u_ = vector<const double>(u, "u");
    const std::size_t n = p_.shape(0), rows = u_.shape(0);
    const auto lower_ = vector<const double>(lower, "lower", n), upper_ = vector<const double>(upper, "upper", n);
    const auto d_ = vector<const double>(d, "d", n), beta_ = vector<const double>(beta, "beta", n);
    const auto row_ = vector<const std::int64_t>(row, "row", n);
    const auto group_ = vector<const std::int32_t>(group, "group", n);
    const auto totals_ = vector<const double>(totals, "totals");
    const auto coefficients_ = vector<const double>(coefficients, "coefficients", rows);
    const auto error_ = vector<const double>(error, "error", rows);
    const auto reach_ = vector<const double>(reach, "reach", rows);
    check_range(row_.data(), n, static_cast<std::int64_t>(rows), "row");
    const auto groups = static_cast<std::int64_t>(totals_.shape(0));
    if (!mercer::all_within(group_.data(), n, -1, static_cast<std::int32_t>(groups - 1))) {
        refuse("group", "must hold numbers of totals, or -1 for no equality");
    }
    mercer::DualFindings out;
    {
        const nb::gil_scoped_release unlocked;
        out = mercer::certify_dual({p_.data(), lower_.data(), upper_.data(), d_.data(), row_.data(), group_.data(),
                                    beta_.data(), static_cast<std::int64_t>(n), totals_.data(), groups,
                                    coefficients_.data(), u_.data(), error_.data(), reach_.data(),
                                    static_cast<std::int64_t>(rows)});
    }
    const mercer::Findings& f = out.found;
    const nb::tuple bias(as_list(out.bias, [](double b) { return b; }));
    return nb::make_tuple(f.losses, f.shares, f.worst, out.violation, f.box, f.outward, f.inward,
                          out.equality, out.repair.of_gap(), out.repair.of_dual(), out.energy, out.gain, out.curved, out.size, out.wrong, bias);
}

// Whether the seven arrays of a problem agree; Python looks for what is wrong where they do not.
bool is_sound(AnyArray p, AnyArray lower, AnyArray upper, AnyArray d, AnyArray row, AnyArray group,
              AnyArray totals) {
    const auto p_ = vector<const double>(p, "p"), totals_ = vector<const double>(totals, "totals");
    const std::size_t n = p_.shape(0);
    const auto lower_ = vector<const double>(lower, "lower", n), upper_ = vector<const double>(upper, "upper", n);
    const auto d_ = vector<const double>(d, "d", n);
    const auto row_ = vector<const std::int64_t>(row, "row", n);
    const auto group_ = vector<const std::int32_t>(group, "group", n);
    const auto groups = static_cast<std::int32_t>(totals_.shape(0));
    const double *p__ = p_.data(), *low = lower_.data(), *high = upper_.data(), *ridge = d_.data();
    bool sound = true;
    for (std::size_t i = 0; i < n; ++i) {
        sound &= low[i] <= high[i] && std::isfinite(p__[i]) && std::isfinite(ridge[i]) && ridge[i] >= 0.0;
        sound &= row_.data()[i] >= 0 && group_.data()[i] >= -1 && group_.data()[i] < groups;
    }
    for (std::size_t g = 0; g < totals_.shape(0); ++g) sound &= std::isfinite(totals_.data()[g]);
    return sound;
}

}  // namespace

void bind_dual_findings(nb::module_& m) {
    m.def("dual_findings", &dual_findings, "p"_a, "lower"_a, "upper"_a, "d"_a,
          "row"_a, "group"_a, "totals"_a, "beta"_a, "coefficients"_a, "u"_a,
          "error"_a, "reach"_a,
          "Losses, gap shares, worst variable, violation, largest residuals (outside the box, outward, inward, of an "
          "equality), what repairing the equalities adds to the gap and takes from the dual value, the sums b'u, p'b, "
          "b'd b, |b|'(|p| + |u|), how far the first can be off, and the bias of each group.");
    m.def("is_sound", &is_sound, "p"_a, "lower"_a, "upper"_a, "d"_a, "row"_a,
          "group"_a, "totals"_a, "Whether the arrays of a problem agree with each other.");
}
