// Forward substitution a tile at a time. Of the solution only the last `width` rows are needed, so it is kept in a
// window that stays in the first-level cache, and the squares are summed as rows leave it.
#include "algebra/band.hpp"

#include <algorithm>
#include <vector>

#include "algebra/rounding.hpp"
#include "simd/level_entries.hpp"
#include "simd/padded.hpp"
#include "threads/pool.hpp"

namespace mercer {
namespace {

// Panels of right-hand sides that one chunk solves side by side: each part of a factor is read once for all of them.
constexpr std::int64_t kPanelsTogether = 4;

// Rows of one factor as the tiles want them: for each group of rows its `depth` columns before the group, [column][row],
// and then the triangle with reciprocals on the diagonal.
class Groups {
public:
    Groups(std::int64_t n, std::int64_t width, int height)
        : n_(n), width_(width), height_(height), count_(ceil_div(n, height)), values_(count_ * size(), 0.0) {}

    void pack(const double* factor) {
        for (std::int64_t g = 0; g < count_; ++g) {
            const std::int64_t first = g * height_;
            double* to = values_.data() + g * size();
            for (std::int64_t k = 0; k < width_ + height_; ++k) {
                const std::int64_t column = first - width_ + k;
                for (std::int64_t r = 0; r < height_; ++r) {
                    const std::int64_t row = first + r, below = row - column;
                    double value = 0.0;
                    if (row < n_ && column >= 0 && below >= 0 && below <= width_) {
                        value = factor[column * (width_ + 1) + below];
                        if (below == 0) value = 1.0 / value;
                    } else if (row >= n_ && below == 0) {
                        value = 1.0;
                    }
                    to[k * height_ + r] = value;
                }
            }
        }
    }

    const double* group(std::int64_t g) const { return values_.data() + g * size(); }
    std::int64_t count() const { return count_; }

private:
    std::int64_t size() const { return (width_ + height_) * height_; }

    std::int64_t n_, width_, height_, count_;
    Padded<double> values_;
};

}  // namespace

void band_squares(const double* factors, std::int64_t count, std::int64_t n, std::int64_t width, const double* q,
                  std::int64_t m, double* squares, const Threads& threads) {
    const CholeskyTiles<double>& tiles = cholesky_tiles_of<double>(threads.level);
    const std::int64_t height = tiles.rows, columns = tiles.columns, together = kPanelsTogether * columns;
    std::vector<Groups> packed;
    for (std::int64_t l = 0; l < count; ++l) packed.emplace_back(n, width, tiles.rows);
    parallel_for(
        count, threads.count,
        [&](std::int64_t l) { packed[static_cast<std::size_t>(l)].pack(factors + l * n * (width + 1)); }, threads.poll);

    const std::int64_t padded = round_up(n, height), window = width + 16 * height;
    const auto solve = [&](std::int64_t c) {
        const std::int64_t first = c * together, panels = ceil_div(std::min(together, m - first), columns);
        Padded<double> rows(panels * padded * columns, 0.0), kept(panels * window * columns), sums(together);
        for (std::int64_t j = 0; j < n; ++j) {
            for (std::int64_t p = 0; p < panels; ++p) {
                const std::int64_t i = first + p * columns;
                std::copy_n(q + j * m + i, std::min(columns, m - i), rows.data() + (p * padded + j) * columns);
            }
        }
        for (std::int64_t l = 0; l < count; ++l) {
            const Groups& groups = packed[static_cast<std::size_t>(l)];
            std::fill_n(sums.data(), together, 0.0);
            std::fill_n(kept.data(), panels * window * columns, 0.0);
            std::int64_t at = width;  // the window's row that comes next
            for (std::int64_t g = 0; g < groups.count(); ++g) {
                if (at + height > window) {
                    for (std::int64_t p = 0; p < panels; ++p) {
                        double* panel = kept.data() + p * window * columns;
                        std::copy_n(panel + (at - width) * columns, width * columns, panel);
                    }
                    at = width;
                }
                for (std::int64_t p = 0; p < panels; ++p) {
                    double* panel = kept.data() + p * window * columns;
                    tiles.solve_band(groups.group(g), width, panel + (at - width) * columns,
                                     rows.data() + (p * padded + g * height) * columns, panel + at * columns,
                                     sums.data() + p * columns);
                }
                at += height;
            }
            for (std::int64_t i = first; i < std::min(m, first + together); ++i) squares[i * count + l] = sums[i - first];
        }
    };
    parallel_for(ceil_div(m, together), threads.count, solve, threads.poll);
}

}  // namespace mercer
