// Kernel values that are kept: a matrix with a row per sample and a column for each vector whose row of K it holds.
#pragma once

#include <cstdint>
#include <vector>

#include "threads/threads.hpp"

namespace mercer {

template <class T>
struct KeptValues {
    T* values;
    std::int64_t rows, columns, stride;
};

// total[i] += sum over j of kept[rows[i]][j] coefficients[j], in float64; row i of all rows where `rows` is null.
template <class T>
void add_table(const KeptValues<const T>& kept, const std::int64_t* rows, std::int64_t count,
               const double* coefficients, double* total, const Threads& threads);

// to[j][i] = from[i][j]; rows of `to` are `stride` apart.
template <class T>
void transpose(const KeptValues<const T>& from, T* to, std::int64_t stride, const Threads& threads);

// out[i][columns[j]] = kept[rows[i]][sources[j]]; rows of `out` are `stride` apart.
template <class T>
void copy_entries(const KeptValues<const T>& kept, const std::int64_t* rows, std::int64_t row_count,
                  const std::int64_t* sources, const std::int64_t* columns, std::int64_t column_count, T* out,
                  std::int64_t stride, const Threads& threads);

// Runs of vectors that serve the same few outputs, with their coefficients laid out for the passes.
class Combinations {
public:
    // `count` vectors from `first` on, with coefficients[vector][output] for these outputs.
    void append(std::int64_t first, std::int64_t count, const std::int64_t* outputs, std::int64_t size,
                const double* coefficients);

    // total[i][o] += sum over the vectors j of coefficient[j][o] kept[j][i], in float64. Here the rows of `kept` are
    // the vectors'; rows of `total` are `stride` apart.
    template <class T>
    void add(const KeptValues<const T>& kept, double* total, std::int64_t stride, const Threads& threads) const;

    std::int64_t vectors() const { return vectors_; }
    std::int64_t outputs() const { return outputs_; }

private:
    struct Run {
        std::int64_t first, count;
        std::vector<std::int64_t> outputs;
        std::vector<double> packed;  // [group of outputs][vector][output]
    };
    std::vector<Run> runs_;
    std::int64_t vectors_ = 0, outputs_ = 0;  // one more than the largest index of either
};

}  // namespace mercer
