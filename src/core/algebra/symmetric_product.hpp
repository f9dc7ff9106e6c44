// AV for a symmetric A of which one triangle is stored, and a V of few columns, on all threads.
//
// A library packs all of A for such a product, which takes as long as the product itself. Here every element is read
// where it lies, once for both of its places.
#pragma once

#include <cstdint>

#include "threads/threads.hpp"

namespace mercer {

// a[j * stride + i] is the element (i, j), i >= j, of an m x m matrix. v and out are m x width, column after column,
// v_stride and m elements apart. Sums do not depend on the number of threads.
void symmetric_product(const double* a, std::int64_t stride, std::int64_t m, const double* v, std::int64_t v_stride,
                       std::int64_t width, double* out, const Threads& threads);

}  // namespace mercer
