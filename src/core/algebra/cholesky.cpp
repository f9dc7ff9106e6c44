// Right-looking, by blocks of columns: factor a diagonal block, solve for the rows below it, subtract their products
// from the rest. The next diagonal block is factored while the rest is still being updated.
#include "algebra/cholesky.hpp"

#include <algorithm>
#include <vector>

#include "algebra/rounding.hpp"
#include "simd/level_entries.hpp"
#include "simd/padded.hpp"
#include "threads/pool.hpp"

namespace mercer {
namespace {

constexpr std::int64_t kChunk = kRowChunk;
// Below this many multiplications, some 50 microseconds, waking a helper costs more than it saves.
constexpr std::int64_t kWorthSharing = 1 << 20;
// Bytes of packed panels that one chunk of an update reads: they stay in the second-level cache.
constexpr std::int64_t kPanelBytes = 448 << 10;
// Panels of right-hand sides that are solved together, so that their packed copy stays small.
constexpr std::int64_t kPanelsAtATime = 64;
// Products that a solve sums up before it subtracts them: longer sums lose digits in float32.
constexpr std::int64_t kSegment = 512;

int threads_for(std::int64_t work, const Threads& threads) { return work < kWorthSharing ? 1 : threads.count; }

// Columns per block. Wide blocks make the update efficient, narrow ones shorten everything else.
std::int64_t block_size(std::int64_t n) {
    if (n <= 2 * kChunk) return 2 * kChunk;
    return n < 1500 ? kChunk : 3 * kChunk;
}

template <class T>
class Factorisation {
public:
    Factorisation(T* a, std::int64_t stride, std::int64_t n, const Threads& threads)
        : a_(a),
          stride_(stride),
          n_(n),
          block_(block_size(n)),
          threads_(threads),
          tiles_(cholesky_tiles_of<T>(threads.level)) {
        const std::int64_t first = std::min(block_, round_up(n, tiles_.rows));
        const std::int64_t below = round_up(std::max<std::int64_t>(n - block_, 0), kChunk);
        lt_stride_ = first + 2 * tiles_.columns;
        lt_ = Padded<T>(first * lt_stride_, T{0});
        triangle_ = Padded<T>(first * first);
        panels_ = Padded<T>(below * block_);
        groups_ = Padded<T>(below * block_);
    }

    std::int64_t run() {
        std::int64_t bad = factor_diagonal(0);
        for (std::int64_t k = 0; bad < 0 && k + block_ < n_; k += block_) {
            solve_below(k);
            bad = update_and_factor_next(k);
        }
        return bad;
    }

private:
    T* at(std::int64_t i, std::int64_t j) { return a_ + i * stride_ + j; }

    // The index of the first bad pivot, or -1.
    std::int64_t factor_diagonal(std::int64_t k) {
        const std::int64_t size = std::min(block_, n_ - k), padded = round_up(size, tiles_.rows);
        T* lt = lt_.data();
        constexpr std::int64_t strip = 16;
        for (std::int64_t i = 0; i < size; i += strip) {
            const std::int64_t rows = std::min(strip, size - i);
            tiles_.transpose(at(k + i, k), stride_, rows, i, lt + i, lt_stride_);
            for (std::int64_t r = i; r < i + rows; ++r) {
                for (std::int64_t c = i; c <= r; ++c) lt[c * lt_stride_ + r] = *at(k + r, k + c);
            }
        }
        for (std::int64_t r = size; r < padded; ++r) {
            for (std::int64_t c = 0; c <= r; ++c) lt[c * lt_stride_ + r] = c == r ? T{1} : T{0};
        }
        const std::int64_t bad = tiles_.factor_block(lt, lt_stride_, padded, triangle_.data());
        if (bad >= 0 && bad < size) return k + bad;
        for (std::int64_t i = 0; i < size; i += strip) {
            const std::int64_t rows = std::min(strip, size - i);
            tiles_.transpose(lt + i, lt_stride_, i, rows, at(k + i, k), stride_);
            for (std::int64_t r = i; r < i + rows; ++r) {
                for (std::int64_t c = i; c <= r; ++c) *at(k + r, k + c) = lt[c * lt_stride_ + r];
            }
        }
        return -1;
    }

