// Rows of a C-contiguous array, all of them or those named, as Python gives them.
#pragma once

#include "algebra/picked_rows.hpp"
#include "bind/arguments.hpp"

template <class T>
struct GivenRows {
    nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu> array;
    Vector<const std::int64_t> which;  // not valid where all rows are meant
    mercer::PickedRows<T> rows;
};

// Calls use(GivenRows) for a float32 or float64 array.
template <class Use>
void with_rows(nb::handle X, nb::handle which, Use use) {
    const auto attempt = [&]<class T>(T*) {
        GivenRows<T> given;
        if (!nb::try_cast(X, given.array, false)) return false;
        check_alignment(given.array, "X");
        const auto n = static_cast<std::int64_t>(given.array.shape(0));
        given.rows = {given.array.data(), n, static_cast<std::int64_t>(given.array.shape(1))};
        if (!which.is_none()) {
            given.which = vector<const std::int64_t>(which, "which");
            check_range(given.which.data(), given.which.shape(0), n, "which");
            given.rows.n = static_cast<std::int64_t>(given.which.shape(0));
            given.rows.which = given.which.data();
        }
        use(given);
        return true;
    };
    if (!attempt(static_cast<float*>(nullptr)) && !attempt(static_cast<double*>(nullptr))) {
        refuse("X", "must be a C-contiguous two-dimensional float32 or float64 array");
    }
}
