// Dense samples: prepared, packed into panels, and multiplied tile by tile.
#include <algorithm>
#include <numeric>

#include "algebra/rounding.hpp"
#include "gram/blocks.hpp"
#include "gram/combined_coefficients.hpp"
#include "gram/mirror.hpp"
#include "simd/level_entries.hpp"
#include "simd/padded.hpp"
#include "simd/summation.hpp"
#include "threads/pool.hpp"

namespace mercer {
namespace {

// Panels that share a block of rows while it is in that cache: 512 columns of 784 features took 38 ns a value with one,
// 20 ns with eight.
constexpr std::int64_t kPanelsPerBlock = 8;
// Chunks per thread at least, so that no thread waits long for the last one.
constexpr std::int64_t kChunksPerThread = 4;
// Terms of inner products, and of endings, that are done before a second thread is awake: about 0.2 ms.
constexpr std::int64_t kAlone = 1 << 22;
// Elements that a thread prepares at a time, and a sixteenth of the multiplications of a chunk of panels: about a
// millisecond of work.
constexpr std::int64_t kElementsPerChunk = 1 << 20;
// Columns per partial sum where sums run over columns: enough that adding up the partial sums costs little. It fixes
// the order of summation.
constexpr std::int64_t kColumnsPerSum = 512;

// Groups of rows whose kernel values are stored for several sums at a time: they stay in the first-level cache.
constexpr std::int64_t kGroupsPerCombination = 8;

// Columns of a stripe at least, a multiple of every level's rows and columns of a tile, and stripes at most: sums of rows
// are kept for each, and as many threads find work.
constexpr std::int64_t kLeastStripe = 96, kMostStripes = 32;

// Elements that a thread packs at a time, about a tenth of a millisecond: fewer do not wake a second thread.
constexpr std::int64_t kElementsPerPack = 1 << 16;

// Number of parts, each of `elements` elements, in a chunk of the given size.
std::int64_t per_chunk(std::int64_t elements, std::int64_t chunk = kElementsPerPack) {
    return std::max<std::int64_t>(1, chunk / std::max<std::int64_t>(elements, 1));
}

// Groups of rows that stay in a cache together.
template <class T>
std::int64_t groups_per_block(std::int64_t height, std::int64_t d) {
    const std::int64_t bytes = static_cast<std::int64_t>(sizeof(T)) * height * std::max<std::int64_t>(d, 1);
    return std::max<std::int64_t>(1, kRowBlockBytes / bytes);
}

template <class T>
struct PackedRows {
    std::int64_t groups;
    Padded<T> rows, norms;
};

template <class T>
PackedRows<T> pack_rows(const DenseSamples<T>& samples, const std::int64_t* which, std::int64_t m,
                        const Threads& threads) {
    const std::int64_t height = tiles_of<T>(threads.level).rows, d = samples.d;
    PackedRows<T> packed{ceil_div(m, height), {}, {}};
    packed.rows = Padded<T>(packed.groups * height * d, T{0});
    packed.norms = Padded<T>(packed.groups * height, T{0});
    T* rows = packed.rows.data();
    T* norms = packed.norms.data();
    parallel_for_each(
        packed.groups, per_chunk(height * d), threads.count,
        [&](std::int64_t g) {
            for (std::int64_t r = 0; r < std::min(height, m - g * height); ++r) {
                const std::int64_t i = which == nullptr ? g * height + r : which[g * height + r];
                const T* x = samples.rows + i * d;
                T* to = rows + g * height * d + r;
                for (std::int64_t k = 0; k < d; ++k) to[k * height] = x[k];
                norms[g * height + r] = samples.norms[i];
            }
        },
        threads.poll);
    return packed;
}

// How the rows of a panel's outputs depend on each other: not at all, or they are added up in order.
enum class RowOrder { any, ascending };

// Calls visit(run, i, j) for every panel, which starts at column j, and every block of row groups, which starts at row
// i. A chunk is a few panels against one block, or against all blocks one after another where their order counts: so a
// block is read from memory once for these panels. Where only the lower triangle is wanted, groups wholly above the
// panel's diagonal are left out.
template <class T, class Visit>
void for_panels(const Panels<T>& columns, const PackedRows<T>& packed, const double* numbers, const Threads& threads,
                RowOrder order, bool lower_only, Visit visit) {
    const Tiles<T>& tiles = tiles_of<T>(threads.level);
    const std::int64_t d = columns.d, width = tiles.columns, height = tiles.rows;
    const std::int64_t panels = ceil_div(columns.n, width);
    const std::int64_t block = groups_per_block<T>(height, d);
    const std::int64_t blocks = ceil_div(packed.groups, block);
    const std::int64_t parts = order == RowOrder::any ? std::max<std::int64_t>(blocks, 1) : 1;
    const std::int64_t work = std::min(packed.groups, parts == 1 ? packed.groups : block) * height * width * (d + 16);
    const std::int64_t enough = 16 * kElementsPerChunk / std::max<std::int64_t>(work, 1);
    const std::int64_t few = std::max<std::int64_t>(1, panels * parts / (kChunksPerThread * threads.count));
    const std::int64_t chunk = std::min(few, std::clamp<std::int64_t>(enough, blocks > 1 ? kPanelsPerBlock : 1, 64));
    const std::int64_t chunks = ceil_div(panels, chunk);
    parallel_for(
        chunks * parts, panels * parts * work > kAlone ? threads.count : 1,
        [&](std::int64_t c) {
            const std::int64_t first = c % chunks * chunk, last = std::min(panels, first + chunk);
            const std::int64_t above = c / chunks * block;
            const std::int64_t below = parts == 1 ? packed.groups : std::min(packed.groups, above + block);
            for (std::int64_t g = above; g < below; g += block) {
                for (std::int64_t p = first; p < last; ++p) {
                    const std::int64_t end = std::min(below, g + block);
                    const std::int64_t begin = lower_only ? std::max(g, p * width / height) : g;
                    if (begin >= end) continue;
                    TileRun<T> run{};
                    run.rows = packed.rows.data() + begin * height * d;
                    run.panel = columns.data + p * width * d;
                    run.row_norms = packed.norms.data() + begin * height;
                    run.column_norms = columns.norms + p * width;
                    run.d = d;
                    run.groups = end - begin;
                    std::copy_n(numbers, kNumbers, run.numbers);
                    visit(run, begin * height, p * width);
                }
                threads.poll.check();
            }
        },
        threads.poll);
}

}  // namespace

template <class T, class S>
void prepare_dense(const PickedRows<S>& x, const double* centre, double scale, T* rows, T* norms,
                   const Threads& threads) {
    const std::int64_t d = x.d;
    parallel_for_each(
        x.n, per_chunk(d, kElementsPerChunk), threads.count,
        [&](std::int64_t i) {
            const S* from = x.row(i);
            double length = 0.0;
            for (std::int64_t k = 0; k < d; ++k) {
                const auto value = static_cast<T>((static_cast<double>(from[k]) - centre[k]) * scale);
                rows[i * d + k] = value;
                length += static_cast<double>(value) * static_cast<double>(value);
            }
            norms[i] = static_cast<T>(0.5 * length);
        },
        threads.poll);
}

template <class T>
void pack(const DenseSamples<T>& samples, const std::int64_t* which, std::int64_t count, T* panels, T* norms,
          const Threads& threads) {
    const std::int64_t width = tiles_of<T>(threads.level).columns, d = samples.d;
    parallel_for_each(
        ceil_div(count, width), per_chunk(width * d), threads.count,
        [&](std::int64_t p) {
            T* to = panels + p * width * d;
            const std::int64_t filled = std::min(width, count - p * width);
            const T* from[kMaxPanel];
            for (std::int64_t c = 0; c < filled; ++c) {
                const std::int64_t i = which == nullptr ? p * width + c : which[p * width + c];
                from[c] = samples.rows + i * d;
                norms[p * width + c] = samples.norms[i];
            }
            for (std::int64_t c = filled; c < width; ++c) norms[p * width + c] = T{0};
            for (std::int64_t k = 0; k < d; ++k) {
                for (std::int64_t c = 0; c < filled; ++c) to[k * width + c] = from[c][k];
                for (std::int64_t c = filled; c < width; ++c) to[k * width + c] = T{0};
            }
        },
        threads.poll);
}

// total[q][j] += the q-th sum of add(run, weights, stride, sums) over groups of rows, for each column j.
template <class T, class Add>
void sum_panels(const Panels<T>& columns, const DenseSamples<T>& samples, const std::int64_t* rows, std::int64_t m,
                const double* coefficients, int sums, const double* numbers, double* total, const Threads& threads,
                Add add) {
    const Tiles<T>& tiles = tiles_of<T>(threads.level);
    const PackedRows<T> packed = pack_rows(samples, rows, m, threads);
    const std::int64_t stride = packed.groups * tiles.rows;
    Padded<T> weights(sums * stride, T{0});
    for (int q = 0; q < sums; ++q) {
        std::transform(coefficients + q * m, coefficients + (q + 1) * m, weights.data() + q * stride,
                       [](double c) { return static_cast<T>(c); });
    }
    for_panels(columns, packed, numbers, threads, RowOrder::ascending, false, [&](const TileRun<T>& run, std::int64_t i, std::int64_t j) {
        for (std::int64_t g = 0; g < run.groups; g += kGroupsPerSum) {
            TileRun<T> some = run;
            some.rows += g * run.d * tiles.rows;
            some.row_norms += g * tiles.rows;
            some.groups = std::min(kGroupsPerSum, run.groups - g);
            double sum[kSums * kMaxPanel] = {};
            add(tiles, some, weights.data() + i + g * tiles.rows, stride, sum);
            const std::int64_t filled = std::min<std::int64_t>(tiles.columns, columns.n - j);
            for (int q = 0; q < sums; ++q) {
                for (std::int64_t c = 0; c < filled; ++c) total[q * columns.n + j + c] += sum[q * kMaxPanel + c];
            }
        }
    });
}

template <class T>
void sum_block(const Panels<T>& columns, const DenseSamples<T>& samples, const std::int64_t* rows, std::int64_t m,
               const double* coefficients, int ending, const double* numbers, double* total, const Threads& threads) {
    sum_panels(columns, samples, rows, m, coefficients, 1, numbers, total, threads,
               [&](const Tiles<T>& tiles, const TileRun<T>& run, const T* weights, std::int64_t, double* sum) {
                   tiles.sum[ending](run, weights, sum);
               });
}

template <class T>
void sum_two_blocks(const Panels<T>& columns, const DenseSamples<T>& samples, const std::int64_t* rows,
                      std::int64_t m, const double* coefficients, const double* numbers, double* total,
                      const Threads& threads) {
    sum_panels(columns, samples, rows, m, coefficients, kSums, numbers, total, threads,
               [](const Tiles<T>& tiles, const TileRun<T>& run, const T* weights, std::int64_t stride, double* sum) {
                   tiles.sum_two(run, weights, stride, sum);
               });
}

template <class T>
void sum_several_blocks(const Panels<T>& columns, const DenseSamples<T>& samples, const std::int64_t* rows,
                        std::int64_t m, const double* coefficients, std::int64_t sums, int ending,
                        const double* numbers, double* total, const Threads& threads) {
    const Tiles<T>& tiles = tiles_of<T>(threads.level);
    const auto combine = combine_passes_of<T>(threads.level).combine;
    const PackedRows<T> packed = pack_rows(samples, rows, m, threads);
    const CombinedCoefficients weights(coefficients, m, sums);
    for_panels(columns, packed, numbers, threads, RowOrder::ascending, false, [&](const TileRun<T>& run, std::int64_t i, std::int64_t j) {
        const std::int64_t filled = std::min<std::int64_t>(tiles.columns, columns.n - j);
        Padded<T> values(kGroupsPerCombination * tiles.rows * tiles.columns);
        for (std::int64_t g = 0; g < run.groups; g += kGroupsPerCombination) {
            TileRun<T> some = run;
            some.rows += g * run.d * tiles.rows;
            some.row_norms += g * tiles.rows;
            some.groups = std::min(kGroupsPerCombination, run.groups - g);
            tiles.store[ending](some, values.data(), tiles.columns);
            const std::int64_t first = i + g * tiles.rows, count = std::min(some.groups * tiles.rows, m - first);
            for (std::int64_t q = 0; q < sums; q += kCombined) {
                double sum[kCombined * kMaxPanel] = {};
                combine(values.data(), tiles.columns, count, weights.from(first, q), tiles.columns, sum, kMaxPanel);
                for (std::int64_t o = 0; o < std::min<std::int64_t>(kCombined, sums - q); ++o) {
                    double* const to = total + (q + o) * columns.n + j;
                    for (std::int64_t c = 0; c < filled; ++c) to[c] += sum[o * kMaxPanel + c];
                }
            }
        }
    });
}

// Here the sums run over the columns, which are split over threads. Each chunk of columns has sums of its own, which
// are added in order; its size depends on nothing but the level.
void add_normal(const Panels<double>& columns, const DenseSamples<double>& samples, const std::int64_t* rows,
                std::int64_t m, const double* coefficients, const double* weights, int ending, const double* numbers,
                double* total, const Threads& threads) {
    const Tiles<double>& tiles = tiles_of<double>(threads.level);
    const NormalTiles& normal = threads.level.normal;
    const PackedRows<double> packed = pack_rows(samples, rows, m, threads);
    const std::int64_t d = columns.d, width = tiles.columns, padded = packed.groups * tiles.rows;
    const std::int64_t panels = ceil_div(columns.n, width), chunk = kColumnsPerSum / width;
    const std::int64_t chunks = ceil_div(panels, chunk);
    Padded<double> c(padded, 0.0), w(panels * width, 0.0), sums(chunks * m);
    std::copy_n(coefficients, m, c.data());
    std::copy_n(weights, columns.n, w.data());
    parallel_for(
        chunks, threads.count,
        [&](std::int64_t k) {
            Padded<double> kept(padded * width), sum(padded * normal.lanes, 0.0);
            for (std::int64_t p = k * chunk; p < std::min(panels, (k + 1) * chunk); ++p) {
                TileRun<double> run{};
                run.rows = packed.rows.data();
                run.panel = columns.data + p * width * d;
                run.row_norms = packed.norms.data();
                run.column_norms = columns.norms + p * width;
                run.d = d;
                run.groups = packed.groups;
                std::copy_n(numbers, kNumbers, run.numbers);
                normal.add[ending](run, c.data(), w.data() + p * width, kept.data(), sum.data());
            }
            for (std::int64_t i = 0; i < m; ++i) {
                double all = 0.0;
                for (int l = 0; l < normal.lanes; ++l) all += sum[i * normal.lanes + l];
                sums[k * m + i] = all;
            }
        },
        threads.poll);
    for (std::int64_t k = 0; k < chunks; ++k) {
        for (std::int64_t i = 0; i < m; ++i) total[i] += sums[k * m + i];
    }
}

// Columns are dealt to stripes, which threads take. A stripe's columns are summed over its own rows and those below; each
// value below counts for its row as well. These sums of rows are kept for each stripe and added in order.
void sum_square(const DenseSamples<double>& samples, const std::int64_t* rows, std::int64_t m,
                const double* coefficients, int ending, const double* numbers, double* total, const Threads& threads) {
    const Tiles<double>& tiles = tiles_of<double>(threads.level);
    const SquareTiles& square = threads.level.square;
    const std::int64_t d = samples.d, width = tiles.columns, height = tiles.rows;
    const std::int64_t stripe = std::max(kLeastStripe, round_up(ceil_div(m, kMostStripes), kLeastStripe));
    const std::int64_t stripes = ceil_div(m, stripe), padded = stripes * stripe;
    const PackedRows<double> packed = pack_rows(samples, rows, m, threads);
    Padded<double> panels(padded * d), norms(padded), c(padded, 0.0), across(stripes * m, 0.0);
    pack(samples, rows, m, panels.data(), norms.data(), threads);
    std::copy_n(coefficients, m, c.data());
    const std::int64_t block = groups_per_block<double>(height, d);
    parallel_for(
        stripes, m * m * (d + 16) / 2 > kAlone ? threads.count : 1,
        [&](std::int64_t s) {
            const std::int64_t left = s * stripe, right = std::min(m, left + stripe), below = left + stripe;
            Padded<double> down(stripe), sums(std::min(block, kGroupsPerSum) * height * square.lanes);
            for (std::int64_t i = left; i < m;) {
                TileRun<double> run{};
                const std::int64_t end = i < below ? std::min(m, below) : m;
                run.groups = std::min({block, kGroupsPerSum, ceil_div(end - i, height)});
                run.rows = packed.rows.data() + i * d;
                run.row_norms = packed.norms.data() + i;
                run.d = d;
                std::copy_n(numbers, kNumbers, run.numbers);
                std::fill_n(down.data(), stripe, 0.0);
                std::fill_n(sums.data(), sums.size(), 0.0);
                for (std::int64_t j = left; j < right; j += width) {
                    run.panel = panels.data() + j * d;
                    run.column_norms = norms.data() + j;
                    if (i < below) {
                        tiles.sum[ending](run, c.data() + i, down.data() + j - left);
                    } else {
                        square.add[ending](run, c.data() + i, c.data() + j, down.data() + j - left, sums.data());
                    }
                }
                for (std::int64_t j = left; j < right; ++j) total[j] += down[j - left];
                const std::int64_t next = std::min(m, i + run.groups * height);
                if (i >= below) {
                    for (std::int64_t r = i; r < next; ++r) {
                        const double* lane = sums.data() + (r - i) * square.lanes;
                        across[s * m + r] = std::accumulate(lane, lane + square.lanes, 0.0);
                    }
                }
                i = next;
                threads.poll.check();
            }
        },
        threads.poll);
    for (std::int64_t s = 0; s < stripes; ++s) {
        for (std::int64_t i = s * stripe; i < m; ++i) total[i] += across[s * m + i];
    }
}

template <class T>
void store_block(const Panels<T>& columns, const DenseSamples<T>& samples, const std::int64_t* rows, std::int64_t m,
                 int ending, const double* numbers, T* out, std::int64_t stride, const Threads& threads) {
    const Tiles<T>& tiles = tiles_of<T>(threads.level);
    const PackedRows<T> packed = pack_rows(samples, rows, m, threads);
    for_panels(columns, packed, numbers, threads, RowOrder::any, false, [&](const TileRun<T>& run, std::int64_t i, std::int64_t j) {
        tiles.store[ending](run, out + i * stride + j, stride);
    });
}

template <class T>
void store_square(const Panels<T>& columns, const DenseSamples<T>& samples, const std::int64_t* rows, int ending,
                  const double* numbers, T* out, std::int64_t stride, const Threads& threads) {
    const Tiles<T>& tiles = tiles_of<T>(threads.level);
    const PackedRows<T> packed = pack_rows(samples, rows, columns.n, threads);
    const bool halve = mirror_pays(samples.d);
    for_panels(columns, packed, numbers, threads, RowOrder::any, halve, [&](const TileRun<T>& run, std::int64_t i, std::int64_t j) {
        tiles.store[ending](run, out + i * stride + j, stride);
    });
    if (halve) mirror(out, columns.n, stride, threads);
}

#define MERCER_FOR(T)                                                                                                 \
    template void prepare_dense(const PickedRows<float>&, const double*, double, T*, T*, const Threads&);             \
    template void prepare_dense(const PickedRows<double>&, const double*, double, T*, T*, const Threads&);            \
    template void pack(const DenseSamples<T>&, const std::int64_t*, std::int64_t, T*, T*, const Threads&);            \
    template void sum_block(const Panels<T>&, const DenseSamples<T>&, const std::int64_t*, std::int64_t,              \
                            const double*, int, const double*, double*, const Threads&);                              \
    template void sum_two_blocks(const Panels<T>&, const DenseSamples<T>&, const std::int64_t*, std::int64_t,       \
                                   const double*, const double*, double*, const Threads&);                            \
    template void sum_several_blocks(const Panels<T>&, const DenseSamples<T>&, const std::int64_t*, std::int64_t,     \
                                     const double*, std::int64_t, int, const double*, double*, const Threads&);       \
    template void store_block(const Panels<T>&, const DenseSamples<T>&, const std::int64_t*, std::int64_t, int,       \
                              const double*, T*, std::int64_t, const Threads&);                                       \
    template void store_square(const Panels<T>&, const DenseSamples<T>&, const std::int64_t*, int, const double*, T*, \
                               std::int64_t, const Threads&);
MERCER_FOR(float)
MERCER_FOR(double)
#undef MERCER_FOR

}  // namespace mercer
