// Votes of one-against-one machines.
#pragma once

#include <cstdint>

namespace mercer {

// Counts the pairs that each of k classes wins. Pairs are in the order 0 1, 0 2, ..., 1 2, ...; the first class wins where
// the value is above zero. `won` has k numbers.
inline void count_wins(const double* values, std::int64_t k, double* won) {
    for (std::int64_t c = 0; c < k; ++c) won[c] = 0.0;
    for (std::int64_t first = 0; first + 1 < k; ++first) {
        double* const others = won + first + 1;
        const std::int64_t n_others = k - 1 - first;
        double lost = 0.0;
        for (std::int64_t j = 0; j < n_others; ++j) {
            const double vote = values[j] > 0.0 ? 0.0 : 1.0;
            others[j] += vote;
            lost += vote;
        }
        won[first] += static_cast<double>(n_others) - lost;
        values += n_others;
    }
}

}  // namespace mercer
