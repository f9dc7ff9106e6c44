// splitmix64 (Steele, Lea, Flood 2014), a generator that is a counter and a function of it.
#pragma once

#include <cstdint>

namespace mercer {

// Increment of the counter: 2^64 over the golden ratio, odd.
inline constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15u;

// Its finaliser: a bijection in which every bit of x moves about half of the bits that come out.
inline std::uint64_t scramble(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

}  // namespace mercer
