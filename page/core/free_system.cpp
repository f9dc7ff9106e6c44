#include "free_system.hpp"

#include <algorithm>
#include <cmath>

namespace mercer::page {
namespace {

// The first solve's residual, as a share of the right side, above which the inverse is computed afresh.
constexpr double kDriftedShare = 1e-7;
// A residual of this share of the right side is rounding.
constexpr double kRoundingShare = 1e-15;
constexpr int kRefinements = 3;

double largest(const Vector& x) {
    double most = 0.0;
    for (const double value : x) most = std::max(most, std::abs(value));
    return most;
}

}  // namespace

void FreeSystem::multiply(const Vector& matrix, const Vector& x, Vector* out) const {
    out->assign(size_, 0.0);
    for (std::size_t i = 0; i < size_; ++i) {
        const double* const row = matrix.data() + i * room_;
        double sum = 0.0;
        for (std::size_t j = 0; j < size_; ++j) sum += row[j] * x[j];
        (*out)[i] = sum;
    }
}

double FreeSystem::residual(const Vector& right, const Vector& x, Vector* out) const {
    multiply(matrix_, x, out);
    for (std::size_t i = 0; i < size_; ++i) (*out)[i] = right[i] - (*out)[i];
    return largest(*out);
}

bool FreeSystem::solve(const Vector& right, Vector* x) {
    x->assign(size_, 0.0);
    if (n_free() == 0) return true;
    const double size = largest(right);
    Vector left, step;
    multiply(inverse_, right, x);
    double worst = residual(right, *x, &left);
    if (!(worst <= kDriftedShare * size)) {
        if (!refactor()) return false;
        multiply(inverse_, right, x);
        worst = residual(right, *x, &left);
    }
    for (int k = 0; k < kRefinements && !(worst <= kRoundingShare * size); ++k) {
        multiply(inverse_, left, &step);
        Vector better = *x;
        for (std::size_t i = 0; i < size_; ++i) better[i] += step[i];
        Vector rest;
        const double after = residual(right, better, &rest);
        if (!(after < worst)) break;
        *x = std::move(better);
        left = std::move(rest);
        worst = after;
    }
    return std::isfinite(worst);
}

bool FreeSystem::add(const Vector& column, double diagonal) {
    Vector z;
    if (n_free() > 0 && !solve(column, &z)) return false;
    grow();
    const std::size_t m = size_;
    for (std::size_t i = 0; i < m; ++i) matrix_[m * room_ + i] = matrix_[i * room_ + m] = column[i];
    matrix_[m * room_ + m] = diagonal;
    ++size_;
    if (m == 1) {
        matrix_[0] = 0.0;
        matrix_[1] = matrix_[room_] = border_;
        inverse_[0] = -diagonal / border_ / border_;
        inverse_[1] = inverse_[room_] = 1.0 / border_;
        inverse_[room_ + 1] = 0.0;
        return true;
    }
    double left = diagonal;
    for (std::size_t i = 0; i < m; ++i) left -= column[i] * z[i];
    if (left == 0.0) return false;
    for (std::size_t i = 0; i < m; ++i) {
        const double share = z[i] / left;
        for (std::size_t j = 0; j < m; ++j) inverse_[i * room_ + j] += share * z[j];
        inverse_[i * room_ + m] = inverse_[m * room_ + i] = -share;
    }
    inverse_[m * room_ + m] = 1.0 / left;
    return true;
}

void FreeSystem::remove(std::size_t k) {
    k += 1;
    const std::size_t last = size_ - 1;
    if (n_free() > 1) {
        Vector a(size_);
        for (std::size_t i = 0; i < size_; ++i) a[i] = inverse_[i * room_ + k];
        const double pivot = a[k];
        for (std::size_t i = 0; i < size_; ++i) {
            const double share = -a[i] / pivot;
            for (std::size_t j = 0; j < size_; ++j) inverse_[i * room_ + j] += share * a[j];
        }
    }
    for (Vector* array : {&matrix_, &inverse_}) {
        Vector& of = *array;
        for (std::size_t j = 0; j < size_; ++j) of[k * room_ + j] = of[last * room_ + j];
        for (std::size_t i = 0; i < size_; ++i) of[i * room_ + k] = of[i * room_ + last];
        of[k * room_ + k] = of[last * room_ + last];
    }
    --size_;
}

// By elimination with row pivots.
bool FreeSystem::refactor() {
    const std::size_t m = size_;
    Vector a(m * m), inverse(m * m, 0.0);
    for (std::size_t i = 0; i < m; ++i) {
        for (std::size_t j = 0; j < m; ++j) a[i * m + j] = matrix_[i * room_ + j];
        inverse[i * m + i] = 1.0;
    }
    for (std::size_t k = 0; k < m; ++k) {
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
        for (std::size_t j = 0; j < m; ++j) inverse_[i * room_ + j] = 0.5 * (inverse[i * m + j] + inverse[j * m + i]);
    }
    return true;
}

void FreeSystem::grow() {
    if (size_ < room_) return;
    const std::size_t room = room_ == 0 ? 32 : 2 * room_;
    Vector matrix(room * room, 0.0), inverse(room * room, 0.0);
    for (std::size_t i = 0; room_ > 0 && i < size_; ++i) {
        for (std::size_t j = 0; j < size_; ++j) {
            matrix[i * room + j] = matrix_[i * room_ + j];
            inverse[i * room + j] = inverse_[i * room_ + j];
        }
    }
    matrix_ = std::move(matrix);
    inverse_ = std::move(inverse);
    room_ = room;
}

}  // namespace mercer::page