    // The rows below the diagonal block at k, which has a full block's size, in place and packed both ways.
    void solve_below(std::int64_t k) {
        const std::int64_t first = k + block_, rows = n_ - first, width = tiles_.columns;
        parallel_for(
            ceil_div(rows, kChunk), threads_for(rows * block_ * block_ / 2, threads_),
            [&](std::int64_t c) {
                T* panels = panels_.data() + c * kChunk * block_;
                for (std::int64_t p = 0; p < kChunk; p += width) {
                    const std::int64_t i = c * kChunk + p, filled = std::clamp<std::int64_t>(rows - i, 0, width);
                    T* panel = panels + p * block_;
                    if (filled < width) std::fill_n(panel, width * block_, T{0});
                    if (filled == 0) continue;
                    tiles_.transpose(at(first + i, k), stride_, filled, block_, panel, width);
                    tiles_.solve_panel(triangle_.data(), block_, panel);
                    tiles_.transpose(panel, width, block_, filled, at(first + i, k), stride_);
                }
                tiles_.regroup(panels, block_, groups_.data() + c * kChunk * block_);
            },
            threads_.poll);
    }

    // Rows [i, i + rows) and columns [j, j + columns) below the diagonal block at k, of what is below the diagonal.
    void update(std::int64_t k, std::int64_t i, std::int64_t rows, std::int64_t j, std::int64_t columns) {
        const std::int64_t first = k + block_, height = tiles_.rows, width = tiles_.columns;
        for (std::int64_t r = i; r < i + rows; r += height) {
            const std::int64_t filled = std::min(height, n_ - first - r);
            const T* group = groups_.data() + r * block_;
            const std::int64_t end = std::min(j + columns, r + filled);
            // Whole tiles are those whose last column is not beyond row r.
            const std::int64_t whole =
                filled < height ? 0 : std::max<std::int64_t>(0, (std::min(end, r + 1) - j) / width);
            tiles_.rank_update(group, panels_.data() + j * block_, block_, whole, at(first + r, first + j), stride_);
            for (std::int64_t c = j + whole * width; c < end; c += width) {
                T edge[kMaxTileRows * kMaxPanel] = {};
                tiles_.rank_update(group, panels_.data() + c * block_, block_, 1, edge, width);
                for (std::int64_t s = 0; s < filled; ++s) {
                    T* to = at(first + r + s, first + c);
                    const std::int64_t below = std::min(width, std::min(end, r + s + 1) - c);
                    for (std::int64_t t = 0; t < below; ++t) to[t] += edge[s * width + t];
                }
            }
        }
    }

    struct Piece {
        std::int64_t i, j, columns;
    };

    std::int64_t update_and_factor_next(std::int64_t k) {
        const std::int64_t rows = n_ - k - block_, next = std::min(block_, rows);
        const std::int64_t wide =
            std::max(kChunk, kPanelBytes / (static_cast<std::int64_t>(sizeof(T)) * block_) / kChunk * kChunk);
        pieces_.clear();
        for (std::int64_t i = next; i < rows; i += kChunk) pieces_.push_back({i, 0, next});
        for (std::int64_t j = next; j < rows; j += wide) {
            for (std::int64_t i = j; i < rows; i += kChunk) pieces_.push_back({i, j, wide});
        }
        std::int64_t bad = -1;
        parallel_for(
            static_cast<std::int64_t>(pieces_.size()) + 1, threads_for(rows * rows * block_ / 2, threads_),
            [&](std::int64_t c) {
                if (c == 0) {
                    update(k, 0, next, 0, next);
                    bad = factor_diagonal(k + block_);
                } else {
                    const Piece& piece = pieces_[static_cast<std::size_t>(c - 1)];
                    update(k, piece.i, std::min(kChunk, rows - piece.i), piece.j, piece.columns);
                }
            },
            threads_.poll);
        return bad;
    }

