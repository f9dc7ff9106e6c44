// Random numbers by counter: the k-th of a stream is a function of (seed, stream, k) alone, so that a run can be cut
// into pieces, saved and continued, and is the same on every platform.
#pragma once

#include <cstdint>

namespace mercer {

// The finaliser of splitmix64 (Steele, Lea, Flood 2014).
inline std::uint64_t scramble(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

class CounterRandom {
public:
    CounterRandom(std::uint64_t seed, std::uint64_t stream)
        : key_(scramble(scramble(seed + kGolden) + stream * kGolden)) {}

    std::uint64_t bits(std::uint64_t k) const { return scramble(key_ + (k + 1) * kGolden); }

    // In [0, 1), a multiple of 2^-53.
    double uniform(std::uint64_t k) const { return static_cast<double>(bits(k) >> 11) * 0x1p-53; }

private:
    static constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15u;
    std::uint64_t key_;
};

}  // namespace mercer
