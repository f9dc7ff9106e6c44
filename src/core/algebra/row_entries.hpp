// Tables of which most cells are zero, as the entries of one row after another (the arrays of a CSR matrix).
#pragma once

#include <cstdint>
#include <vector>

namespace mercer {

struct RowEntries {
    std::vector<double> data;
    std::vector<std::int64_t> columns;  // they ascend within a row
    std::vector<std::int64_t> ends;     // 0, and where the entries of each row end
};

// Numbers of one column after another: those of column k, and their rows, lie before ends[k + 1].
struct ColumnEntries {
    const std::int64_t* rows;
    const std::int64_t* ends;
    std::int64_t n_columns;

    std::int64_t count() const { return ends[n_columns]; }
};

// The entries that are not zero; those of the same cell are added up in this order. Rows must be in [0, n_rows).
RowEntries by_rows(const ColumnEntries& of, const double* data, std::int64_t n_rows);

// 1 for each cell with a variable strictly inside its box, 2 where all that are not zero lie at a bound; of these rows.
RowEntries status_by_rows(const ColumnEntries& of, const double* beta, const double* lower, const double* upper,
                          std::int64_t n_rows, const std::int64_t* which, std::int64_t count);

struct TakenRows {
    std::vector<std::int64_t> ends;     // of the rows that were taken
    std::vector<std::int64_t> entries;  // which entries they have
    std::vector<std::int64_t> rows;     // the row of each, counted among those that were taken
};

// Some rows, in this order; they must be in [0, n_rows) of the table that `ends` belongs to.
TakenRows take_rows(const std::int64_t* ends, const std::int64_t* rows, std::int64_t count);

}  // namespace mercer