    T* const a_;
    const std::int64_t stride_, n_, block_;
    const Threads& threads_;
    const CholeskyTiles<T>& tiles_;
    std::int64_t lt_stride_;
    Padded<T> lt_, triangle_;    // the diagonal block, transposed, and as groups
    Padded<T> panels_, groups_;  // the rows below it
    std::vector<Piece> pieces_;
};

// Right-hand sides as panels [row][column]; L is read as it lies.
template <class T>
class Solution {
public:
    Solution(const T* l, std::int64_t stride, std::int64_t n, std::int64_t panels, const Threads& threads)
        : l_(l),
          stride_(stride),
          n_(n),
          threads_(threads),
          tiles_(cholesky_tiles_of<T>(threads.level)),
          padded_(round_up(n, tiles_.rows)),
          triangles_(padded_ * tiles_.rows, T{0}),
          x_(panels * padded_ * tiles_.columns) {
        const std::int64_t height = tiles_.rows;
        for (std::int64_t i = 0; i < padded_; ++i) {
            T* triangle = triangles_.data() + i / height * height * height;
            const std::int64_t r = i % height;
            for (std::int64_t c = 0; c < r && i < n; ++c) triangle[c * height + r] = l[i * stride + i - r + c];
            triangle[r * height + r] = i < n ? T{1} / l[i * stride + i] : T{1};
        }
        // Rows are read a group at a time, so the last few are padded to a group.
        if (padded_ > n) {
            last_ = Padded<T>(height * n, T{0});
            for (std::int64_t i = padded_ - height; i < n; ++i) {
                std::copy_n(l + i * stride, i + 1, last_.data() + (i + height - padded_) * n);
            }
        }
    }

    // Columns [first, first + columns) of b.
    void run(T* b, std::int64_t m, std::int64_t first, std::int64_t columns) {
        panels_ = ceil_div(columns, tiles_.columns);
        const std::int64_t rows = std::max<std::int64_t>(1, kWorthSharing / (16 * columns));
        const auto copy = [&](auto move) {
            parallel_for(
                ceil_div(padded_, rows), threads_for(4 * padded_ * columns, threads_),
                [&](std::int64_t c) {
                    for (std::int64_t i = c * rows; i < std::min(padded_, (c + 1) * rows); ++i) {
                        for (std::int64_t p = 0; p < panels_; ++p) {
                            const std::int64_t j = p * tiles_.columns;
                            move(i, b + i * m + first + j, std::min<std::int64_t>(tiles_.columns, columns - j),
                                 tile(p, i));
                        }
                    }
                },
                threads_.poll);
        };
        copy([&](std::int64_t i, const T* from, std::int64_t filled, T* x) {
            std::fill_n(x, tiles_.columns, T{0});
            if (i < n_) std::copy_n(from, filled, x);
        });
        for (std::int64_t i = 0; i < n_; i += kChunk) forward(i, std::min(i + kChunk, padded_));
        for (std::int64_t i = (n_ - 1) / kChunk * kChunk; i >= 0; i -= kChunk) {
            backward(i, std::min(i + kChunk, padded_));
        }
        copy([&](std::int64_t i, T* to, std::int64_t filled, const T* x) {
            if (i < n_) std::copy_n(x, filled, to);
        });
    }

private:
    T* tile(std::int64_t panel, std::int64_t row) { return x_.data() + (panel * padded_ + row) * tiles_.columns; }
    const T* triangle(std::int64_t row) const { return triangles_.data() + row * tiles_.rows; }

    // Calls fn(panel, t) for all panels and t < count, about a hundred microseconds of work at a time.
    template <class F>
    void for_tiles(std::int64_t count, std::int64_t work_of_one, F fn) {
        const std::int64_t all = panels_ * count;
        const std::int64_t at_once = std::max<std::int64_t>(1, kWorthSharing / std::max<std::int64_t>(work_of_one, 1));
        parallel_for(
            ceil_div(all, at_once), threads_for(all * work_of_one / 2, threads_),
            [&](std::int64_t c) {
                for (std::int64_t t = c * at_once; t < std::min(all, (c + 1) * at_once); ++t) fn(t / count, t % count);
            },
            threads_.poll);
    }

