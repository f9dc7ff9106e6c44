// The widest vectors this translation unit was compiled for, behind one spelling: a Vec<T> of lanes<T> elements.
// Comparisons yield masks and `mask ? a : b` selects, for vectors as for scalars, so a compiler without vector
// extensions gets the same loops on single elements. Everything here has internal linkage: the linker must not choose a
// function compiled for AVX for code that runs on older processors.
#pragma once

#include <cstdint>
#include <type_traits>

#include "algebra/arithmetic.hpp"

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#elif defined(MERCER_NEON)
#include <arm_neon.h>
#endif

// The vector extensions of GCC and clang. clang-cl, the clang that builds for Windows, does not define __GNUC__.
#if defined(__GNUC__) || defined(__clang__)
#define MERCER_VECTORS 1
#endif

namespace mercer {
namespace {

// An integer as wide as T: the type of its indices and masks.
template <class T>
using IndexOf = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

#if defined(MERCER_VECTORS)

#define MERCER_INLINE inline __attribute__((always_inline))

#if defined(__AVX512F__)
constexpr int kBytes = 64;
#elif defined(__AVX2__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif

template <class T>
struct VecOf {
    typedef T type __attribute__((vector_size(kBytes)));
};
template <class T>
using Vec = typename VecOf<T>::type;
template <class T>
constexpr int lanes = kBytes / static_cast<int>(sizeof(T));

template <class T>
inline Vec<T> load(const T* from) {
    Vec<T> v;
    __builtin_memcpy(&v, from, sizeof v);
    return v;
}

template <class T>
inline void store(T* to, Vec<T> v) {
    __builtin_memcpy(to, &v, sizeof v);
}

template <class T>
inline Vec<T> iota() {
    Vec<T> v;
    for (int i = 0; i < lanes<T>; ++i) v[i] = static_cast<T>(i);
    return v;
}

template <class T>
inline Vec<T> splat(T x) {
    return x - Vec<T>{};  // not Vec<T>{} + x, which would turn -0.0 into 0.0
}

// op over all N lanes, by halves.
template <class T, int N, class V, class Op>
inline T fold(V v, Op op) {
    if constexpr (N > 16 / static_cast<int>(sizeof(T))) {
        typedef T Half __attribute__((vector_size(sizeof(V) / 2)));
        Half a, b;
        __builtin_memcpy(&a, &v, sizeof a);
        __builtin_memcpy(&b, reinterpret_cast<const char*>(&v) + sizeof a, sizeof b);
        return fold<T, N / 2>(static_cast<Half>(op(a, b)), op);
    } else {
        T all = v[0];
        for (int i = 1; i < N; ++i) all = op(all, T{v[i]});
        return all;
    }
}

// Rows of K come from the second or third cache, and hardware prefetchers stop at page ends. Half a kilobyte ahead made
// an SMO step 10 % faster at q = 2048. Beyond the end of the array it does nothing.
template <class T>
inline void prefetch(const T* row) {
    __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(row) + 512));
}

// With 14 correct bits on AVX-512: enough to choose a variable, not to compute a step.
template <class T>
inline Vec<T> roughly_divided(Vec<T> a, Vec<T> b) {
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == sizeof(float)) {
        return a * (Vec<T>)_mm512_maskz_rcp14_ps(0xffff, (__m512)b);
    } else {
        return a * (Vec<T>)_mm512_maskz_rcp14_pd(0xff, (__m512d)b);
    }
#else
    return a / b;
#endif
}

// total += v in float64, lane by lane.
template <class T>
inline void add_to(double* total, Vec<T> v) {
    typedef double Wide __attribute__((vector_size(sizeof(double) * static_cast<unsigned>(lanes<T>))));
    Wide sum;
    __builtin_memcpy(&sum, total, sizeof sum);
    sum += __builtin_convertvector(v, Wide);
    __builtin_memcpy(total, &sum, sizeof sum);
}

// lanes<double> elements as float64.
template <class T>
inline Vec<double> widened(const T* from) {
    typedef T Few __attribute__((vector_size(sizeof(T) * static_cast<unsigned>(lanes<double>))));
    Few few;
    __builtin_memcpy(&few, from, sizeof few);
    return __builtin_convertvector(few, Vec<double>);
}

#else

#define MERCER_INLINE inline

template <class T>
using Vec = T;
template <class T>
constexpr int lanes = 1;

template <class T>
inline Vec<T> load(const T* from) {
    return *from;
}

template <class T>
inline void store(T* to, Vec<T> v) {
    *to = v;
}

template <class T>
inline Vec<T> iota() {
    return T{0};
}

template <class T>
inline Vec<T> splat(T x) {
    return x;
}

template <class T, int N, class V, class Op>
inline T fold(V v, Op) {
    return v;
}

template <class T>
inline void prefetch(const T*) {}

template <class T>
inline Vec<T> roughly_divided(Vec<T> a, Vec<T> b) {
    return a / b;
}

template <class T>
inline void add_to(double* total, Vec<T> v) {
    *total += static_cast<double>(v);
}

template <class T>
inline Vec<double> widened(const T* from) {
    return static_cast<double>(*from);
}

#endif

// The same bits as integers, and back.
template <class T>
inline Vec<IndexOf<T>> bits(Vec<T> v) {
    return __builtin_bit_cast(Vec<IndexOf<T>>, v);
}

template <class T>
inline Vec<T> bits_as(Vec<IndexOf<T>> v) {
    return __builtin_bit_cast(Vec<T>, v);
}

