// The violation of optimality, and the variables that a block step should take, for large problems;
// tests/reference/working_set.py says the same in NumPy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "threads/interrupt.hpp"

namespace mercer {

// A problem at a point, seen through the variables `active`; h = p - u[row] - d beta.
struct ActiveView {
    const double *p, *lower, *upper, *d, *beta;
    const std::int64_t* row;
    const std::int32_t* group;
    const double* u;
    const std::int64_t* active;
    std::int64_t n;
    std::int32_t groups;  // 0: no equalities, and every variable is compared with zero

    double gradient(std::int64_t i) const { return p[i] - u[row[i]] - d[i] * beta[i]; }
};

// Per group the largest h that may grow and the smallest that may shrink (one pair where there are no groups).
struct Ends {
    std::vector<double> top, bottom;
    double violation = 0.0;
};

Ends ends_of(const ActiveView& view, int n_threads, Poll& poll);

// n flags, of which those at `which` are set.
std::vector<std::uint8_t> marked(const std::int64_t* which, std::size_t count, std::size_t n);

// At most `size` variables that could take part in an improving step and are not `taken`, worst first, in turn from
// each group's two sides. Marks them as taken.
std::vector<std::int64_t> working_set(const ActiveView& view, const Ends& ends, std::uint8_t* taken, std::int64_t size,
                                      int n_threads, Poll& poll);

// The active variables that are free or could still be chosen.
std::vector<std::int64_t> survivors(const ActiveView& view, const Ends& ends, int n_threads, Poll& poll);

}  // namespace mercer
