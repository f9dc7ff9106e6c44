// Python's view of gram/merging.hpp.
#include "gram/merging.hpp"

#include "bind/arguments.hpp"

namespace {

Indices order_by(AnyArray keys, AnyArray second) {
    Vector<const std::uint64_t> keys_;
    if (!nb::try_cast(keys, keys_, false)) refuse("keys", "must be a contiguous one-dimensional uint64 array");
    check_alignment(keys_, "keys");
    const std::size_t n = keys_.shape(0);
    const auto second_ = vector<const std::int64_t>(second, "second", n);
    std::vector<std::int64_t> order;
    {
        const nb::gil_scoped_release unlocked;
        order = mercer::order_by(keys_.data(), second_.data(), n);
    }
    return as_array(std::move(order));
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

}  // namespace

void bind_merging(nb::module_& m) {
    m.def("order_by", &order_by, "keys"_a, "second"_a,
          "Positions sorted by hash, then by a second number.");
    m.def("equal_rows_csr", &equal_rows_csr, "data"_a, "indices"_a, "indptr"_a, "left"_a,
          "right"_a, "Whether pairs of rows store the same entries.");
}
