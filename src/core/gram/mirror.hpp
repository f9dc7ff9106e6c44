// The upper triangle of a symmetric matrix from its lower one.
#pragma once

#include <algorithm>
#include <cstdint>

#include "algebra/rounding.hpp"
#include "simd/level_entries.hpp"
#include "threads/pool.hpp"
#include "threads/threads.hpp"

namespace mercer {

// Copying an element across the diagonal costs what computing it with a dozen features does.
inline bool mirror_pays(std::int64_t features) { return features >= 24; }

template <class T>
void mirror(T* matrix, std::int64_t n, std::int64_t stride, const Threads& threads) {
    constexpr std::int64_t kBlock = 64;  // a multiple of every level's vectors; two blocks fit the first-level cache
    const auto transpose = cholesky_tiles_of<T>(threads.level).transpose;
    constexpr std::int64_t kAlone = 1024;  // up to this size it takes less time than a second thread needs to wake
    const std::int64_t blocks = ceil_div(n, kBlock);
    parallel_for(
        blocks, n > kAlone ? threads.count : 1,
        [&](std::int64_t top) {
            const std::int64_t i0 = top * kBlock, i1 = std::min(n, i0 + kBlock);
            for (std::int64_t i = i0; i < i1; ++i) {
                for (std::int64_t j = i + 1; j < i1; ++j) matrix[i * stride + j] = matrix[j * stride + i];
            }
            for (std::int64_t j = i1; j < n; j += kBlock) {
                const std::int64_t rows = std::min(kBlock, n - j);
                transpose(matrix + j * stride + i0, stride, rows, i1 - i0, matrix + i0 * stride + j, stride);
            }
        },
        threads.poll);
}

}  // namespace mercer
