// Division of sizes, rounded up: how many chunks there are, and how much room whole tiles need.
#pragma once

#include <cstdint>

namespace mercer {

inline std::int64_t ceil_div(std::int64_t n, std::int64_t by) { return (n + by - 1) / by; }

inline std::int64_t round_up(std::int64_t n, std::int64_t multiple) { return ceil_div(n, multiple) * multiple; }

}  // namespace mercer
