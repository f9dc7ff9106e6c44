// Gauss-Legendre quadrature on [0, 1]: with n nodes, integrals of polynomials up to degree 2n - 1 are exact.
#pragma once

#include <cstdint>

namespace mercer {

// Fills n nodes, in ascending order, and their weights.
void gauss_legendre(std::int64_t n, double* nodes, double* weights);

}  // namespace mercer
