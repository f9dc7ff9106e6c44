// A thread pool whose caller never waits for a helper that has not yet claimed work.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

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

// Helpers alive in this process; the tests ask.
int pool_helpers();

}  // namespace mercer
