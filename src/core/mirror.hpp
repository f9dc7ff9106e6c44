// The upper triangle of a symmetric matrix from its lower one.
#pragma once

#include <algorithm>
#include <cstdint>

#include "blocks.hpp"
#include "pool.hpp"

namespace mercer {

// Copying an element across the diagonal is not free: with 16 features it costs what computing the element does.
inline bool mirror_pays(std::int64_t features) { return features >= 32; }

template <class T>
void mirror(T* matrix, std::int64_t n, std::int64_t stride, const Threads& threads) {
    constexpr std::int64_t kBlock = 32;  // two blocks fit the first-level cache
    const std::int64_t blocks = (n + kBlock - 1) / kBlock;
    parallel_for(
        blocks, threads.count,
        [&](std::int64_t top) {
            const std::int64_t i0 = top * kBlock, i1 = std::min(n, i0 + kBlock);
            for (std::int64_t j0 = i0; j0 < n; j0 += kBlock) {
                const std::int64_t j1 = std::min(n, j0 + kBlock);
                for (std::int64_t i = i0; i < i1; ++i) {
                    for (std::int64_t j = std::max(j0, i + 1); j < j1; ++j) matrix[i * stride + j] = matrix[j * stride + i];
                }
            }
        },
        threads.poll);
}

}  // namespace mercer
