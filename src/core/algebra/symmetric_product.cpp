// Squares of kRowChunk rows and columns: each is multiplied as it is and transposed while it is in the second-level
// cache. A fixed number of parts, each with its own sums, takes every so-manieth row of squares.
#include "algebra/symmetric_product.hpp"

#include <algorithm>
#include <vector>

#include "algebra/rounding.hpp"
#include "simd/level_entries.hpp"
#include "simd/padded.hpp"
#include "threads/pool.hpp"

namespace mercer {
namespace {

constexpr std::int64_t kSquareRows = kRowChunk;
// Parts whose sums are added up in the end; more of them would be of use to more threads only.
constexpr std::int64_t kProductParts = 8;
// Below this many multiplications waking a helper costs more than it saves.
constexpr std::int64_t kProductWorthSharing = 1 << 20;

}  // namespace

void symmetric_product(const double* a, std::int64_t stride, std::int64_t m, const double* v, std::int64_t v_stride,
                       std::int64_t width, double* out, const Threads& threads) {
    const CholeskyTiles<double>& tiles = cholesky_tiles_of<double>(threads.level);
    const std::int64_t columns = tiles.columns, panels = ceil_div(width, columns), squares = ceil_div(m, kSquareRows);
    const std::int64_t padded = squares * kSquareRows, panel_size = padded * columns;
    const int n_threads = m * m * width < kProductWorthSharing ? 1 : threads.count;
    Padded<double> packed(panels * panel_size, 0.0);
    for (std::int64_t c = 0; c < width; ++c) {
        double* to = packed.data() + c / columns * panel_size + c % columns;
        for (std::int64_t i = 0; i < m; ++i) to[i * columns] = v[c * v_stride + i];
    }
    std::vector<Padded<double>> sums(static_cast<std::size_t>(std::min(kProductParts, squares)));

    // Row t of a part's sums -= a square of A, whose rows are `row` and whose columns `step` elements apart, times rows s.
    const auto subtract = [&](const double* square, std::int64_t row, std::int64_t step, std::int64_t s, std::int64_t t,
                              double* part) {
        for (std::int64_t r = 0; r < kSquareRows; r += tiles.rows) {
            for (std::int64_t p = 0; p < panels; ++p) {
                tiles.subtract_products(square + r * row, row, step,
                                        packed.data() + p * panel_size + s * kSquareRows * columns, kSquareRows,
                                        part + p * panel_size + (t * kSquareRows + r) * columns);
            }
        }
    };
    parallel_for(
        static_cast<std::int64_t>(sums.size()), n_threads,
        [&](std::int64_t part) {
            Padded<double>& own = sums[static_cast<std::size_t>(part)];
            own = Padded<double>(panels * panel_size, 0.0);
            Padded<double> edge(kSquareRows * kSquareRows);
            for (std::int64_t j = part; j < squares; j += static_cast<std::int64_t>(sums.size())) {
                threads.poll.check();
                for (std::int64_t i = j; i < squares; ++i) {
                    const double* square = a + j * kSquareRows * stride + i * kSquareRows;
                    std::int64_t across = stride;
                    const std::int64_t n_j = std::min(kSquareRows, m - j * kSquareRows), n_i = std::min(kSquareRows, m - i * kSquareRows);
                    if (i == j || n_i < kSquareRows || n_j < kSquareRows) {  // whole squares, and both triangles
                        std::fill_n(edge.data(), kSquareRows * kSquareRows, 0.0);
                        for (std::int64_t c = 0; c < n_j; ++c) {
                            for (std::int64_t r = i == j ? c : 0; r < n_i; ++r) {
                                edge[c * kSquareRows + r] = square[c * stride + r];
                                if (i == j) edge[r * kSquareRows + c] = square[c * stride + r];
                            }
                        }
                        square = edge.data();
                        across = kSquareRows;
                    }
                    subtract(square, across, 1, i, j, own.data());
                    if (i != j) subtract(square, 1, across, j, i, own.data());
                }
            }
        },
        threads.poll);
    for (std::int64_t c = 0; c < width; ++c) {
        const std::int64_t from = c / columns * panel_size + c % columns;
        for (std::int64_t i = 0; i < m; ++i) {
            double total = 0.0;
            for (const Padded<double>& part : sums) total -= part[from + i * columns];
            out[c * m + i] = total;
        }
    }
}

}  // namespace mercer
