// The choice is made at the first use and kept.
#include "simd/dispatch.hpp"

#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace mercer {
namespace {

std::atomic<const Level*> chosen{nullptr};

const Level& choose() {
    const auto usable = levels();
    const char* forced = std::getenv("MERCER_SIMD");
    if (forced == nullptr || *forced == '\0') return *usable.back();
    std::string names;
    for (const Level* l : usable) {
        if (std::string(forced) == l->name) return *l;
        names += (names.empty() ? "" : ", ") + std::string(l->name);
    }
    throw std::invalid_argument("MERCER_SIMD='" + std::string(forced) +
                                "' is not an instruction set that this build and this processor share; available: " +
                                names + ". Choose one of them or unset the variable.");
}

}  // namespace

std::vector<const Level*> levels() {
    std::vector<const Level*> usable{&level_plain};
#if defined(MERCER_X86)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        usable.push_back(&level_avx2);
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
            usable.push_back(&level_avx512);
        }
    }
#endif
    return usable;
}

const Level& level() {
    const Level* current = chosen.load(std::memory_order_acquire);
    if (current == nullptr) {
        current = &choose();
        chosen.store(current, std::memory_order_release);
    }
    return *current;
}

}  // namespace mercer
