// Random numbers by counter: the k-th of a stream is a function of (seed, stream, k) alone, so that a run can be cut
// into pieces, saved and continued, and is the same on every platform.
#pragma once

#include <cstddef>
#include <cstdint>

#include "algebra/splitmix.hpp"

namespace mercer {

class CounterRandom {
public:
    CounterRandom(std::uint64_t seed, std::uint64_t stream)
        : key_(scramble(scramble(seed + kGolden) + stream * kGolden)) {}

    std::uint64_t bits(std::uint64_t k) const { return scramble(key_ + (k + 1) * kGolden); }

    void fill(std::uint64_t first, std::size_t count, std::uint64_t* out) const {
        for (std::size_t k = 0; k < count; ++k) out[k] = bits(first + k);
    }

    // In [0, 1), a multiple of 2^-53.
    double uniform(std::uint64_t k) const { return static_cast<double>(bits(k) >> 11) * 0x1p-53; }

private:
    std::uint64_t key_;
};

}  // namespace mercer