    // The tile of rows from i on, minus L's columns [from, to) times the solution there.
    void subtract_left(std::int64_t panel, std::int64_t i, std::int64_t from, std::int64_t to) {
        const bool inside = i + tiles_.rows <= n_;
        const T* rows = inside ? l_ + i * stride_ : last_.data();
        for (std::int64_t k = from; k < to; k += kSegment) {
            const std::int64_t depth = std::min(kSegment, to - k);
            tiles_.subtract_products(rows + k, inside ? stride_ : n_, 1, tile(panel, k), depth, tile(panel, i));
        }
    }

    // The tile of columns from k on, minus L's rows [from, to) times the solution there.
    void subtract_below(std::int64_t panel, std::int64_t k, std::int64_t from, std::int64_t to) {
        tiles_.subtract_products(l_ + from * stride_ + k, 1, stride_, tile(panel, from), std::min(to, n_) - from,
                                 tile(panel, k));
    }

    void forward(std::int64_t begin, std::int64_t end) {
        const std::int64_t height = tiles_.rows, work = height * tiles_.columns;
        if (begin > 0) {
            for_tiles((end - begin) / height, work * begin,
                      [&](std::int64_t p, std::int64_t t) { subtract_left(p, begin + t * height, 0, begin); });
        }
        for_tiles(1, work * kChunk * kChunk / (2 * height), [&](std::int64_t p, std::int64_t) {
            for (std::int64_t i = begin; i < end; i += height) {
                subtract_left(p, i, begin, i);
                tiles_.solve_tile(triangle(i), tile(p, i));
            }
        });
    }

    void backward(std::int64_t begin, std::int64_t end) {
        const std::int64_t height = tiles_.rows, work = height * tiles_.columns;
        for_tiles(1, work * kChunk * kChunk / (2 * height), [&](std::int64_t p, std::int64_t) {
            for (std::int64_t k = end - height; k >= begin; k -= height) {
                if (k + height < n_) subtract_below(p, k, k + height, end);
                tiles_.solve_tile_transposed(triangle(k), tile(p, k));
            }
        });
        for_tiles(begin / height, work * kChunk,
                  [&](std::int64_t p, std::int64_t t) { subtract_below(p, t * height, begin, end); });
    }

    const T* const l_;
    const std::int64_t stride_, n_;
    const Threads& threads_;
    const CholeskyTiles<T>& tiles_;
    const std::int64_t padded_;
    Padded<T> triangles_, x_, last_;
    std::int64_t panels_ = 0;
};

}  // namespace

template <class T>
std::int64_t cholesky(T* a, std::int64_t stride, std::int64_t n, const Threads& threads) {
    return n == 0 ? -1 : Factorisation<T>(a, stride, n, threads).run();
}

template <class T>
void cholesky_solve(const T* l, std::int64_t stride, std::int64_t n, T* b, std::int64_t m, const Threads& threads) {
    if (n == 0 || m == 0) return;
    const std::int64_t width = cholesky_tiles_of<T>(threads.level).columns, most = kPanelsAtATime * width;
    Solution<T> solution(l, stride, n, ceil_div(std::min(m, most), width), threads);
    for (std::int64_t j = 0; j < m; j += most) solution.run(b, m, j, std::min(most, m - j));
}

template std::int64_t cholesky(float*, std::int64_t, std::int64_t, const Threads&);
template std::int64_t cholesky(double*, std::int64_t, std::int64_t, const Threads&);
template void cholesky_solve(const float*, std::int64_t, std::int64_t, float*, std::int64_t, const Threads&);
template void cholesky_solve(const double*, std::int64_t, std::int64_t, double*, std::int64_t, const Threads&);

}  // namespace mercer
