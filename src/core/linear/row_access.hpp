// Operations on one row of a linear machine's data, dense or sparse: the inner product with w, adding it to w,
// and relatives. Only the dense ones profit from wide registers (simd/linear_passes.hpp).
#pragma once

#include <algorithm>
#include <cstdint>

#include "algebra/prefetch.hpp"
#include "linear/rows.hpp"
#include "simd/level_entries.hpp"

namespace mercer {

// Elements of rows that a sequential loop touches between two polls: a few tenths of a millisecond.
inline constexpr std::int64_t kElementsPerPoll = 1 << 18;

// How much of a row is prefetched at most: bytes of a dense one, entries of a sparse one.
inline constexpr std::int64_t kPrefetchedBytes = 512, kPrefetchedEntries = 64;

template <class Rows>
class RowAccess;

template <class T>
class RowAccess<LinearDense<T>> {
public:
    RowAccess(const LinearDense<T>& rows, const Level& level) : rows_(rows), pass_(linear_passes_of<T>(level)) {}
    double dot(std::int64_t i, const double* w) const { return pass_.dot(row(i), w, rows_.d); }
    void add(std::int64_t i, double factor, double* w) const { pass_.add(w, row(i), factor, rows_.d); }
    double squared_length(std::int64_t i) const {
        double sum = 0.0;
        for (std::int64_t k = 0; k < rows_.d; ++k) {
            const auto v = static_cast<double>(row(i)[k]);
            sum += v * v;
        }
        return sum;
    }
    template <class Use>
    void each(std::int64_t i, Use use) const {
        for (std::int64_t k = 0; k < rows_.d; ++k) use(k, static_cast<double>(row(i)[k]));
    }
    std::int64_t stored(std::int64_t) const { return rows_.d; }
    std::int64_t stored() const { return rows_.n * rows_.d; }
    void prefetch_row(std::int64_t i) const {
        prefetch(row(i), std::min<std::int64_t>(rows_.d * static_cast<std::int64_t>(sizeof(T)), kPrefetchedBytes));
    }
    void outer(std::int64_t i, double c, double* out, std::int64_t stride) const {
        const T* x = row(i);
        for (std::int64_t a = 0; a < rows_.d; ++a) {
            if (x[a] != T{0}) pass_.add(out + a * stride, x, c * static_cast<double>(x[a]), a + 1);
        }
        pass_.add(out + rows_.d * stride, x, c, rows_.d);
        out[rows_.d * stride + rows_.d] += c;
    }

private:
    const T* row(std::int64_t i) const { return rows_.row(i); }
    const LinearDense<T>& rows_;
    const LinearPasses<T>& pass_;
};

template <class T>
class RowAccess<LinearCsr<T>> {
public:
    RowAccess(const LinearCsr<T>& rows, const Level&) : rows_(rows) {}
    double dot(std::int64_t i, const double* w) const {
        const Range r = range(i);
        double sum[4] = {};
        std::int64_t k = r.begin;
        for (; k + 4 <= r.end; k += 4) {
            for (int a = 0; a < 4; ++a) sum[a] += value(k + a) * w[rows_.indices[k + a]];
        }
        for (; k < r.end; ++k) sum[0] += value(k) * w[rows_.indices[k]];
        return (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
    void add(std::int64_t i, double factor, double* w) const {
        const Range r = range(i);
        for (std::int64_t k = r.begin; k < r.end; ++k) w[rows_.indices[k]] += factor * value(k);
    }
    double squared_length(std::int64_t i) const {
        const Range r = range(i);
        double sum = 0.0;
        for (std::int64_t k = r.begin; k < r.end; ++k) sum += value(k) * value(k);
        return sum;
    }
    template <class Use>
    void each(std::int64_t i, Use use) const {
        const Range r = range(i);
        for (std::int64_t k = r.begin; k < r.end; ++k) use(static_cast<std::int64_t>(rows_.indices[k]), value(k));
    }
    std::int64_t stored(std::int64_t i) const { return range(i).end - range(i).begin; }
    std::int64_t stored() const { return rows_.stored; }
    void prefetch_row(std::int64_t i) const {
        const Range r = range(i);
        const std::int64_t entries = std::min(r.end - r.begin, kPrefetchedEntries);
        prefetch(rows_.data + r.begin, entries * static_cast<std::int64_t>(sizeof(T)));
        prefetch(rows_.indices + r.begin, entries * static_cast<std::int64_t>(sizeof(std::int32_t)));
    }
    void outer(std::int64_t i, double c, double* out, std::int64_t stride) const {
        const Range r = range(i);
        for (std::int64_t a = r.begin; a < r.end; ++a) {
            double* to = out + static_cast<std::int64_t>(rows_.indices[a]) * stride;
            const double scaled = c * value(a);
            for (std::int64_t k = r.begin; k <= a; ++k) to[rows_.indices[k]] += scaled * value(k);
        }
        double* last = out + rows_.d * stride;
        for (std::int64_t k = r.begin; k < r.end; ++k) last[rows_.indices[k]] += c * value(k);
        last[rows_.d] += c;
    }

private:
    struct Range {
        std::int64_t begin, end;
    };
    Range range(std::int64_t i) const {
        return {rows_.starts[i], rows_.ends[i]};
    }
    double value(std::int64_t k) const { return static_cast<double>(rows_.data[k]); }
    const LinearCsr<T>& rows_;
};

}  // namespace mercer
