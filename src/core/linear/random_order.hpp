// Random numbers to shuffle rows with.
#pragma once

#include <cstdint>
#include <limits>

#include "algebra/splitmix.hpp"

namespace mercer {

// A number in [0, end). Below 2^32 by the high half of a product, whose bias of 2^-32 does not matter for an order.
inline std::int64_t random_below(std::uint64_t* state, std::int64_t end) {
    const std::uint64_t r = scramble(*state += kGolden);
    if (end <= std::numeric_limits<std::uint32_t>::max()) {
        return static_cast<std::int64_t>(((r >> 32) * static_cast<std::uint64_t>(end)) >> 32);
    }
    return static_cast<std::int64_t>(r % static_cast<std::uint64_t>(end));
}

}  // namespace mercer
