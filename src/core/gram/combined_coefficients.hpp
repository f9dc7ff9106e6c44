// Coefficients of several sums over rows of kernel values, laid out for the pass that combines kCombined of them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "algebra/rounding.hpp"
#include "simd/level.hpp"
#include "simd/padded.hpp"

namespace mercer {

class CombinedCoefficients {
public:
    // From coefficients[sum][row].
    CombinedCoefficients(const double* coefficients, std::int64_t rows, std::int64_t sums)
        : rows_(rows), packed_(ceil_div(sums, std::int64_t{kCombined}) * rows * kCombined, 0.0) {
        for (std::int64_t i = 0; i < rows; ++i) {
            for (std::int64_t q = 0; q < sums; ++q) {
                packed_[(q / kCombined * rows + i) * kCombined + q % kCombined] = coefficients[q * rows + i];
            }
        }
    }

    // Those of the rows from `row` on, for kCombined sums from `sum` on, a multiple of kCombined.
    const double* from(std::int64_t row, std::int64_t sum) const {
        return packed_.data() + (sum / kCombined * rows_ + row) * kCombined;
    }

private:
    std::int64_t rows_;
    Padded<double> packed_;
};

}  // namespace mercer
