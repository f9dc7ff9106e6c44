// Levels: plain is always there and first, and the process-wide limit is what it was set to.
#include <cstring>

#include "check.hpp"
#include "simd/dispatch.hpp"
#include "threads/thread_limit.hpp"

void test_dispatch() {
    const auto usable = mercer::levels();
    CHECK(!usable.empty());
    CHECK(std::strcmp(usable.front()->name, "plain") == 0);
    for (const auto* level : usable) CHECK(level->smo_float.update != nullptr && level->smo_double.update != nullptr);

    const int unlimited = mercer_get_num_threads();
    CHECK(unlimited >= 1);
    mercer_set_num_threads(3);
    CHECK(mercer_get_num_threads() == 3);
    mercer_set_num_threads(0);
    CHECK(mercer_get_num_threads() == unlimited);
}
