// Python's view of gram/merging.hpp.
#include "gram/merging.hpp"

#include "bind/arguments.hpp"

namespace {

nb::object order_by(nb::handle keys, nb::handle second) {
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

nb::object equal_rows_csr(nb::handle data, nb::handle indices, nb::handle indptr, nb::handle left, nb::handle right) {
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
    m.def("order_by", &order_by, "keys"_a.none(), "second"_a.none(),
          "Positions sorted by hash, then by a second number.");
    m.def("equal_rows_csr", &equal_rows_csr, "data"_a.none(), "indices"_a.none(), "indptr"_a.none(), "left"_a.none(),
          "right"_a.none(), "Whether pairs of rows store the same entries.");
}
