// Kernel values that were kept: a matrix with a row per sample and a column per vector whose row of K it holds.
#pragma once

#include <cstdint>

#include "blocks.hpp"

namespace mercer {

template <class T>
struct Table {
    T* values;
    std::int64_t rows, columns, stride;
};

// total[i] += sum over j of table[i][j] coefficients[j], in float64.
template <class T>
void add_table(const Table<const T>& table, const double* coefficients, double* total, const Threads& threads);

// Row r of the table becomes its row `which[r]`; `which` rises.
template <class T>
void keep_rows(const Table<T>& table, const std::int64_t* which, std::int64_t count);

// out[i][columns[j]] = table[rows[i]][sources[j]]; rows of `out` are `stride` apart.
template <class T>
void copy_entries(const Table<const T>& table, const std::int64_t* rows, std::int64_t row_count, const std::int64_t* sources,
                  const std::int64_t* columns, std::int64_t column_count, T* out, std::int64_t stride, const Threads& threads);

}  // namespace mercer
