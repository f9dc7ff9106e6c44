// Sums of kernels on points of one or two coordinates: the Gram matrix, bounds on its rounding, and f on a grid.
#pragma once

#include <cstdint>
#include <vector>

namespace mercer::page {

using Vector = std::vector<double>;

enum Kind { kLinear, kPolynomialKind, kGaussianKind, kLaplacianKind };

// scale * k, with k = x.z, (gamma x.z + coef0)^degree, exp(-gamma |x - z|^2) or exp(-gamma |x - z|_1).
struct Term {
    Kind kind;
    double scale, gamma;
    int degree;
    double coef0;
};

struct Points {
    const double* x;  // n rows of d coordinates
    std::size_t n, d;
};

// n x n.
Vector gram(const Points& points, const std::vector<Term>& terms);

// For each point i the most by which sum over j of coefficients[j] K_ij, summed in any order from that matrix, can be
// off (docs/certificate.md has the derivation of each kernel's bound).
Vector rounding(const Points& points, const std::vector<Term>& terms, const Vector& coefficients);

// out[y][x] += sum over j of coefficients[j] k(x_j, (left + x width/(columns - 1), top + y height/(rows - 1))). With
// one coordinate there is one row.
struct Grid {
    double left, top, width, height;
    std::size_t columns, rows;
};
void add_to_grid(const Points& points, const std::vector<Term>& terms, const Vector& coefficients, const Grid& grid,
                 double* out);

}  // namespace mercer::page
