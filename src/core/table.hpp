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

}  // namespace mercer
