// An array that the loops of level.cpp may read by whole vectors.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "level.hpp"

namespace mercer {

template <class T>
class Padded {
public:
    Padded() = default;
    explicit Padded(std::int64_t n) : size_((n + kPad - 1) / kPad * kPad) {
        const auto bytes = static_cast<std::size_t>(size_) * sizeof(T);
        data_.reset(static_cast<T*>(::operator new(bytes, std::align_val_t{kAlign})));
    }
    Padded(std::int64_t n, T fill) : Padded(n) { std::fill_n(data_.get(), size_, fill); }

    T* data() { return data_.get(); }
    const T* data() const { return data_.get(); }
    T& operator[](std::int64_t i) { return data_[static_cast<std::size_t>(i)]; }
    const T& operator[](std::int64_t i) const { return data_[static_cast<std::size_t>(i)]; }
    std::int64_t size() const { return size_; }

private:
    struct Free {
        void operator()(T* p) const { ::operator delete(p, std::align_val_t{kAlign}); }
    };
    std::int64_t size_ = 0;
    std::unique_ptr<T[], Free> data_;
};

}  // namespace mercer
