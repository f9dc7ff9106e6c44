// How long sums are split. The bounds of mercer/places/rounding.py rest on these numbers, and Python reads them from here.
#pragma once

#include <cstdint>

namespace mercer {

// float32 sums run over this many features at a time, so that their rounding errors grow with the features in a run
// plus the number of runs, not with all features.
constexpr std::int64_t kRun = 64;

// Groups of rows per partial sum: rounding errors then grow with a thirty-second of the groups.
constexpr std::int64_t kGroupsPerSum = 32;

// Bytes of packed rows per block: it stays in the second-level cache while panels stream past it. A partial sum ends
// with its block.
constexpr std::int64_t kRowBlockBytes = 640 << 10;

}  // namespace mercer
