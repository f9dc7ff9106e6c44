// The sums and maxima that a linear machine's certificate consists of, in one pass over the samples. No solver uses it.
#include <algorithm>
#include <cmath>
#include <limits>

#include "bind.hpp"

namespace {

struct Findings {
    double losses = 0.0, shares = 0.0, total = 0.0;
    double worst_share = -1.0;
    std::int64_t worst = 0;
    double box = 0.0, outward = 0.0, inward = 0.0;
    double top = -std::numeric_limits<double>::infinity(), bottom = std::numeric_limits<double>::infinity();
};

// One variable of the problem: maximise p b - d b^2 / 2 - f b over [lower, upper].
void look(double p, double f, double d, double lower, double upper, double beta, std::int64_t i, Findings* to) {
    const double r = p - f, residual = r - d * beta;
    double best = d > 0.0 ? std::clamp(r / d, lower, upper) : (r > 0.0 ? upper : lower);
    if (r == 0.0) best = 0.0;  // any is best; this one does not multiply an infinite bound by zero
    const double loss = r * best - 0.5 * d * best * best;
    const double share = std::max(loss - beta * (r - 0.5 * d * beta), 0.0);
    to->losses += loss;
    to->shares += share;
    if (share > to->worst_share) {
        to->worst_share = share;
        to->worst = i;
    }
    to->box = std::max({to->box, lower - beta, beta - upper});
    const bool up = beta < upper, low = beta > lower;
    const double grow = up ? std::max(residual, 0.0) : 0.0, shrink = low ? std::max(-residual, 0.0) : 0.0;
    to->outward = std::max(to->outward, beta > 0.0 ? grow : beta < 0.0 ? shrink : std::max(grow, shrink));
    to->inward = std::max(to->inward, beta > 0.0 ? shrink : beta < 0.0 ? grow : 0.0);
    if (up) to->top = std::max(to->top, residual);
    if (low) to->bottom = std::min(to->bottom, residual);
}

nb::tuple linear_findings(nb::handle p, nb::handle lower, nb::handle upper, nb::handle d, nb::handle epsilon, nb::handle f,
                          nb::handle beta) {
    const auto p_ = vector<const double>(p, "p");
    const std::size_t n = p_.shape(0);
    const auto lower_ = vector<const double>(lower, "lower", n), upper_ = vector<const double>(upper, "upper", n);
    const auto d_ = vector<const double>(d, "d", n), epsilon_ = vector<const double>(epsilon, "epsilon", n);
    const auto f_ = vector<const double>(f, "f", n), beta_ = vector<const double>(beta, "beta", n);
    Findings found;
    {
        const nb::gil_scoped_release unlocked;
        const bool twins = std::any_of(epsilon_.data(), epsilon_.data() + n, [](double e) { return e != 0.0; });
        for (std::size_t i = 0; i < n; ++i) {
            const double pi = p_.data()[i], fi = f_.data()[i], di = d_.data()[i], e = epsilon_.data()[i], b = beta_.data()[i];
            const double from = lower_.data()[i], to = upper_.data()[i];
            const auto at = static_cast<std::int64_t>(i);
            found.total += b;
            if (twins) {
                look(pi - e, fi, di, 0.0, to, std::max(b, 0.0), at, &found);
                look(pi + e, fi, di, from, 0.0, std::min(b, 0.0), at, &found);
            } else {
                look(pi, fi, di, from, to, b, at, &found);
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
          "Losses, gap shares, sum of beta, worst sample, largest residuals: outside the box, outward, inward; largest and "
          "smallest gradient that could be followed.");
}
