// The bound of what is not bounded.
#pragma once

#include <limits>

namespace mercer {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace mercer
