// Levels: plain is always there and first, the others are those that the compiler's own library finds, and the
// process-wide limit is what it was set to.
#include <cstring>
#include <string>
#include <vector>

#include "check.hpp"
#include "simd/dispatch.hpp"
#include "threads/thread_limit.hpp"

namespace {

std::vector<std::string> expected_levels() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (avx512) return {"plain", "avx2", "avx512"};
    if (avx2) return {"plain", "avx2"};
#elif defined(__aarch64__)
    return {"plain", "neon"};
#endif
    return {"plain"};
}

}  // namespace

void test_dispatch() {
    const auto usable = mercer::levels();
#if !defined(__APPLE__) || defined(__aarch64__)  // macOS on x86 saves AVX-512's registers only after their first use
    std::vector<std::string> names;
    for (const auto* level : usable) names.push_back(level->name);
    CHECK(names == expected_levels());
#endif
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
