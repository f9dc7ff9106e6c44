// What is summed over the entries that two sparse samples have in common, plainly or in doubled precision, and how the
// sum becomes a kernel value. For level.cpp only.
//
// The absolute distance is a sum over common entries too: |a - b|_1 = |a|_1 + |b|_1 - 2 s, where s adds min(|a_k|,
// |b_k|) over the entries whose signs agree. So entries that only one of two samples has count in its norm alone.
//
// Doubled precision is for samples whose norms are so large that x.z - norms cancels: n terms t_k are collected
// (algebra/doubled.hpp), so that with u = 2^-53, |high + low - sum t| <= (n u / (1 - n u))^2 sum |t|. The samples are neither centred nor scaled, so that every term is one of the data; a sample's norm is such a pair.
// The exponent of the Gaussian and the Laplacian, x = dot - norm - norm' (or 2 s - norm - norm'), is added up exactly
// except for the low parts, so that before scaling
//
//     |computed x - x| <= u |x| + 4 g (norm + norm'),   g = ((n + 4) u)^2,
//
// where sum |t| <= norm + norm' was used for either sum, and scaling adds 3 u |x|. A dot product of another ending has
// an error of at most u |dot| + g sum |a_k b_k|. Products must not underflow: |a_k b_k| > 1e-290 or zero.
#pragma once

#include "simd/doubled_vectors.hpp"
#include "simd/endings.hpp"
#include "simd/level.hpp"
#include "simd/simd.hpp"

namespace mercer {
namespace {

template <class T>
struct DotSum {
    static constexpr int kParts = 1;
    Vec<T> value{};

    void add(Vec<T> a, T b) { value += a * b; }
    void load_parts(const T* from) { value = load(from); }
    void save_parts(T* to) const { store(to, value); }

    template <class Ending>
    Vec<T> kernel(const StripRun<T>& run, std::int64_t row, std::int64_t sample) const {
        return finished<Ending, T>(value, load(run.strip_norms + row), splat<T>(run.norms[sample]), run.numbers);
    }
};

// min(|a|, |b|) where the signs agree, else zero.
template <class T>
inline Vec<T> shared_size(Vec<T> a, T b) {
    const T size = b < T{0} ? -b : b;
    const Vec<T> towards = larger<T>(b < T{0} ? -a : a, Vec<T>{});
    return towards < size ? towards : splat<T>(size);
}

template <class T>
struct SharedSum {
    static constexpr int kParts = 1;
    Vec<T> value{};

    void add(Vec<T> a, T b) { value += shared_size<T>(a, b); }
    void load_parts(const T* from) { value = load(from); }
    void save_parts(T* to) const { store(to, value); }

    template <class Ending>
    Vec<T> kernel(const StripRun<T>& run, std::int64_t row, std::int64_t sample) const {
        const Vec<T> norms = load(run.strip_norms + row) + run.norms[sample];  // symmetric, to the last bit
        return finished<Ending, T>(larger<T>(norms - T{2} * value, Vec<T>{}), norms, norms, run.numbers);
    }
};

struct ExactSum : DoubledVec {
    static constexpr int kParts = 2;
    void load_parts(const double* from) {
        high = load(from);
        low = load(from + lanes<double>);
    }
    void save_parts(double* to) const {
        store(to, high);
        store(to + lanes<double>, low);
    }

protected:
    // (high + low) - norm - norm', negative, and exact except for `low`.
    Vec<double> less_norms(const StripRun<double>& run, std::int64_t row, std::int64_t sample) const {
        const DoubledVec norms = of_sum(load(run.strip_norms + row), splat<double>(run.norms[sample]));
        const Vec<double> lows = load(run.strip_lows + row) + run.lows[sample];
        DoubledVec all{-norms.high, -norms.low};
        all.collect(high);
        const Vec<double> difference = all.high + (all.low + (low - lows));
        return difference < 0.0 ? difference : Vec<double>{};
    }
};

struct ExactDotSum : ExactSum {
    void add(Vec<double> a, double b) { collect_product(*this, a, splat<double>(b)); }

    template <class Ending>
    Vec<double> kernel(const StripRun<double>& run, std::int64_t row, std::int64_t sample) const {
        if constexpr (std::is_same_v<Ending, Gaussian>) {
            const Vec<double> exponent = (2.0 * kLog2E * run.numbers[1]) * less_norms(run, row, sample);
            return finished<Ending, double>(exponent, Vec<double>{}, Vec<double>{}, run.numbers);
        } else {
            return finished<Ending, double>(high + low, Vec<double>{}, Vec<double>{}, run.numbers);
        }
    }
};

struct ExactSharedSum : ExactSum {
    void add(Vec<double> a, double b) { collect(2.0 * shared_size<double>(a, b)); }

    template <class Ending>
    Vec<double> kernel(const StripRun<double>& run, std::int64_t row, std::int64_t sample) const {
        const Vec<double> exponent = (kLog2E * run.numbers[1]) * less_norms(run, row, sample);
        return finished<Ending, double>(-exponent, Vec<double>{}, Vec<double>{}, run.numbers);
    }
};

}  // namespace
}  // namespace mercer
