// Vectors are taken a group at a time, one per lane; the values of every vector are kept, and then combined into outputs.
#include "explain/shapley.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "algebra/rounding.hpp"
#include "explain/gauss_legendre.hpp"
#include "simd/level.hpp"
#include "simd/padded.hpp"
#include "simd/shapley_bound.hpp"
#include "threads/pool.hpp"
#include "threads/spares.hpp"

namespace mercer {
namespace {

// Rows that share the factors of a background row: computing these takes a quarter of the time of one row at d = 30.
constexpr std::int64_t kRowsPerTile = 8;
// Multiply-adds of one lane between two looks at the poll: about a millisecond.
constexpr std::int64_t kWorkPerCall = 1 << 20;
constexpr double kLog2E = 1.4426950408889634074;

// How many players of every row and every background row differ.
std::vector<std::int32_t> count_different(const ShapleyProblem& p) {
    std::vector<std::int32_t> counts(static_cast<std::size_t>(p.n_rows * p.m));
    for (std::int64_t c = 0; c < p.n_rows * p.m; ++c) {
        const double *x = p.rows + c / p.m * p.d, *z = p.background + c % p.m * p.d;
        std::int32_t count = 0;
        for (std::int64_t k = 0; k < p.players; ++k) count += shapley_differ(x, z, p.starts, k);
        counts[static_cast<std::size_t>(c)] = count;
    }
    return counts;
}

// As many nodes as two rows that differ in this number of players could need. With numbers as factors sizes are odd,
// since a node in the middle costs little. Large ones are about an eighth apart, and whole passes.
class Rules {
public:
    Rules(std::int64_t most_different, const ShapleyProblem& p, int lanes) {
        const std::int64_t most = (most_different + 1) / 2, pass = p.order > 0 ? 4 : kShapleyNodes - 1;
        const std::int64_t few = 2 * pass + 1, step = p.order > 0 ? 1 : 2;
        for (std::int64_t size = 1, last = 0; last < most;
             last = size, size += size < few ? step : round_up(size / 8, pass)) {
            with_.resize(static_cast<std::size_t>(size) + 1, static_cast<std::int64_t>(rules_.size()));
            add(size, shapley_growth(size, p.players), lanes);
        }
    }
    // For as long as these rules live.
    void lend(ShapleyRun& run) const {
        run.rules = rules_.data();
        run.rule_with = with_.data();
        run.first_rule = first_;
    }

private:
    void add(std::int64_t size, double growth, int lanes) {
        const std::int64_t pairs = size / 2;
        Padded<double>& room = rooms_.emplace_back(2 * size + 2 * pairs * lanes);
        double *nodes = room.data() + 2 * pairs * lanes, *weights = nodes + size;
        gauss_legendre(size, nodes, weights);
        for (std::int64_t i = 0; i < pairs * lanes; ++i) {
            const double w = 2.0 * nodes[size - pairs + i / lanes] - 1.0;
            double* upper = room.data() + i / lanes * 2 * lanes + i % lanes;
            upper[0] = w;
            upper[lanes] = w * w;
        }
        rules_.push_back({size, nodes, weights, room.data(), growth});
        first_ += growth < 1.0;
    }

    std::vector<Padded<double>> rooms_;
    std::vector<ShapleyRule> rules_;
    std::vector<std::int64_t> with_{0};  // no nodes: not asked for
    std::int64_t first_ = 0;
};

struct Room {
    Padded<double> vectors, factors;
    std::vector<std::int64_t> different;
};

}  // namespace

void add_shapley(const ShapleyProblem& p, double* values, const Threads& threads) {
    if (p.n_rows == 0 || p.m == 0 || p.n == 0 || p.d == 0) return;
    const ShapleyPasses& passes = threads.level.shapley;
    ShapleyRun common{};
    Padded<double> rates(kRates * p.d);
    bool exponents = false;
    for (int kind = 0; kind < kRates; ++kind) {
        for (std::int64_t l = 0; l < p.d; ++l) {
            const double rate = p.rates[kind * p.d + l] * kLog2E;
            rates[kind * p.d + l] = kind == kDotRate ? rate : -rate;
            common.used[kind] |= rate != 0.0;
        }
        exponents |= common.used[kind];
    }
    // q_k k!, for [y^k] exp(y <x, z>) = <x, z>^k / k!.
    double factorial = 1.0;
    for (std::int64_t k = 0; k <= p.order; ++k) {
        factorial *= k > 1 ? static_cast<double>(k) : 1.0;
        common.series[k] = p.polynomial[k] * factorial;
    }
    common.order = p.order;
    common.exponents = exponents;
    common.rates = rates.data();
    common.d = p.d;
    common.starts = p.starts;
    common.players = p.players;
    const std::vector<std::int32_t> differing = count_different(p);
    const Rules rules(*std::max_element(differing.begin(), differing.end()), p, passes.lanes);
    rules.lend(common);
    common.differing_stride = p.m;

    const std::int64_t width = round_up(p.n, kPad), lanes = passes.lanes;
    Padded<double> kept(p.n_rows * p.players * width, 0.0);
    const std::int64_t groups = width / lanes, tiles = ceil_div(p.n_rows, kRowsPerTile), size = p.order + 1;
    const std::int64_t per_pair = std::max<std::int64_t>(1, (p.players + 4) * (p.players + 4) * size * size / 2 + p.d);
    const std::int64_t at_once = std::clamp<std::int64_t>(kWorkPerCall / (per_pair * kRowsPerTile), 1, p.m);
    Spares<Room> rooms;
    parallel_for(
        groups * tiles, threads.count,
        [&](std::int64_t c) {
            auto room = rooms.take([&] {
                auto made = std::make_unique<Room>();
                made->vectors = Padded<double>(p.d * lanes);
                made->factors = Padded<double>(shapley_room(kRowsPerTile, p.players, p.order, lanes));
                made->different.resize(static_cast<std::size_t>(p.players));
                return made;
            });
            const std::int64_t first = c % groups * lanes, top = c / groups * kRowsPerTile;
            for (std::int64_t lane = 0; lane < lanes; ++lane) {
                // Lanes beyond the last vector repeat it, and have no coefficient.
                const double* vector = p.vectors + std::min(first + lane, p.n - 1) * p.d;
                for (std::int64_t l = 0; l < p.d; ++l) room->vectors[l * lanes + lane] = vector[l];
            }
            ShapleyRun run = common;
            run.rows = p.rows + top * p.d;
            run.n_rows = std::min(kRowsPerTile, p.n_rows - top);
            run.vectors = room->vectors.data();
            run.room = room->factors.data();
            run.different = room->different.data();
            for (std::int64_t b = 0; b < p.m; b += at_once) {
                run.background = p.background + b * p.d;
                run.weights = p.weights + b;
                run.m = std::min(at_once, p.m - b);
                run.differing = differing.data() + top * p.m + b;
                passes.add(run, kept.data() + top * p.players * width + first, width);
                threads.poll.check();
            }
            rooms.give_back(std::move(room));
        },
        threads.poll);
    parallel_for_each(
        p.n_rows * p.outputs, 1, threads.count,
        [&](std::int64_t c) {
            const double* of_row = kept.data() + c / p.outputs * p.players * width;
            const double* coefficients = p.coefficients + c % p.outputs * p.n;
            for (std::int64_t k = 0; k < p.players; ++k) {
                values[c * p.players + k] += threads.level.linear_double.dot(of_row + k * width, coefficients, p.n);
            }
        },
        threads.poll);
}

}  // namespace mercer
