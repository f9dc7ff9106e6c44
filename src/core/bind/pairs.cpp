// What the certificates of many pairs consist of, in one call.
#include "bind/pairs.hpp"

#include "threads/pool.hpp"

namespace {

nb::list pair_findings(nb::handle offsets, nb::handle p, nb::handle lower, nb::handle upper, nb::handle d, nb::handle u,
                       nb::handle beta, bool paired, int n_threads) {
    const auto offsets_ = vector<const std::int64_t>(offsets, "offsets");
    const auto p_ = vector<const double>(p, "p");
    const std::size_t n = p_.shape(0);
    const auto lower_ = vector<const double>(lower, "lower", n), upper_ = vector<const double>(upper, "upper", n);
    const auto d_ = vector<const double>(d, "d", n), u_ = vector<const double>(u, "u", n),
               beta_ = vector<const double>(beta, "beta", n);
    if (offsets_.shape(0) == 0) refuse("offsets", "must have one element more than there are pairs");
    const std::int64_t* from = offsets_.data();
    const std::size_t count = offsets_.shape(0) - 1;
    for (std::size_t t = 0; t <= count; ++t) {
        if (from[t] < (t == 0 ? 0 : from[t - 1]) || from[t] > static_cast<std::int64_t>(n)) {
            refuse("offsets", "must not decrease and must stay between 0 and the number of variables");
        }
    }
    check_threads(n_threads);
    std::vector<mercer::PairFindings> all(count);
    {
        Signals signals;
        const nb::gil_scoped_release unlocked;
        mercer::parallel_for(
            static_cast<std::int64_t>(count), n_threads,
            [&](std::int64_t t) {
                const std::int64_t at = from[t];
                all[static_cast<std::size_t>(t)] =
                    mercer::find_pair(p_.data() + at, lower_.data() + at, upper_.data() + at, d_.data() + at,
                                      u_.data() + at, beta_.data() + at, from[t + 1] - at, paired);
            },
            signals.poll());
    }
    nb::list out;
    for (const mercer::PairFindings& pair : all) {
        const mercer::Findings& f = pair.found;
        out.append(nb::make_tuple(f.losses, f.shares, f.total, f.worst, f.box, f.outward, f.inward, f.top, f.bottom,
                                  pair.b, pair.energy, pair.gain, pair.curved));
    }
    return out;
}

}  // namespace

void bind_pairs(nb::module_& m);
void bind_pairs(nb::module_& m) {
    m.def("pair_findings", &pair_findings, "offsets"_a.none(), "p"_a.none(), "lower"_a.none(), "upper"_a.none(),
          "d"_a.none(), "u"_a.none(), "beta"_a.none(), "paired"_a, "n_threads"_a,
          "For each problem: losses, gap shares, sum of beta, worst variable, largest residuals (outside the box, "
          "outward, inward), ends of the gradient, b, and the sums b'u, p'b, b'd b.");
}
