// Blocks of the kernel matrix from prepared samples, stored or summed against coefficients, on all threads.
//
// Samples come prepared for the recipe's ending (simd/endings.hpp): centred, scaled, each with its norm. Dense ones are
// packed into panels of columns once; rows are packed per call. Sparse ones stay as they are; rows are laid out dense,
// a strip of them at a time. Outputs are split over threads, sums never, so that a result does not depend on their number.
#pragma once

#include <cstdint>
#include <vector>

#include "algebra/picked_rows.hpp"
#include "threads/threads.hpp"

namespace mercer {

template <class T>
struct DenseSamples {
    const T* rows;  // n x d
    std::int64_t n, d;
    const T* norms;
};

template <class T>
struct SparseSamples {
    const T* values;
    const std::int32_t* indices;
    const std::int64_t* starts;
    std::int64_t n, d;
    const T* norms;
    const T* lows = nullptr;  // where given, kernel values are exact (simd/sparse_sums.hpp); these are float64 only
};

template <class T>
struct SparseColumns {
    const SparseSamples<T>& samples;
    const std::int64_t* which;
    std::int64_t n;
};

template <class T>
struct Panels {
    const T* data;   // [panel][feature][column], padded with zeros to whole panels
    const T* norms;  // padded likewise
    std::int64_t n, d;
};

// rows = (x - centre) * scale in T. A norm is half the squared length of the row as stored: so rounding errors cancel
// in x.z - norms.
template <class T, class S>
void prepare_dense(const PickedRows<S>& x, const double* centre, double scale, T* rows, T* norms,
                   const Threads& threads);

// Samples as CSR arrays that own themselves.
template <class T>
struct SparseArrays {
    std::vector<T> values;
    std::vector<std::int32_t> indices;
    std::vector<std::int64_t> starts;
    std::vector<T> norms;
};

// The same for dense samples that are mostly zero: only entries that differ from the centre are kept. A norm is the sum
// of absolute values where `l1`. There are at most 2^31 - 1 features.
template <class T, class S>
SparseArrays<T> prepare_sparse(const PickedRows<S>& x, const double* centre, double scale, bool l1,
                               const Threads& threads);

// Half of each sample's squared length, or the sum of its absolute values where `l1`, as norm + low in doubled precision.
void exact_norms(const double* values, const std::int64_t* starts, std::int64_t n, bool l1, double* norms, double* lows,
                 const Threads& threads);

// The samples `which` (or all where null), as panels.
template <class T>
void pack(const DenseSamples<T>& samples, const std::int64_t* which, std::int64_t count, T* panels, T* norms,
          const Threads& threads);

// total[j] += sum over i of coefficients[i] k(rows[i], j) for the panels' columns j.
template <class T>
void sum_block(const Panels<T>& columns, const DenseSamples<T>& samples, const std::int64_t* rows, std::int64_t m,
               const double* coefficients, int ending, const double* numbers, double* total, const Threads& threads);

// sum_block for kSums vectors of Gaussian coefficients, one after another, and as many totals.
template <class T>
void sum_two_blocks(const Panels<T>& columns, const DenseSamples<T>& samples, const std::int64_t* rows,
                      std::int64_t m, const double* coefficients, const double* numbers, double* total,
                      const Threads& threads);
template <class T>
void sum_two_blocks(const SparseColumns<T>& columns, const SparseSamples<T>& samples, const std::int64_t* rows,
                      std::int64_t m, const double* coefficients, const double* numbers, double* total,
                      const Threads& threads);

// sum_block for several vectors of coefficients, one after another, and as many totals. Each kernel value is computed
// once for all of them.
template <class T>
void sum_several_blocks(const Panels<T>& columns, const DenseSamples<T>& samples, const std::int64_t* rows,
                        std::int64_t m, const double* coefficients, std::int64_t sums, int ending,
                        const double* numbers, double* total, const Threads& threads);
template <class T>
void sum_several_blocks(const SparseColumns<T>& columns, const SparseSamples<T>& samples, const std::int64_t* rows,
                        std::int64_t m, const double* coefficients, std::int64_t sums, int ending,
                        const double* numbers, double* total, const Threads& threads);

// total[i] += sum over j of k(rows[i], j) weights[j] sum over l of k(rows[l], j) coefficients[l]. Each kernel value is
// computed once for both sums.
void add_normal(const Panels<double>& columns, const DenseSamples<double>& samples, const std::int64_t* rows,
                std::int64_t m, const double* coefficients, const double* weights, int ending, const double* numbers,
                double* total, const Threads& threads);

// total[i] += sum over j of k(rows[i], rows[j]) coefficients[j]. Each kernel value is computed once, for its row and for
// its column.
void sum_square(const DenseSamples<double>& samples, const std::int64_t* rows, std::int64_t m,
                const double* coefficients, int ending, const double* numbers, double* total, const Threads& threads);

// out[i][j] = k(rows[i], j); out has `stride` elements per row and room for whole tiles.
template <class T>
void store_block(const Panels<T>& columns, const DenseSamples<T>& samples, const std::int64_t* rows, std::int64_t m,
                 int ending, const double* numbers, T* out, std::int64_t stride, const Threads& threads);

// out[i][j] = k(rows[i], rows[j]) where `columns` are these rows: one triangle is computed and mirrored.
template <class T>
void store_square(const Panels<T>& columns, const DenseSamples<T>& samples, const std::int64_t* rows, int ending,
                  const double* numbers, T* out, std::int64_t stride, const Threads& threads);
template <class T>
void store_square(const SparseColumns<T>& columns, const SparseSamples<T>& samples, int ending, const double* numbers,
                  T* out, std::int64_t stride, const Threads& threads);

// sum_block and store_block for sparse samples; here out[j][i] = k(rows[i], j).
template <class T>
void sum_block(const SparseColumns<T>& columns, const SparseSamples<T>& samples, const std::int64_t* rows,
               std::int64_t m, const double* coefficients, int ending, const double* numbers, double* total,
               const Threads& threads);
template <class T>
void store_block(const SparseColumns<T>& columns, const SparseSamples<T>& samples, const std::int64_t* rows,
                 std::int64_t m, int ending, const double* numbers, T* out, std::int64_t stride,
                 const Threads& threads);

}  // namespace mercer
