// Python's view of solve/findings.hpp and solve/pair_values.hpp.
#include "solve/findings.hpp"

#include <memory>
#include <vector>

#include "bind/arguments.hpp"
#include "solve/pair_values.hpp"

namespace {

TupleOf<double, double, double, std::int64_t, double, double, double, double, double> linear_findings(AnyArray p, AnyArray lower, AnyArray upper, AnyArray d, AnyArray epsilon,
                          AnyArray f, AnyArray error, AnyArray beta) {
    const auto p_ = vector<const double>(p, "p");
    const std::size_t n = p_.shape(0);
    const auto lower_ = vector<const double>(lower, "lower", n), upper_ = vector<const double>(upper, "upper", n);
    const auto d_ = vector<const double>(d, "d", n), epsilon_ = vector<const double>(epsilon, "epsilon", n);
    const auto error_ = vector<const double>(error, "error", n);
    const auto f_ = vector<const double>(f, "f", n), beta_ = vector<const double>(beta, "beta", n);
    mercer::Findings found;
    {
        const nb::gil_scoped_release unlocked;
        found = mercer::certify_linear({p_.data(), lower_.data(), upper_.data(), d_.data(), epsilon_.data(), f_.data(),
                                        error_.data(), beta_.data(), static_cast<std::int64_t>(n)});
    }
    return nb::make_tuple(found.losses, found.shares, found.total, found.worst, found.box, found.outward, found.inward,
                          found.top, found.bottom);
}

using OwnMatrix = nb::ndarray<nb::numpy, double, nb::ndim<2>>;

OwnMatrix as_matrix(std::vector<double> values, std::size_t n_rows, std::size_t n_columns) {
    auto kept = std::make_unique<std::vector<double>>(std::move(values));
    double* const data = kept->data();
    const nb::capsule owner(kept.release(), [](void* q) noexcept { delete static_cast<std::vector<double>*>(q); });
    const std::size_t shape[2] = {n_rows, n_columns};
    return OwnMatrix(data, 2, shape, owner);
}

constexpr std::size_t kFindings = 16;

OwnMatrix pair_findings(AnyArray offsets, AnyArray p, AnyArray lower, AnyArray upper, AnyArray d,
                        AnyArray u, AnyArray beta, AnyArray rows, AnyArray sizes, AnyArray unit_errors, AnyArray reach,
                        bool paired, int n_threads) {
    const auto offsets_ = vector<const std::int64_t>(offsets, "offsets");
    const auto p_ = vector<const double>(p, "p");
    const std::size_t n = p_.shape(0);
    const auto lower_ = vector<const double>(lower, "lower", n), upper_ = vector<const double>(upper, "upper", n);
    const auto d_ = vector<const double>(d, "d", n), u_ = vector<const double>(u, "u", n);
    const auto beta_ = vector<const double>(beta, "beta", n);
    const auto rows_ = vector<const std::int64_t>(rows, "rows", n);
    const auto unit_errors_ = vector<const double>(unit_errors, "unit_errors");
    const auto reach_ = vector<const double>(reach, "reach", unit_errors_.shape(0));
    check_range(rows_.data(), n, static_cast<std::int64_t>(reach_.shape(0)), "rows");
    if (offsets_.shape(0) == 0) refuse("offsets", "must have one element more than there are pairs");
    const auto count = static_cast<std::int64_t>(offsets_.shape(0)) - 1;
    if (!mercer::is_indptr(offsets_.data(), count, static_cast<std::int64_t>(n))) {
        refuse("offsets", "must not decrease and must stay between 0 and the number of variables");
    }
    const auto sizes_ = vector<const double>(sizes, "sizes", static_cast<std::size_t>(count));
    check_threads(n_threads);
    std::vector<mercer::PairFindings> all(static_cast<std::size_t>(count));
    {
        const mercer::KernelPoint at{p_.data(), lower_.data(), upper_.data(), d_.data(), u_.data(), nullptr, nullptr,
                                     beta_.data(), static_cast<std::int64_t>(n), paired};
        Signals signals;
        const nb::gil_scoped_release unlocked;
        mercer::certify_pairs(at, {unit_errors_.data(), reach_.data()}, rows_.data(), sizes_.data(), offsets_.data(),
                              count, all.data(), n_threads, signals.poll());
    }
    std::vector<double> values;
    values.reserve(all.size() * kFindings);
    for (const mercer::PairFindings& pair : all) {
        const mercer::Findings& f = pair.found;
        values.insert(values.end(), {f.losses, f.shares, f.total, static_cast<double>(f.worst), f.box, f.outward,
                                 f.inward, f.top, f.bottom, pair.b, pair.energy, pair.gain, pair.curved,
                                 pair.wrong, pair.repair.of_gap(), pair.repair.of_dual()});
    }
    return as_matrix(std::move(values), all.size(), kFindings);
}

OwnMatrix pair_values(AnyArray findings, bool paired, double share) {
    constexpr std::size_t kValues = 8;
    return with_matrix<double>(findings, "findings", [&](const Matrix<double>& found) {
        if (found.shape(1) != kFindings) refuse("findings", "must be what pair_findings returned");
        const std::size_t count = found.shape(0);
        std::vector<double> values(kValues * count);
        for (std::size_t k = 0; k < count; ++k) {
            const auto at = [&](std::size_t column) { return found(k, column); };
            const mercer::PairValues of = mercer::pair_values({at(0), at(1), at(2), at(4), at(5), at(6), at(7), at(8), at(9),
                                                              at(10), at(11), at(12), at(13), at(14), at(15)}, paired, share);
            std::size_t row = 0;
            for (const double value : {of.primal, of.dual, of.gap, of.violation, of.box, of.equality, of.outward, of.inward})
                values[count * row++ + k] = value;
        }
        return as_matrix(std::move(values), kValues, count);
    });
}

}  // namespace

void bind_findings(nb::module_& m) {
    m.def("linear_findings", &linear_findings, "p"_a, "lower"_a, "upper"_a, "d"_a,
          "epsilon"_a, "f"_a, "error"_a, "beta"_a,
          "Losses, gap shares, sum of beta, worst sample, largest residuals: outside the box, outward, inward; "
          "largest and smallest gradient that could be followed.");
    m.def("pair_findings", &pair_findings, "offsets"_a, "p"_a, "lower"_a, "upper"_a,
          "d"_a, "u"_a, "beta"_a, "rows"_a, "sizes"_a, "unit_errors"_a, "reach"_a, "paired"_a, "n_threads"_a,
          "A row for each problem: losses, gap shares, the most that the sum of beta is off, worst variable, largest residuals (outside the box, "
          "outward, inward), ends of the gradient, b, the sums b'u, p'b, b'd b, how far the first can be off, and "
          "what moving the sum of beta to zero adds to the gap and takes from the dual value. Variable i belongs to row rows[i] "
          "of K; an entry of u is off by at most its row's `unit_errors` times the sum of |beta|, the problem's `sizes`.");
    m.def("pair_values", &pair_values, "findings"_a, "paired"_a, "share"_a,
          "The values of each problem's certificate from its row of pair_findings, a column for each problem: an upper bound "
          "on the primal value and a lower one on the dual value, the gap, the violation, and the residuals of the box, of "
          "the equality, outward and inward. A sum may be off by this share of the sizes of its terms.");
}
