// Rows of a dense array in any order, where they are: what reads them copies no row.
#pragma once

#include <cstdint>

namespace mercer {

template <class T>
struct PickedRows {
    const T* data;  // rows of d elements, one after another
    std::int64_t n, d;
    const std::int64_t* which = nullptr;  // n of the rows, in any order; without them, all n rows

    const T* row(std::int64_t i) const { return data + (which == nullptr ? i : which[i]) * d; }
};

}  // namespace mercer
