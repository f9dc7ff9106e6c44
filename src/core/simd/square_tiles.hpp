// Products with a symmetric matrix: a kernel value counts for its column, and by symmetry for its row. For level.cpp
// only.
#pragma once

#include "simd/tiles.hpp"

namespace mercer {
namespace {

template <class Inner, class Ending>
void square_panel(const TileRun<double>& run, const double* row_coefficients, const double* column_coefficients,
                  double* down, double* across) {
    constexpr int step = lanes<double>;
    const Vec<double> c0 = load(column_coefficients), c1 = load(column_coefficients + step);
    Vec<double> down0{}, down1{};
    for (std::int64_t g = 0; g < run.groups; ++g) {
        const double* c = row_coefficients + g * kTileRows;
        double* to = across + g * kTileRows * step;
        Vec<double> s0{}, s1{};
        for_values<double, Inner, Ending>(run, g, [&](int r, Vec<double> k0, Vec<double> k1) {
            s0 += c[r] * k0;
            s1 += c[r] * k1;
            store(to + r * step, load(to + r * step) + c0 * k0 + c1 * k1);
        });
        down0 += s0;
        down1 += s1;
    }
    store(down, load(down) + down0);
    store(down + step, load(down + step) + down1);
}

constexpr SquareTiles square_tiles() {
    return {lanes<double>,
            {square_panel<Dot, Identity>, square_panel<Dot, Gaussian>, square_panel<Dot, Polynomial>,
             square_panel<Dot, Sigmoid>, square_panel<Distance1, Laplacian>, square_panel<Distance2, OfDifferences>,
             square_panel<Distance1, OfDifferences>}};
}

}  // namespace
}  // namespace mercer
