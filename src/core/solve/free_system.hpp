// The equations of the free variables of an active set, kept solvable while variables come and go:
//
//     M = [0 mu 1'; mu 1 K_FF + diag d_F],
//
// mu the size of K, so that M is well scaled; without an equality K_FF + diag d_F alone. The inverse is changed by one
// row and column in O(|F|^2), and every solve is refined against M itself, so that rounding does not build up. Where
// refinement shows that the inverse has drifted, it is computed afresh.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "threads/threads.hpp"

namespace mercer {

using Doubles = std::vector<double>;

class FreeSystem {
public:
    // `border` is mu, or 0 without an equality.
    explicit FreeSystem(double border) : border_(border), first_(border != 0.0 ? 1 : 0), size_(first_) {}

    std::size_t first() const { return first_; }  // the place of the first variable
    std::size_t size() const { return size_; }
    std::size_t n_free() const { return size_ - first_; }
    double entry(std::size_t i, std::size_t j) const { return matrix_[i * stride_ + j]; }
    std::int64_t refactorisations() const { return refactorisations_; }

    // Replaces all variables by n others with this n x n matrix K_FF + diag d_F; false if M is singular.
    bool fill(const Doubles& matrix, std::size_t n, const Threads& threads);

    // x = M^-1 right for one or two columns, to rounding or to residuals of `enough`, one for each column. Where such a
    // solve needed no refinement, the next few are not checked. False if M is singular.
    bool solve(std::size_t columns, const Doubles* right, Doubles* x, const Threads& threads,
               const double* enough = nullptr);

    // Adds the variable with this column of M (mu first) and diagonal; z is M^-1 column where that is known. False if M
    // is singular.
    bool add(const Doubles& column, double diagonal, const Doubles* z, const Threads& threads);

    // Removes the k-th free variable; the last one takes its place.
    void remove(std::size_t k, const Level& level);

    // For each free variable the squared distance of its image from the affine hull of the others (without an equality:
    // from their span); infinite where there are none.
    Doubles distances() const;

    // For each free variable, how far all of them move together to keep the others' equations if it is moved by 1.
    Doubles moves() const;

private:
    double border_;
    std::size_t first_, size_, stride_ = 0;
    Doubles matrix_, inverse_;
    std::int64_t refactorisations_ = 0;
    int unchecked_ = 0;  // solves that need no check

    void reserve(std::size_t size);
    bool refactor(const Threads& threads);
    bool invert_by_cholesky(const Threads& threads);
    bool invert_by_elimination(Poll& poll);
    void multiply(const Doubles& matrix, std::size_t columns, const Doubles* x, Doubles* out, const Level& level) const;
    void residuals(std::size_t columns, const Doubles* right, const Doubles* x, Doubles* out, double* worst,
                   const Level& level) const;
    void add_outer(const Doubles& a, double factor, const Level& level);
};

}  // namespace mercer
