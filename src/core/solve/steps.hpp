// What the steps of smo.cpp and joint_ascent.cpp share.
#pragma once

#include <cstdint>

namespace mercer {

// Elements that steps touch between two polls: a few tenths of a millisecond.
inline constexpr std::int64_t kTouchedPerPoll = 1 << 20;

}  // namespace mercer
