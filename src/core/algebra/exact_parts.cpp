// Each part is split into a multiple of a unit near the total's last bit, a multiple of 2^-40 of that unit, and a tiny
// rest. Multiples of the same unit, at most kMostAddends of them, add up without rounding.
#include "algebra/exact_parts.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace mercer {

std::vector<double> sum_error_bounds(const double* totals, std::int64_t n, const double* parts, const std::int64_t* group,
                                     std::int64_t count) {
    constexpr std::int64_t kMostAddends = 1 << 13;
    constexpr double kRatio = 0x1p-40, kInfinity = std::numeric_limits<double>::infinity();
    constexpr double kLeast = std::numeric_limits<double>::denorm_min();
    struct Sums {
        double coarse = 0.0, fine = 0.0, fine_size = 0.0, rest_size = 0.0;
        std::int64_t addends = 0;
    };
    std::vector<Sums> sums(static_cast<std::size_t>(n));
    for (std::int64_t k = 0; k < count; ++k) {
        const double size = std::abs(totals[group[k]]), unit = 4.0 * (std::nextafter(size, kInfinity) - size);
        const double coarse = std::nearbyint(parts[k] / unit) * unit, rest = parts[k] - coarse;
        const double fine_unit = std::max(kRatio * unit, kLeast);  // the product underflows beside tiny totals
        const double fine = std::nearbyint(rest / fine_unit) * fine_unit;
        Sums& sum = sums[static_cast<std::size_t>(group[k])];
        sum.coarse += coarse;
        sum.fine += fine;
        sum.fine_size += std::abs(fine);
        sum.rest_size += std::abs(rest - fine);
        ++sum.addends;
    }
    std::vector<double> out;
    out.reserve(sums.size());
    for (std::size_t g = 0; g < sums.size(); ++g) {
        const Sums& sum = sums[g];
        const double difference = std::abs(totals[g] - sum.coarse - sum.fine);
        const double unsummed = sum.rest_size + (sum.addends <= kMostAddends ? 0.0 : sum.fine_size);
        out.push_back(difference * (1.0 + 1e-15) + unsummed * (1.0 + 1e-9));
    }
    return out;
}

}  // namespace mercer
