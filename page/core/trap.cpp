// What the standard library calls where it cannot go on: without this it would bring along everything that prints.
#include <__verbose_abort>
#include <cstdlib>
#include <new>

_LIBCPP_BEGIN_NAMESPACE_STD
[[noreturn]] void __libcpp_verbose_abort(const char*, ...) { __builtin_trap(); }
_LIBCPP_END_NAMESPACE_STD

void* operator new(std::size_t size) {
    void* const memory = std::malloc(size == 0 ? 1 : size);
    if (memory == nullptr) __builtin_trap();
    return memory;
}
void* operator new(std::size_t size, std::align_val_t align) {
    const auto unit = static_cast<std::size_t>(align);
    void* const memory = std::aligned_alloc(unit, (size + unit) / unit * unit);
    if (memory == nullptr) __builtin_trap();
    return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
