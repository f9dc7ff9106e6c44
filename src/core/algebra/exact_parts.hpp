// Bounds on the error with which parts add up to a total.
#pragma once

#include <cstdint>
#include <vector>

namespace mercer {

// Bounds on |totals[g] - sum of the parts of group g| for parts that have the sign of their total; 0 if the parts add up
// exactly, unless they are very many or very unequal. `group` has the group of each part.
std::vector<double> sum_error_bounds(const double* totals, std::int64_t n, const double* parts, const std::int64_t* group,
                                     std::int64_t count);

}  // namespace mercer
