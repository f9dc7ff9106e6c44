// The equations of the free variables, kept solvable while variables come and go (mercer/solvers/active_set/free_system.py):
//
//     M = [0 mu 1'; mu 1 K_FF],   mu the size of K.
//
// The inverse is changed by one row and column at a time; every solve is refined against M itself, and where that shows
// that the inverse has drifted, it is computed afresh.
#pragma once

#include <cstddef>
#include <vector>

namespace mercer::page {

using Vector = std::vector<double>;

class FreeSystem {
public:
    explicit FreeSystem(double border) : border_(border) {}

    std::size_t size() const { return size_; }
    std::size_t n_free() const { return size_ - 1; }
    double entry(std::size_t i, std::size_t j) const { return matrix_[i * room_ + j]; }

    // M^-1 right, to rounding; false if M is singular.
    bool solve(const Vector& right, Vector* x);

    // Lets in the variable with this column of M (mu first) and diagonal; false if M is singular.
    bool add(const Vector& column, double diagonal);

    // Lets go the k-th free variable; the last one takes its place.
    void remove(std::size_t k);

private:
    double border_;
    std::size_t size_ = 1, room_ = 0;
    Vector matrix_, inverse_;

    void grow();
    bool refactor();
    void multiply(const Vector& matrix, const Vector& x, Vector* out) const;
    double residual(const Vector& right, const Vector& x, Vector* out) const;
};

}  // namespace mercer::page
