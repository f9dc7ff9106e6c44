// Many small problems on pairs of blocks of samples, such as the pairs of classes of a one-against-one machine, solved
// side by side. A problem's variables are the samples of its first block and then those of its second:
//
//     maximise  p'b - 1/2 b'(K + diag d)b   subject to  lower <= b <= upper,  and sum of b constant where `paired`.
//
// No pair's matrix is stored. Values within a block are computed once for all of its pairs; values across a pair are
// computed a row at a time, when a step first needs the row. Most rows are never needed.
#pragma once

#include <cstdint>
#include <vector>

#include "gram/blocks.hpp"
#include "solve/smo.hpp"

namespace mercer {

// Which samples are in which block: members[starts[k]] ... members[starts[k + 1] - 1] are block k's.
struct BlockRows {
    const std::int64_t* members;
    const std::int64_t* starts;
    std::int64_t count;

    std::int64_t size(std::int64_t k) const { return starts[k + 1] - starts[k]; }
    const std::int64_t* rows(std::int64_t k) const { return members + starts[k]; }
};

// The variables of problem t are those from offsets[t] on; blocks[2 t] and blocks[2 t + 1] differ.
struct PairList {
    const std::int64_t* blocks;
    const std::int64_t* offsets;
    std::int64_t count;
};

struct PairProblems {
    const double* h;  // the gradient at beta
    double* beta;     // the starts, and the solutions
    const double* lower;
    const double* upper;
    const double* d;
    bool paired;
};

// Several problems on each pair that differ in their bounds only, such as those of folds.
struct PairFolds {
    const double* p;
    const double* beta;   // near the solutions of all: each starts from what its bounds leave of it
    const double* lower;  // `count` times the variables of all pairs
    const double* upper;
    const double* d;
    std::int64_t count;
    bool paired;
    double* solutions;  // becomes the beta of each of them
};

// Whether every problem has as many variables as its two blocks have samples.
bool sizes_agree(const BlockRows& rows, const PairList& pairs);

template <class T>
struct PairKernel {
    const DenseSamples<T>& samples;
    const double* diagonal;  // of every sample; not needed for sums
    int ending;
    const double* numbers;
};

// Returns how many kernel values it computed.
template <class T>
std::int64_t solve_pairs(const PairKernel<T>& kernel, const BlockRows& rows, const PairList& pairs,
                         const PairProblems& problems, const SmoStop& stop, SmoResult* results, const Threads& threads);

// solve_pairs for folds, which share a pair's kernel values; a result for each fold of a pair, pair after pair.
template <class T>
std::int64_t solve_folds(const PairKernel<T>& kernel, const BlockRows& rows, const PairList& pairs,
                         const PairFolds& folds, const SmoStop& stop, SmoResult* results, const Threads& threads);

// total += K beta for each pair, from values computed for this sum alone.
template <class T>
std::int64_t add_pairs(const PairKernel<T>& kernel, const BlockRows& rows, const PairList& pairs, const double* beta,
               double* total, const Threads& threads);

// Sparse samples (sparse_pairs.cpp), of float64 and for any ending but the Laplacian's.
struct SparsePairKernel {
    const SparseSamples<double>& samples;
    const double* diagonal;
    int ending;
    const double* numbers;
};

// solve_pairs for sparse samples, with steps in T; `products` becomes K beta.
template <class T>
std::int64_t solve_sparse_pairs(const SparsePairKernel& kernel, const BlockRows& rows, const PairList& pairs,
                                const PairProblems& problems, const SmoStop& stop, SmoResult* results, double* products,
                                const Threads& threads);
template <class T>
std::int64_t solve_sparse_folds(const SparsePairKernel& kernel, const BlockRows& rows, const PairList& pairs,
                                const PairFolds& folds, const SmoStop& stop, SmoResult* results,
                                const Threads& threads);

}  // namespace mercer
