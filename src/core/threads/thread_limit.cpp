// The limit is one atomic; without one, every processor may be used.
#include "threads/thread_limit.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

namespace {
std::atomic<int> limit{0};
}

int mercer::thread_limit() { return limit.load(std::memory_order_relaxed); }

extern "C" int mercer_get_num_threads(void) {
    const int set = mercer::thread_limit();
    return set > 0 ? set : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

extern "C" void mercer_set_num_threads(int n) { limit.store(std::max(n, 0), std::memory_order_relaxed); }
