// Blocks of rows against blocks of columns; each block of rows is a chunk of work.
#include "gram/doubled_squares.hpp"

#include <algorithm>
#include <vector>

#include "algebra/doubled.hpp"
#include "algebra/infinity.hpp"
#include "algebra/rounding.hpp"
#include "simd/padded.hpp"
#include "threads/pool.hpp"

namespace mercer {
namespace {

// Beyond this, exp of its negative is no number of float64.
constexpr double kFarExponent = 1e6;

// Rows [first, n) of a table as columns, [block][column of the table][row], padded with zeros.
Padded<double> in_blocks(const double* table, std::int64_t first, std::int64_t n, std::int64_t width) {
    Padded<double> out(round_up(n - first, kDoubledBlock) * width, 0.0);
    for (std::int64_t i = first; i < n; ++i) {
        const std::int64_t block = (i - first) / kDoubledBlock, place = (i - first) % kDoubledBlock;
        double* to = out.data() + block * kDoubledBlock * width + place;
        for (std::int64_t k = 0; k < width; ++k) to[k * kDoubledBlock] = table[i * width + k];
    }
    return out;
}

}  // namespace

void doubled_squares(const DoubledKernel& kernel, const double* X, std::int64_t n, std::int64_t d, const double* C,
                     std::int64_t outputs, std::int64_t first, std::int64_t end, double* high, double* low,
                     const Threads& threads) {
    const Padded<double> columns = in_blocks(X, first, n, d), coefficients = in_blocks(C, first, n, outputs);
    const std::int64_t blocks = ceil_div(n - first, kDoubledBlock);
    const DoubledPasses& passes = threads.level.doubled;
    const auto run_rows = [&](std::int64_t block) {
        const std::int64_t row = first + block * kDoubledBlock;
        std::vector<double> room(static_cast<std::size_t>(2 * outputs * passes.lanes + 2 * outputs));
        double* const part_high = room.data() + 2 * outputs * passes.lanes;
        double* const part_low = part_high + outputs;
        std::vector<Doubled<double>> sums(static_cast<std::size_t>(outputs));
        for (std::int64_t other = block; other < blocks && !threads.poll.stopped(); ++other) {
            const DoubledRun run{.first_row = X + row * d,
                                 .columns = columns.data() + other * kDoubledBlock * d,
                                 .row_coefficients = C + row * outputs,
                                 .coefficients = coefficients.data() + other * kDoubledBlock * outputs,
                                 .rows = std::min<std::int64_t>(kDoubledBlock, end - row),
                                 .d = d,
                                 .outputs = outputs,
                                 .radial = kernel.radial,
                                 .gamma = kernel.gamma,
                                 .coef0 = kernel.coef0,
                                 .scale = kernel.scale,
                                 .constant = kernel.constant,
                                 .farthest = kernel.gamma > 1.0 ? kFarExponent / kernel.gamma : kInfinity,
                                 .degree = kernel.degree};
            passes.block[kernel.inner](run, room.data(), part_high, part_low);
            const double times = other == block ? 1.0 : 2.0;  // the rest by symmetry
            for (std::int64_t output = 0; output < outputs; ++output) {
                Doubled<double>& sum = sums[static_cast<std::size_t>(output)];
                sum = sum.plus({times * part_high[output], times * part_low[output]});
            }
        }
        for (std::int64_t output = 0; output < outputs; ++output) {
            high[block * outputs + output] = sums[static_cast<std::size_t>(output)].high;
            low[block * outputs + output] = sums[static_cast<std::size_t>(output)].low;
        }
    };
    parallel_for(ceil_div(end - first, kDoubledBlock), threads.count, run_rows, threads.poll);
}

}  // namespace mercer
