// Sparse rows laid out for coordinate steps: whole blocks of four entries, values in float64 beside their columns.
//
// Rows of text are short, and branches cost a visit more than arithmetic: a loop over whole blocks has one for four entries and
// no rest to finish.
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
};

// Sums in named variables: as an array they would live in memory.
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

// Made when it is first asked for, then kept: descent is called many times on the same rows.
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
    template <class Csr>
    void pack(const Csr& rows, int n_threads, Poll& poll) {
        std::vector<std::int64_t> starts(static_cast<std::size_t>(rows.n) + 1);
        for (std::int64_t i = 0; i < rows.n; ++i) {
            const auto stored = static_cast<std::int64_t>(rows.ends[i]) - static_cast<std::int64_t>(rows.starts[i]);
            starts[static_cast<std::size_t>(i) + 1] = starts[static_cast<std::size_t>(i)] + (stored + 3) / 4;
        }
        blocks_.reset(new CsrBlock[static_cast<std::size_t>(starts.back())]);
        // Padding adds zero to a weight behind the last one, which nobody reads.
        const auto nowhere = static_cast<std::int32_t>(rows.d);
        constexpr std::int64_t kRows = 2048;
        parallel_for(
            ceil_div(rows.n, kRows), n_threads,
            [&](std::int64_t c) {
                for (std::int64_t i = c * kRows; i < rows.n && i < (c + 1) * kRows; ++i) {
                    const auto begin = static_cast<std::int64_t>(rows.starts[i]),
                               end = static_cast<std::int64_t>(rows.ends[i]);
                    CsrBlock* to = blocks_.get() + starts[static_cast<std::size_t>(i)];
                    std::int64_t k = begin;
                    for (; k + 4 <= end; k += 4, ++to) {
                        for (int l = 0; l < 4; ++l) {
                            to->value[l] = static_cast<double>(rows.data[k + l]);
                            to->column[l] = static_cast<std::int32_t>(rows.indices[k + l]);
                        }
                    }
                    if (k == end) continue;
                    *to = CsrBlock{{}, {nowhere, nowhere, nowhere, nowhere}};
                    for (int l = 0; k < end; ++k, ++l) {
                        to->value[l] = static_cast<double>(rows.data[k]);
                        to->column[l] = static_cast<std::int32_t>(rows.indices[k]);
                    }
                }
            },
            poll);
        starts_ = std::move(starts);
    }

    std::mutex mutex_;
    std::vector<std::int64_t> starts_;  // of each row's blocks
    std::unique_ptr<CsrBlock[]> blocks_;
};

}  // namespace mercer
