// An array that the loops of level.cpp may read by whole vectors: aligned, and padded to a multiple of kPad.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "algebra/rounding.hpp"
#include "simd/level.hpp"

namespace mercer {

// From kHugeBytes on malloc asks the system for fresh memory each time; on huge pages the first write to it is six
// times as fast.
inline constexpr std::size_t kHugePage = std::size_t{2} << 20, kHugeBytes = std::size_t{4} << 20;

template <class T>
class Padded {
public:
    Padded() = default;
    explicit Padded(std::int64_t n) : size_(round_up(n, kPad)) {
        const auto bytes = static_cast<std::size_t>(size_) * sizeof(T);
        const std::size_t align = bytes >= kHugeBytes ? kHugePage : std::size_t{kAlign};
        data_ = {static_cast<T*>(::operator new(bytes, std::align_val_t{align})), Free{align}};
#if defined(__linux__)
        if (align == kHugePage) madvise(data_.get(), bytes, MADV_HUGEPAGE);  // refusal only costs speed
#endif
    }
    Padded(std::int64_t n, T fill) : Padded(n) { std::fill_n(data_.get(), size_, fill); }

    T* data() { return data_.get(); }
    const T* data() const { return data_.get(); }
    T& operator[](std::int64_t i) { return data_[static_cast<std::size_t>(i)]; }
    const T& operator[](std::int64_t i) const { return data_[static_cast<std::size_t>(i)]; }
    std::int64_t size() const { return size_; }

private:
    struct Free {
        std::size_t align = kAlign;
        void operator()(T* p) const { ::operator delete(p, std::align_val_t{align}); }
    };
    std::int64_t size_ = 0;
    std::unique_ptr<T[], Free> data_;
};

}  // namespace mercer
