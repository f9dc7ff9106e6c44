// Python's view of gram/merging.hpp and algebra/exact_parts.hpp.
#include "gram/merging.hpp"

#include <nanobind/stl/optional.h>

#include <optional>
#include <utility>
#include <vector>

#include "algebra/exact_parts.hpp"
#include "bind/picked_rows.hpp"

namespace {

TupleOf<Indices, Indices> order_by(AnyArray keys, AnyArray second) {
    Vector<const std::uint64_t> keys_;
    if (!nb::try_cast(keys, keys_, false)) refuse("keys", "must be a contiguous one-dimensional uint64 array");
    check_alignment(keys_, "keys");
    const std::size_t n = keys_.shape(0);
    const auto second_ = vector<const std::int64_t>(second, "second", n);
    std::vector<std::int64_t> order, repeats;
    {
        const nb::gil_scoped_release unlocked;
        order = mercer::order_by(keys_.data(), second_.data(), n);
        repeats = mercer::repeats(keys_.data(), order);
    }
    return nb::make_tuple(as_array(std::move(order)), as_array(std::move(repeats)));
}

std::optional<TupleOf<Indices, Indices>> group_rows(AnyArray X, nb::object which, AnyArray labels, int n_threads) {
    check_threads(n_threads);
    mercer::RowGroups groups;
    bool known = false;
    with_rows(X, which, [&]<class T>(const GivenRows<T>& given) {
        const std::size_t n_all = given.array.shape(0);
        const auto labels_ = vector<const std::int64_t>(labels, "labels", n_all);
        Signals signals;
        const nb::gil_scoped_release unlocked;
        known = mercer::group_rows(given.rows, static_cast<std::int64_t>(n_all), labels_.data(), n_threads,
                                   signals.poll(), &groups);
    });
    if (!known) return std::nullopt;
    return nb::make_tuple(as_array(std::move(groups.first)), as_array(std::move(groups.member)));
}

OwnArray<std::uint8_t> equal_rows_csr(AnyArray data, AnyArray indices, AnyArray indptr, AnyArray left, AnyArray right) {
    std::vector<std::uint8_t> out;
    with_csr(data, indices, indptr, [&](const auto& data_, const auto& indices_, const std::int64_t* starts, std::int64_t n) {
        const auto left_ = vector<const std::int64_t>(left, "left");
        const auto right_ = vector<const std::int64_t>(right, "right", left_.shape(0));
        check_range(left_.data(), left_.shape(0), n, "left");
        check_range(right_.data(), right_.shape(0), n, "right");
        const nb::gil_scoped_release unlocked;
        out = mercer::equal_rows(data_.data(), indices_.data(), starts, left_.data(), right_.data(),
                                 left_.shape(0));
    });
    return as_array(std::move(out));
}

Doubles sum_error_bounds(AnyArray totals, AnyArray parts, AnyArray group) {
    const auto totals_ = vector<const double>(totals, "totals"), parts_ = vector<const double>(parts, "parts");
    const auto group_ = vector<const std::int64_t>(group, "group", parts_.shape(0));
    const auto n = static_cast<std::int64_t>(totals_.shape(0)), count = static_cast<std::int64_t>(parts_.shape(0));
    check_range(group_.data(), group_.shape(0), n, "group");
    return as_array(mercer::sum_error_bounds(totals_.data(), n, parts_.data(), group_.data(), count));
}

}  // namespace

void bind_merging(nb::module_& m) {
    m.def("order_by", &order_by, "keys"_a, "second"_a,
          "Positions sorted by hash, then by a second number, and the places among them whose successor has the same hash.");
    m.def("group_rows", &group_rows, "X"_a, "which"_a.none(), "labels"_a, "n_threads"_a,
          "Group equal rows with equal labels, among the rows `which` or all, in the order of hash and label: the position "
          "of the first row of each group, and the group of each row. None if different rows have the same hash.");
    m.def("equal_rows_csr", &equal_rows_csr, "data"_a, "indices"_a, "indptr"_a, "left"_a,
          "right"_a, "Whether pairs of rows store the same entries.");
    m.def("sum_error_bounds", &sum_error_bounds, "totals"_a, "parts"_a, "group"_a,
          "Bounds on the differences between totals[g] and the sum of the parts of group g, which have the sign of the total.");
}
