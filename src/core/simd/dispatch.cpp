// The choice is made at the first use and kept.
#include "simd/dispatch.hpp"

#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <string>
#if defined(MERCER_X86)
#include <cpuid.h>
#endif

namespace mercer {
namespace {

#if defined(MERCER_X86)

// The vector instructions that the processor has and whose registers the operating system saves. By CPUID itself:
// clang-cl links without the library behind __builtin_cpu_supports. Bits are named as in Intel's manual, vol. 2A, CPUID.
struct Vectors {
    bool avx2 = false, avx512 = false;
};

bool has_all(unsigned word, unsigned bits) { return (word & bits) == bits; }

Vectors vectors_of_processor() {
    constexpr unsigned kFma = 1u << 12, kSavesRegisters = 1u << 27, kAvx = 1u << 28;  // leaf 1, ECX
    constexpr unsigned kAvx2 = 1u << 5;                                               // leaf 7, EBX
    constexpr unsigned kAvx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;           // F, DQ, BW, VL
    constexpr unsigned kRegisters256 = 1u << 1 | 1u << 2, kRegisters512 = 7u << 5;    // XCR0
    unsigned a = 0, b = 0, c = 0, d = 0;
    Vectors found;
    if (__get_cpuid(1, &a, &b, &c, &d) == 0 || !has_all(c, kFma | kSavesRegisters | kAvx)) return found;
    unsigned saved = 0, unused = 0;
    __asm__("xgetbv" : "=a"(saved), "=d"(unused) : "c"(0));
    if (!has_all(saved, kRegisters256) || __get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return found;
    found.avx2 = has_all(b, kAvx2);
    found.avx512 = found.avx2 && has_all(b, kAvx512) && has_all(saved, kRegisters512);
    return found;
}

#endif

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
    const Vectors found = vectors_of_processor();
    if (found.avx2) usable.push_back(&level_avx2);
    if (found.avx512) usable.push_back(&level_avx512);
#elif defined(MERCER_ARM64)
    usable.push_back(&level_neon);  // every 64-bit ARM processor has NEON with fused multiplication and addition
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
