// A thread pool whose caller never waits for a helper that has not yet claimed work.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "algebra/rounding.hpp"
#include "threads/interrupt.hpp"

namespace mercer {

namespace detail {
void parallel_for(std::int64_t chunks, int n_threads, void (*run)(void*, std::int64_t), void* context, Poll& poll);
}

// Calls fn(c) once for every c in [0, chunks), on the caller and at most n_threads - 1 helpers. An exception from a
// chunk or from the poll stops the rest and is rethrown here. Make chunks about a millisecond long: between two of them
// the caller polls and every thread looks at poll.stopped(). May be nested and called from many threads at once.
template <class F>
void parallel_for(std::int64_t chunks, int n_threads, F&& fn, Poll& poll) {
    using Fn = std::remove_reference_t<F>;
    detail::parallel_for(
        chunks, n_threads, [](void* f, std::int64_t c) { (*static_cast<Fn*>(f))(c); },
        const_cast<void*>(static_cast<const void*>(std::addressof(fn))), poll);
}

// Calls fn(i) once for every i in [0, n), `per_chunk` of them at a time.
template <class F>
void parallel_for_each(std::int64_t n, std::int64_t per_chunk, int n_threads, F&& fn, Poll& poll) {
    const auto run_chunk = [&](std::int64_t c) {
        for (std::int64_t i = c * per_chunk; i < std::min(n, (c + 1) * per_chunk); ++i) fn(i);
    };
    parallel_for(ceil_div(n, per_chunk), n_threads, run_chunk, poll);
}

// Helpers alive in this process; the tests ask.
int pool_helpers();

}  // namespace mercer
