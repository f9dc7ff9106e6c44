#include "solve/free_system.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "algebra/cholesky.hpp"
#include "algebra/infinity.hpp"
#include "simd/level.hpp"

namespace mercer {
namespace {

// The first solve's residual, as a share of the right side, above which the inverse is computed afresh: one refinement
// then leaves less than its square, about the rounding of float64.
constexpr double kDriftedShare = 1e-7;
// A residual of this share of the right side is rounding.
constexpr double kRoundingShare = 1e-14;
constexpr int kRefinements = 3;
// Solves that are not checked after one that needed no refinement.
constexpr int kUnchecked = 3;
// The next solve is checked if the others leave less than this share of a new variable's diagonal.
constexpr double kSmallPivot = 1e-6;
// Up to this many variables elimination with row pivots is as fast as a Cholesky factor, and needs no second attempt.
constexpr std::size_t kFewVariables = 64;

double largest(const Doubles& x) {
    double most = 0.0;
    for (const double value : x) {
        if (std::isnan(value)) return value;
        most = std::max(most, std::abs(value));
    }
    return most;
}

bool all_within(std::size_t columns, const double* worst, const double* limit) {
    for (std::size_t c = 0; c < columns; ++c) {
        if (!(worst[c] <= limit[c])) return false;
    }
    return true;
}

}  // namespace

void FreeSystem::multiply(const Doubles& matrix, std::size_t columns, const Doubles* x, Doubles* out,
                          const Level& level) const {
    const auto n = static_cast<std::int64_t>(size_);
    for (std::size_t c = 0; c < columns; ++c) out[c].resize(size_);
    for (std::size_t i = 0; i < size_; ++i) {
        const double* const row = matrix.data() + i * stride_;
        for (std::size_t c = 0; c < columns; ++c) out[c][i] = level.linear_double.dot(row, x[c].data(), n);
    }
}

void FreeSystem::residuals(std::size_t columns, const Doubles* right, const Doubles* x, Doubles* out, double* worst,
                           const Level& level) const {
    multiply(matrix_, columns, x, out, level);
    for (std::size_t c = 0; c < columns; ++c) {
        for (std::size_t i = 0; i < size_; ++i) out[c][i] = right[c][i] - out[c][i];
        worst[c] = largest(out[c]);
    }
}

bool FreeSystem::solve(std::size_t columns, const Doubles* right, Doubles* x, const Threads& threads,
                       const double* enough) {
    const Level& level = threads.level;
    if (n_free() == 0) {
        for (std::size_t c = 0; c < columns; ++c) x[c].assign(size_, 0.0);
        return true;
    }
    multiply(inverse_, columns, right, x, level);
    if (enough != nullptr && unchecked_ > 0) {
        --unchecked_;
        return true;
    }
    double limit[2], drifted[2], worst[2], after[2];
    for (std::size_t c = 0; c < columns; ++c) {
        const double size = largest(right[c]);
        limit[c] = enough == nullptr ? kRoundingShare * size : std::max(enough[c], 0.1 * kRoundingShare * size);
        drifted[c] = kDriftedShare * size;
    }
    Doubles left[2], step[2], rest[2];
    residuals(columns, right, x, left, worst, level);
    if (!all_within(columns, worst, drifted)) {
        if (!refactor(threads)) return false;
        multiply(inverse_, columns, right, x, level);
        residuals(columns, right, x, left, worst, level);
    }
    unchecked_ = all_within(columns, worst, limit) ? kUnchecked : 0;
    for (int k = 0; k < kRefinements && !all_within(columns, worst, limit); ++k) {
        multiply(inverse_, columns, left, step, level);
        for (std::size_t c = 0; c < columns; ++c) {
            for (std::size_t i = 0; i < size_; ++i) step[c][i] += x[c][i];
        }
        residuals(columns, right, step, rest, after, level);
        bool goes_on = false;
        for (std::size_t c = 0; c < columns; ++c) {
            if (!(after[c] < worst[c])) continue;
            goes_on = goes_on || after[c] < 0.5 * worst[c];
            std::swap(x[c], step[c]);
            std::swap(left[c], rest[c]);
            worst[c] = after[c];
        }
        if (!goes_on) break;
    }
    for (std::size_t c = 0; c < columns; ++c) {
        if (!std::isfinite(worst[c])) return false;
    }
    return true;
}

void FreeSystem::reserve(std::size_t size) {
    if (size <= stride_) return;
    const std::size_t stride = std::max<std::size_t>(32, 2 * size);
    Doubles matrix(stride * stride, 0.0), inverse(stride * stride, 0.0);
    for (std::size_t i = 0; stride_ > 0 && i < size_; ++i) {
        std::copy_n(matrix_.data() + i * stride_, size_, matrix.data() + i * stride);
        std::copy_n(inverse_.data() + i * stride_, size_, inverse.data() + i * stride);
    }
    matrix_ = std::move(matrix);
    inverse_ = std::move(inverse);
    stride_ = stride;
}

bool FreeSystem::fill(const Doubles& matrix, std::size_t n, const Threads& threads) {
    size_ = first_;
    reserve(first_ + n);
    size_ = first_ + n;
    unchecked_ = 0;
    if (first_ == 1) {
        matrix_[0] = 0.0;
        for (std::size_t i = 1; i < size_; ++i) matrix_[i] = matrix_[i * stride_] = border_;
    }
    for (std::size_t i = 0; i < n; ++i) {
        std::copy_n(matrix.data() + i * n, n, matrix_.data() + (i + first_) * stride_ + first_);
    }
    return n == 0 || refactor(threads);
}

// The inverse += factor a a'.
void FreeSystem::add_outer(const Doubles& a, double factor, const Level& level) {
    const auto n = static_cast<std::int64_t>(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
        level.linear_double.add(inverse_.data() + i * stride_, a.data(), factor * a[i], n);
    }
}

bool FreeSystem::add(const Doubles& column, double diagonal, const Doubles* known, const Threads& threads) {
    Doubles z;
    if (n_free() > 0) {
        if (known != nullptr) {
            z = *known;
        } else if (!solve(1, &column, &z, threads)) {
            return false;
        }
    }
    reserve(size_ + 1);
    const std::size_t m = size_;
    for (std::size_t i = 0; i < m; ++i) matrix_[m * stride_ + i] = matrix_[i * stride_ + m] = column[i];
    matrix_[m * stride_ + m] = diagonal;
    ++size_;
    if (m == first_) {
        if (first_ == 1) {
            matrix_[0] = 0.0;
            inverse_[0] = -diagonal / border_ / border_;
            inverse_[1] = inverse_[stride_] = 1.0 / border_;
            inverse_[stride_ + 1] = 0.0;
            return true;
        }
        inverse_[0] = 1.0 / diagonal;
        return std::isfinite(inverse_[0]);
    }
    const double left =
        diagonal - threads.level.linear_double.dot(column.data(), z.data(), static_cast<std::int64_t>(m));
    if (left == 0.0 || !std::isfinite(left)) return false;
    if (left < kSmallPivot * diagonal) unchecked_ = 0;
    add_outer(z, 1.0 / left, threads.level);
    for (std::size_t i = 0; i < m; ++i) inverse_[i * stride_ + m] = inverse_[m * stride_ + i] = -z[i] / left;
    inverse_[m * stride_ + m] = 1.0 / left;
    return true;
}

void FreeSystem::remove(std::size_t k, const Level& level) {
    k += first_;
    const std::size_t last = size_ - 1;
    if (n_free() > 1) {
        Doubles a(size_);
        std::copy_n(inverse_.data() + k * stride_, size_, a.data());
        add_outer(a, -1.0 / a[k], level);
    }
    for (Doubles* const matrix : {&matrix_, &inverse_}) {
        double* const values = matrix->data();
        std::copy_n(values + last * stride_, size_, values + k * stride_);
        for (std::size_t i = 0; i < size_; ++i) values[i * stride_ + k] = values[i * stride_ + last];
        values[k * stride_ + k] = values[last * stride_ + last];
    }
    --size_;
}

Doubles FreeSystem::distances() const {
    if (first_ == 1 && n_free() == 1) return {kInfinity};
    Doubles out(n_free());
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = 1.0 / inverse_[(i + first_) * (stride_ + 1)];
    return out;
}

Doubles FreeSystem::moves() const {
    Doubles out(n_free());
    for (std::size_t i = 0; i < out.size(); ++i) {
        const double* const row = inverse_.data() + (i + first_) * stride_;
        double squares = 0.0;
        for (std::size_t j = first_; j < size_; ++j) squares += row[j] * row[j];
        out[i] = std::sqrt(squares) / std::abs(row[i + first_]);
    }
    return out;
}

bool FreeSystem::refactor(const Threads& threads) {
    ++refactorisations_;
    const bool many = n_free() > kFewVariables;
    return (many && invert_by_cholesky(threads)) || invert_by_elimination(threads.poll);
}

// With an equality, B = K_FF + diag d_F + mu 11' is positive definite exactly if M is not singular. With P its inverse,
// q = P1 and s = 1'q,  M^-1 = [1/mu - 1/(s mu^2)  q'/(s mu);  q/(s mu)  P - qq'/s].
bool FreeSystem::invert_by_cholesky(const Threads& threads) {
    const std::size_t n = n_free();
    const auto count = static_cast<std::int64_t>(n);
    Doubles factor(n * n), inverse(n * n, 0.0);
    for (std::size_t i = 0; i < n; ++i) {
        const double* const row = matrix_.data() + (i + first_) * stride_ + first_;
        for (std::size_t j = 0; j < n; ++j) factor[i * n + j] = row[j] + border_;
        inverse[i * n + i] = 1.0;
    }
    if (cholesky(factor.data(), count, count, threads) != -1) return false;
    cholesky_solve(factor.data(), count, count, inverse.data(), count, threads);
    Doubles q(n, 0.0);
    double s = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < n; ++j) q[i] += inverse[i * n + j];
        s += q[i];
    }
    if (!std::isfinite(s) || (first_ == 1 && !(s > 0.0))) return false;
    for (std::size_t i = 0; i < n; ++i) {
        double* const row = inverse_.data() + (i + first_) * stride_ + first_;
        const double share = first_ == 1 ? q[i] / s : 0.0;
        for (std::size_t j = 0; j < n; ++j) row[j] = 0.5 * (inverse[i * n + j] + inverse[j * n + i]) - share * q[j];
        if (first_ == 1) inverse_[i + 1] = inverse_[(i + 1) * stride_] = share / border_;
    }
    if (first_ == 1) inverse_[0] = (1.0 - 1.0 / (s * border_)) / border_;
    return true;
}

