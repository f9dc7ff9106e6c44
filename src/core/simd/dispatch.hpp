// Which instruction set to use.
#pragma once

#include <vector>

#include "simd/level.hpp"

namespace mercer {

// The levels of this build that this processor can run, fastest last.
std::vector<const Level*> levels();

// The fastest of them, or the one the environment variable MERCER_SIMD names; std::invalid_argument where it cannot be.
const Level& level();

}  // namespace mercer
