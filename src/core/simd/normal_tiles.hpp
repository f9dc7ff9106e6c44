// K W K'c, a panel of columns at a time: each kernel value is computed once for both products. For level.cpp only.
#pragma once

#include "simd/tiles.hpp"

namespace mercer {
namespace {

template <class Inner, class Ending>
void normal_panel(const TileRun<double>& run, const double* coefficients, const double* weights, double* kept,
                  double* total) {
    constexpr int width = kTileColumns<double>, step = lanes<double>;
    Vec<double> u0{}, u1{};
    for (std::int64_t g = 0; g < run.groups; ++g) {
        const double* c = coefficients + g * kTileRows;
        double* to = kept + g * kTileRows * width;
        for_values<double, Inner, Ending>(run, g, [&](int r, Vec<double> k0, Vec<double> k1) {
            store(to + r * width, k0);
            store(to + r * width + step, k1);
            u0 += c[r] * k0;
            u1 += c[r] * k1;
        });
    }
    u0 *= load(weights);
    u1 *= load(weights + step);
    for (std::int64_t i = 0; i < run.groups * kTileRows; ++i) {
        store(total + i * step,
              load(total + i * step) + u0 * load(kept + i * width) + u1 * load(kept + i * width + step));
    }
}

constexpr NormalTiles normal_tiles() {
    return {lanes<double>,
            {normal_panel<Dot, Identity>, normal_panel<Dot, Gaussian>, normal_panel<Dot, Polynomial>,
             normal_panel<Dot, Sigmoid>, normal_panel<Distance1, Laplacian>, normal_panel<Distance2, OfDifferences>,
             normal_panel<Distance1, OfDifferences>}};
}

}  // namespace
}  // namespace mercer