// The sum modulo 2^w of integers of w bits. Signed addition that overflows would be undefined.
template <class T>
inline Vec<IndexOf<T>> wrapping_sum(Vec<IndexOf<T>> a, Vec<IndexOf<T>> b) {
    using Unsigned = Vec<std::make_unsigned_t<IndexOf<T>>>;
    return __builtin_bit_cast(Vec<IndexOf<T>>, __builtin_bit_cast(Unsigned, a) + __builtin_bit_cast(Unsigned, b));
}

// The first n < lanes elements and zeros: for the ends of rows that are not padded.
template <class T>
inline Vec<T> load_first(const T* from, int n) {
    T padded[lanes<T>] = {};
    for (int i = 0; i < n; ++i) padded[i] = from[i];
    return load(padded);
}

// b where a is not a number: the semantics of the instructions, which compilers do not use for a conditional.
template <class T>
inline Vec<T> larger(Vec<T> a, Vec<T> b) {
#if defined(__AVX512F__)
    if constexpr (std::is_same_v<T, float>) return (Vec<T>)_mm512_maskz_max_ps(0xffff, (__m512)a, (__m512)b);
    if constexpr (std::is_same_v<T, double>) return (Vec<T>)_mm512_maskz_max_pd(0xff, (__m512d)a, (__m512d)b);
#elif defined(__AVX2__)
    if constexpr (std::is_same_v<T, float>) return (Vec<T>)_mm256_max_ps((__m256)a, (__m256)b);
    if constexpr (std::is_same_v<T, double>) return (Vec<T>)_mm256_max_pd((__m256d)a, (__m256d)b);
#endif
    return a > b ? a : b;
}

template <class T>
inline Vec<T> smaller(Vec<T> a, Vec<T> b) {
#if defined(__AVX512F__)
    if constexpr (std::is_same_v<T, float>) return (Vec<T>)_mm512_maskz_min_ps(0xffff, (__m512)a, (__m512)b);
    if constexpr (std::is_same_v<T, double>) return (Vec<T>)_mm512_maskz_min_pd(0xff, (__m512d)a, (__m512d)b);
#elif defined(__AVX2__)
    if constexpr (std::is_same_v<T, float>) return (Vec<T>)_mm256_min_ps((__m256)a, (__m256)b);
    if constexpr (std::is_same_v<T, double>) return (Vec<T>)_mm256_min_pd((__m256d)a, (__m256d)b);
#endif
    return a < b ? a : b;
}

// v as a rounded value: contraction cannot fuse the product behind it with a sum.
template <class V>
inline V rounded(V v) {
#if defined(MERCER_VECTORS) && defined(__x86_64__)
    __asm__("" : "+x"(v));
    return v;
#elif defined(MERCER_VECTORS) && defined(__aarch64__)
    __asm__("" : "+w"(v));
    return v;
#else
    const volatile V kept = v;
    return kept;
#endif
}

// a b - product, exactly, where `product` is a b as rounded.
inline Vec<double> product_error(Vec<double> a, Vec<double> b, Vec<double> product) {
#if defined(__AVX512F__)
    return (Vec<double>)_mm512_fmsub_pd((__m512d)a, (__m512d)b, (__m512d)product);
#elif defined(__FMA__)
    return (Vec<double>)_mm256_fmsub_pd((__m256d)a, (__m256d)b, (__m256d)product);
#elif defined(MERCER_NEON)
    return (Vec<double>)vfmaq_f64((float64x2_t)-product, (float64x2_t)a, (float64x2_t)b);
#else
    // Dekker: with a and b split into halves of 26 bits, every product of halves is exact.
    constexpr double kSplit = 134217729.0;  // 2^27 + 1
    const Vec<double> c = rounded(kSplit * a), d = rounded(kSplit * b);
    const Vec<double> a1 = c - (c - a), a2 = a - a1, b1 = d - (d - b), b2 = b - b1;
    return ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2;
#endif
}

// The largest value so far in each lane, with the lowest index at which it was seen.
template <class T>
struct Largest {
    using Index = IndexOf<T>;
    using Mask = Vec<Index>;  // compilers disagree whether a comparison of doubles is a vector of long or long long
    Vec<T> value;
    Vec<Index> block = splat<Index>(-1);  // offset of the vector it came from; the lane is implied

    explicit Largest(T start) : value(splat<T>(start)) {}

    void offer(Vec<T> x, std::int64_t offset) {
        const auto better = (Mask)(x > value);
        value = better ? x : value;
        block = better ? splat<Index>(static_cast<Index>(offset)) : block;
    }

    // `later` was offered other vectors. In one lane the lower block is the lower index.
    void merge(const Largest& later) {
        const auto equal = (Mask)(later.value == value) & (Mask)(later.block < block);
        const auto better = (Mask)(later.value > value) | equal;
        value = better ? later.value : value;
        block = better ? later.block : block;
    }

    // Of equal values the lowest index wins, whatever its lane; -1 where nothing was larger than the start.
    void best(T* top, std::int64_t* where) const {
        *top = fold<T, lanes<T>>(value, [](auto a, auto b) { return a > b ? a : b; });
        constexpr auto none = static_cast<Index>(sizeof(Index) == 4 ? INT32_MAX : INT64_MAX);
        const auto candidate = (Mask)(value == splat<T>(*top)) & (Mask)(block >= splat<Index>(0));
        const Vec<Index> index = candidate ? block + iota<Index>() : splat<Index>(none);
        const Index first = fold<Index, lanes<T>>(index, [](auto a, auto b) { return a < b ? a : b; });
        *where = first == none ? -1 : static_cast<std::int64_t>(first);
    }
};

}  // namespace
}  // namespace mercer
