// The sums and maxima that a linear machine's certificate consists of, in one pass over the samples. No solver uses it.
#include <algorithm>

#include "bind/arguments.hpp"
#include "solve/findings.hpp"

namespace {

nb::tuple linear_findings(nb::handle p, nb::handle lower, nb::handle upper, nb::handle d, nb::handle epsilon,
                          nb::handle f, nb::handle beta) {
    const auto p_ = vector<const double>(p, "p");
    const std::size_t n = p_.shape(0);
    const auto lower_ = vector<const double>(lower, "lower", n), upper_ = vector<const double>(upper, "upper", n);
    const auto d_ = vector<const double>(d, "d", n), epsilon_ = vector<const double>(epsilon, "epsilon", n);
    const auto f_ = vector<const double>(f, "f", n), beta_ = vector<const double>(beta, "beta", n);
    mercer::Findings found;
    {
        const nb::gil_scoped_release unlocked;
        const bool twins = std::any_of(epsilon_.data(), epsilon_.data() + n, [](double e) { return e != 0.0; });
        for (std::size_t i = 0; i < n; ++i) {
            const double pi = p_.data()[i], fi = f_.data()[i], di = d_.data()[i], e = epsilon_.data()[i],
                         b = beta_.data()[i];
            const double from = lower_.data()[i], to = upper_.data()[i];
            const auto at = static_cast<std::int64_t>(i);
            found.total += b;
            if (twins) {
                mercer::look(pi - e, fi, di, 0.0, to, std::max(b, 0.0), at, &found);
                mercer::look(pi + e, fi, di, from, 0.0, std::min(b, 0.0), at, &found);
            } else {
                mercer::look(pi, fi, di, from, to, b, at, &found);
            }
        }
    }
    return nb::make_tuple(found.losses, found.shares, found.total, found.worst, found.box, found.outward, found.inward,
                          found.top, found.bottom);
}

}  // namespace

void bind_linear_certificate(nb::module_& m);
void bind_linear_certificate(nb::module_& m) {
    m.def("linear_findings", &linear_findings, "p"_a.none(), "lower"_a.none(), "upper"_a.none(), "d"_a.none(),
          "epsilon"_a.none(), "f"_a.none(), "beta"_a.none(),
          "Losses, gap shares, sum of beta, worst sample, largest residuals: outside the box, outward, inward; "
          "largest and smallest gradient that could be followed.");
}
