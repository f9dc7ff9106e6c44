// Rows of a stored matrix for problems in which every sample has two variables: K beside itself, a row at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "simd/padded.hpp"
#include "solve/smo.hpp"

namespace mercer {

// Variables i and n + i belong to row i of the n x n matrix.
template <class T>
class TwinRows final : public RowSource<T> {
public:
    TwinRows(const T* kernel, std::ptrdiff_t stride, std::int64_t n)
        : kernel_(kernel), stride_(stride), n_(n), length_(round_up(2 * n, kPad)), at_(static_cast<std::size_t>(n)) {}

    const T* row(std::int64_t i) override {
        const std::int64_t r = i < n_ ? i : i - n_;
        Padded<T>& at = at_[static_cast<std::size_t>(r)];
        if (at.size() == 0) {
            at = Padded<T>(length_);
            std::copy_n(kernel_ + r * stride_, n_, at.data());
            std::copy_n(kernel_ + r * stride_, n_, at.data() + n_);
        }
        return at.data();
    }
    double diagonal(std::int64_t i) const override {
        const std::int64_t r = i < n_ ? i : i - n_;
        return static_cast<double>(kernel_[r * stride_ + r]);
    }

private:
    const T* const kernel_;
    const std::ptrdiff_t stride_;
    const std::int64_t n_, length_;
    std::vector<Padded<T>> at_;
};

}  // namespace mercer
