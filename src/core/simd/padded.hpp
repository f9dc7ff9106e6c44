// An array that the loops of level.cpp may read by whole vectors.
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

// Arrays that the allocator would take from the system afresh each time lie on huge pages where there are any: writing to
// them first is then six times as fast.
inline constexpr std::size_t kHugePage = std::size_t{2} << 20, kHuge = std::size_t{32} << 20;

template <class T>
class Padded {
public:
    Padded() = default;
    explicit Padded(std::int64_t n) : size_(round_up(n, kPad)) {
        const auto bytes = static_cast<std::size_t>(size_) * sizeof(T);
        const std::size_t align = bytes >= kHuge ? kHugePage : std::size_t{kAlign};
        data_ = {static_cast<T*>(::operator new(bytes, std::align_val_t{align})), Free{align}};
#if defined(__linux__)
        if (align == kHugePage) madvise(data_.get(), bytes, MADV_HUGEPAGE);  // a wish: refusal costs speed alone
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
