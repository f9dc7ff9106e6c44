// Sparse rows laid out for coordinate steps: whole blocks of four entries, values in float64 beside their columns.
//
// Rows of text are short, and a visit spends more on branches than on arithmetic: a loop over whole blocks has one
// branch for four entries, and no remainder.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "algebra/rounding.hpp"
#include "threads/interrupt.hpp"
#include "threads/pool.hpp"

namespace mercer {

struct CsrBlock {
    double value[4];
    std::int32_t column[4];
    bool operator==(const CsrBlock&) const = default;
};

// The sums have names because the compiler keeps an array of them in memory.
inline double block_dot(const CsrBlock* block, std::int64_t blocks, const double* w) {
    double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
    for (const CsrBlock* end = block + blocks; block != end; ++block) {
        s0 += block->value[0] * w[block->column[0]];
        s1 += block->value[1] * w[block->column[1]];
        s2 += block->value[2] * w[block->column[2]];
        s3 += block->value[3] * w[block->column[3]];
    }
    return (s0 + s1) + (s2 + s3);
}

inline void block_add(const CsrBlock* block, std::int64_t blocks, double factor, double* w) {
    for (const CsrBlock* end = block + blocks; block != end; ++block) {
        w[block->column[0]] += factor * block->value[0];
        w[block->column[1]] += factor * block->value[1];
        w[block->column[2]] += factor * block->value[2];
        w[block->column[3]] += factor * block->value[3];
    }
}

// Made at the first call and kept: descent is called many times on the same rows.
class PackedCsr {
public:
    // Columns and rows must fit 32 bits.
    template <class Csr>
    static bool possible(const Csr& rows) {
        constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
        return rows.n < most && rows.d < most;
    }

    template <class Csr>
    const PackedCsr& of(const Csr& rows, int n_threads, Poll& poll) {
        const std::lock_guard lock(mutex_);
        if (starts_.empty()) pack(rows, n_threads, poll);
        return *this;
    }

    const CsrBlock* row(std::int64_t i) const { return blocks_.get() + starts_[static_cast<std::size_t>(i)]; }
    std::int32_t size(std::int64_t i) const {
        const auto at = static_cast<std::size_t>(i);
        return static_cast<std::int32_t>(starts_[at + 1] - starts_[at]);
    }

private:
    static constexpr std::int64_t kRowsPerChunk = 2048;

    template <class Csr>
    void pack(const Csr& rows, int n_threads, Poll& poll) {
        std::vector<std::int64_t> starts(static_cast<std::size_t>(rows.n) + 1);
        for (std::int64_t i = 0; i < rows.n; ++i) {
            const auto stored = static_cast<std::int64_t>(rows.ends[i]) - static_cast<std::int64_t>(rows.starts[i]);
            starts[static_cast<std::size_t>(i) + 1] = starts[static_cast<std::size_t>(i)] + (stored + 3) / 4;
        }
        blocks_.reset(new CsrBlock[static_cast<std::size_t>(starts.back())]);
        // Padding adds zero to a weight behind the last one.
        const auto nowhere = static_cast<std::int32_t>(rows.d);
        const auto pack_row = [&](std::int64_t i) {
            CsrBlock* to = blocks_.get() + starts[static_cast<std::size_t>(i)];
            const auto end = static_cast<std::int64_t>(rows.ends[i]);
            for (auto k = static_cast<std::int64_t>(rows.starts[i]); k < end; k += 4, ++to) {
                for (int l = 0; l < 4; ++l) {
                    const bool inside = k + l < end;
                    to->value[l] = inside ? static_cast<double>(rows.data[k + l]) : 0.0;
                    to->column[l] = inside ? static_cast<std::int32_t>(rows.indices[k + l]) : nowhere;
                }
            }
        };
        parallel_for_each(rows.n, kRowsPerChunk, n_threads, pack_row, poll);
        starts_ = std::move(starts);
    }

    std::mutex mutex_;
    std::vector<std::int64_t> starts_;  // of each row's blocks
    std::unique_ptr<CsrBlock[]> blocks_;
};

}  // namespace mercer
