// A hint to the processor that memory will be read soon.
#pragma once

#include <cstdint>

namespace mercer {

inline void prefetch([[maybe_unused]] const void* at, [[maybe_unused]] std::int64_t bytes = 1) {
#if defined(__GNUC__) || defined(__clang__)
    for (std::int64_t b = 0; b < bytes; b += 64) __builtin_prefetch(static_cast<const char*>(at) + b);
#endif
}

}  // namespace mercer