bool FreeSystem::invert_by_elimination(Poll& poll) {
    const std::size_t m = size_;
    Doubles a(m * m), inverse(m * m, 0.0);
    for (std::size_t i = 0; i < m; ++i) {
        std::copy_n(matrix_.data() + i * stride_, m, a.data() + i * m);
        inverse[i * m + i] = 1.0;
    }
    for (std::size_t k = 0; k < m; ++k) {
        poll.check();
        std::size_t pivot = k;
        for (std::size_t i = k + 1; i < m; ++i) {
            if (std::abs(a[i * m + k]) > std::abs(a[pivot * m + k])) pivot = i;
        }
        const double value = a[pivot * m + k];
        if (!std::isfinite(value) || value == 0.0) return false;
        for (std::size_t j = 0; j < m; ++j) {
            std::swap(a[k * m + j], a[pivot * m + j]);
            std::swap(inverse[k * m + j], inverse[pivot * m + j]);
        }
        for (std::size_t j = 0; j < m; ++j) {
            a[k * m + j] /= value;
            inverse[k * m + j] /= value;
        }
        for (std::size_t i = 0; i < m; ++i) {
            const double factor = a[i * m + k];
            if (i == k || factor == 0.0) continue;
            for (std::size_t j = k; j < m; ++j) a[i * m + j] -= factor * a[k * m + j];
            for (std::size_t j = 0; j < m; ++j) inverse[i * m + j] -= factor * inverse[k * m + j];
        }
    }
    for (std::size_t i = 0; i < m; ++i) {
        for (std::size_t j = 0; j < m; ++j) {
            inverse_[i * stride_ + j] = 0.5 * (inverse[i * m + j] + inverse[j * m + i]);
        }
    }
    return true;
}

}  // namespace mercer
