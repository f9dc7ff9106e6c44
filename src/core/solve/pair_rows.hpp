// The rows of one pair of blocks as steps want them: each is filled when it is first asked for, in memory that is reused
// for the next pair. What a row is filled with depends on the kind of samples.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "simd/padded.hpp"
#include "solve/pairs.hpp"

namespace mercer {

template <class T>
class PairRows : public RowSource<T> {
public:
    const T* row(std::int64_t i) final {
        T*& at = at_[static_cast<std::size_t>(i)];
        if (at == nullptr) {
            at = values_.data() + static_cast<std::int64_t>(asked_.size()) * stride_;
            asked_.push_back(i);
            fill(i, at);
        }
        return at;
    }
    double diagonal(std::int64_t i) const final { return diagonal_[sample(i)]; }

    const std::vector<std::int64_t>& asked() const { return asked_; }
    const T* rows() const { return values_.data(); }
    std::int64_t row_stride() const { return stride_; }

protected:
    // For pairs of at most so many variables, whose rows take at most so many elements together.
    PairRows(const BlockRows& blocks, const double* diagonal, std::int64_t variables, std::int64_t elements)
        : blocks_(blocks), diagonal_(diagonal), values_(elements), at_(static_cast<std::size_t>(variables)) {}
    ~PairRows() = default;

    void begin_rows(std::int64_t first, std::int64_t second, std::int64_t stride) {
        block_[0] = first;
        block_[1] = second;
        n_[0] = blocks_.size(first);
        n_[1] = blocks_.size(second);
        stride_ = stride;
        std::fill_n(at_.begin(), n_[0] + n_[1], nullptr);
        asked_.clear();
    }
    virtual void fill(std::int64_t i, T* to) = 0;

    // Which of the two blocks variable i belongs to, and where it stands there.
    int side(std::int64_t i) const { return i < n_[0] ? 0 : 1; }
    std::int64_t place(std::int64_t i) const { return side(i) == 0 ? i : i - n_[0]; }
    std::int64_t sample(std::int64_t i) const { return blocks_.rows(block_[side(i)])[place(i)]; }
    // Where the columns of a block begin in a row.
    std::int64_t offset(int side) const { return side == 0 ? 0 : n_[0]; }

    std::int64_t block_[2] = {}, n_[2] = {};  // the blocks of the pair, and their sizes

private:
    const BlockRows& blocks_;
    const double* const diagonal_;
    Padded<T> values_;
    std::vector<T*> at_;
    std::vector<std::int64_t> asked_;
    std::int64_t stride_ = 0;
};

}  // namespace mercer
