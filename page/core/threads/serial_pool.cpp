// The browser's stand-in for src/core/threads/pool.cpp: the caller does all the work.
#include "threads/pool.hpp"

namespace mercer::detail {

void parallel_for(std::int64_t chunks, int, void (*run)(void*, std::int64_t), void* context, Poll&) {
    for (std::int64_t c = 0; c < chunks; ++c) run(context, c);
}

}  // namespace mercer::detail
