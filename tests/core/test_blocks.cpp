// Blocks of the kernel matrix: every ending, precision, level and edge against loops that a person can check.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "check.hpp"
#include "gram/blocks.hpp"
#include "gram/kept_values.hpp"
#include "simd/dispatch.hpp"
#include "simd/level_entries.hpp"

namespace {

using mercer::Ending;

constexpr double kNumbers[mercer::kNumbers] = {1.5, 0.4, 0.3, 3.0};  // scale, gamma, coef0, degree

struct Data {
    std::int64_t n, d;
    std::vector<double> x;
    const double* row(std::int64_t i) const { return x.data() + i * d; }
};

Data drawn_data(std::int64_t n, std::int64_t d, double share) {
    std::mt19937 generator(static_cast<unsigned>(n * 100 + d));
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform;
    Data data{n, d, std::vector<double>(static_cast<std::size_t>(n * d))};
    for (double& value : data.x) value = uniform(generator) < share ? normal(generator) : 0.0;
    return data;
}

// k of two samples that were prepared for the ending already.
double kernel(const Data& data, std::int64_t i, std::int64_t j, int ending) {
    double dot = 0.0, square = 0.0, absolute = 0.0;
    for (std::int64_t k = 0; k < data.d; ++k) {
        const double a = data.row(i)[k], b = data.row(j)[k];
        dot += a * b;
        square += (a - b) * (a - b);
        absolute += std::abs(a - b);
    }
    switch (ending) {
        case mercer::kIdentity: return kNumbers[0] * dot;
        case mercer::kGaussian: return kNumbers[0] * std::exp2(-0.5 * square);
        case mercer::kPolynomial: return kNumbers[0] * std::pow(kNumbers[1] * dot + kNumbers[2], kNumbers[3]);
        case mercer::kSigmoid: return kNumbers[0] * std::tanh(kNumbers[1] * dot + kNumbers[2]);
        default: return kNumbers[0] * std::exp2(-absolute);
    }
}

// k of every two samples: computed once for all levels and precisions, since such loops are slow under the sanitizers.
struct Expected {
    std::int64_t n;
    std::vector<double> values;
    double operator()(std::int64_t i, std::int64_t j) const { return values[static_cast<std::size_t>(i * n + j)]; }
};

Expected expected_values(const Data& data, int ending) {
    Expected expected{data.n, {}};
    for (std::int64_t i = 0; i < data.n; ++i) {
        for (std::int64_t j = 0; j < data.n; ++j) expected.values.push_back(kernel(data, i, j, ending));
    }
    return expected;
}

template <class T>
std::vector<T> norms_of(const Data& data, int ending) {
    std::vector<T> norms;
    for (std::int64_t i = 0; i < data.n; ++i) {
        double sum = 0.0;
        for (std::int64_t k = 0; k < data.d; ++k) {
            const auto value = static_cast<double>(static_cast<T>(data.row(i)[k]));
            sum += ending == mercer::kLaplacian ? std::abs(value) : 0.5 * value * value;
        }
        norms.push_back(static_cast<T>(sum));
    }
    return norms;
}

template <class T>
constexpr double kTolerance = sizeof(T) == sizeof(float) ? 2e-4 : 1e-11;

bool close(double a, double b, double tolerance) { return std::abs(a - b) <= tolerance * (1.0 + std::abs(b)); }

std::int64_t up_to(std::int64_t n, std::int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

// What either kind of samples must give for rows `rows`, coefficients 1, 2, ... and columns `columns`.
template <class T>
void check_sum(const Expected& k, const std::vector<std::int64_t>& columns, const std::vector<std::int64_t>& rows,
               const std::vector<double>& total) {
    for (std::size_t j = 0; j < columns.size(); ++j) {
        double expected = 10.0;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            expected += static_cast<double>(i + 1) * k(rows[i], columns[j]);
        }
        CHECK(close(total[j], expected, kTolerance<T> * static_cast<double>(1 + rows.size() * rows.size())));
    }
}

// Two sums made together: the first is the one made alone, to the last bit, and the second has twice its coefficients.
template <class Columns, class Samples>
void check_two_sums(const Columns& columns, const Samples& samples, const std::vector<std::int64_t>& rows,
                    std::vector<double> coefficients, const std::vector<double>& total,
                    const mercer::Threads& threads) {
    const std::size_t m = rows.size(), n = total.size();
    for (std::size_t i = 0; i < m; ++i) coefficients.push_back(2.0 * coefficients[i]);
    std::vector<double> both(2 * n, 10.0);
    mercer::sum_two_blocks(columns, samples, rows.data(), static_cast<std::int64_t>(m), coefficients.data(), kNumbers,
                           both.data(), threads);
    for (std::size_t j = 0; j < n; ++j) {
        CHECK(both[j] == total[j]);
        CHECK(close(both[n + j], 2.0 * total[j] - 10.0, 1e-12));
    }
}

// More sums than one pass combines: sum q has q + 1 times the coefficients, and no bit depends on the threads.
template <class T, class Columns, class Samples>
void check_several_sums(const Columns& columns, const Samples& samples, const std::vector<std::int64_t>& rows,
                        const std::vector<double>& coefficients, int ending, const std::vector<double>& total,
                        const mercer::Threads& threads) {
    constexpr std::size_t sums = mercer::kCombined + 2;
    const std::size_t m = rows.size(), n = total.size();
    std::vector<double> all, several(sums * n, 10.0), alone(sums * n, 10.0);
    for (std::size_t q = 0; q < sums; ++q) {
        for (const double one : coefficients) all.push_back(static_cast<double>(q + 1) * one);
    }
    const mercer::Threads one{1, threads.level, threads.poll};
    mercer::sum_several_blocks(columns, samples, rows.data(), static_cast<std::int64_t>(m), all.data(),
                               static_cast<std::int64_t>(sums), ending, kNumbers, several.data(), threads);
    mercer::sum_several_blocks(columns, samples, rows.data(), static_cast<std::int64_t>(m), all.data(),
                               static_cast<std::int64_t>(sums), ending, kNumbers, alone.data(), one);
    CHECK(several == alone);
    for (std::size_t q = 0; q < sums; ++q) {
        const auto factor = static_cast<double>(q + 1);
        for (std::size_t j = 0; j < n; ++j) {
            CHECK(close(several[q * n + j] - 10.0, factor * (total[j] - 10.0),
                        kTolerance<T> * factor * static_cast<double>(1 + m * m)));
        }
    }
}

template <class T>
void dense(const Data& data, const Expected& expected, int ending, const mercer::Level& level, int n_threads) {
    mercer::Poll poll;
    const mercer::Threads threads{n_threads, level, poll};
    const mercer::Tiles<T>& tiles = mercer::tiles_of<T>(level);
    std::vector<T> stored(data.x.size()), unused(static_cast<std::size_t>(data.n));
    const std::vector<double> centre(static_cast<std::size_t>(data.d), 0.0);
    const mercer::PickedRows<double> given{data.x.data(), data.n, data.d};
    mercer::prepare_dense(given, centre.data(), 1.0, stored.data(), unused.data(), threads);
    const std::vector<T> norms = norms_of<T>(data, ending);
    if (ending == mercer::kGaussian) {
        // Two loops over the same features; a compiler may fuse other products and sums in one than in the other.
        for (std::size_t i = 0; i < norms.size(); ++i) CHECK(close(unused[i], norms[i], sizeof(T) == 8 ? 1e-14 : 1e-6));
    }
    const mercer::DenseSamples<T> samples{stored.data(), data.n, data.d, norms.data()};

    std::vector<std::int64_t> columns, rows;
    for (std::int64_t i = 0; i < data.n; ++i) columns.push_back((i * 7 + 3) % data.n);
    for (std::int64_t i = 0; i < data.n; i += 2) rows.push_back(data.n - 1 - i);
    const auto n = static_cast<std::int64_t>(columns.size()), m = static_cast<std::int64_t>(rows.size());
    const std::int64_t width = up_to(n, tiles.columns);
    std::vector<T> panels(static_cast<std::size_t>(width * data.d)), panel_norms(static_cast<std::size_t>(width));
    mercer::pack(samples, columns.data(), n, panels.data(), panel_norms.data(), threads);
    const mercer::Panels<T> packed{panels.data(), panel_norms.data(), n, data.d};

    std::vector<double> coefficients, total(columns.size(), 10.0);
    for (std::int64_t i = 0; i < m; ++i) coefficients.push_back(static_cast<double>(i + 1));
    mercer::sum_block(packed, samples, rows.data(), m, coefficients.data(), ending, kNumbers, total.data(), threads);
    check_sum<T>(expected, columns, rows, total);
    if (ending == mercer::kGaussian) check_two_sums(packed, samples, rows, coefficients, total, threads);
    check_several_sums<T>(packed, samples, rows, coefficients, ending, total, threads);

    if constexpr (sizeof(T) == 8) {
        std::vector<double> each(columns.size()), summed(columns.size(), 10.0);
        std::iota(each.begin(), each.end(), 1.0);
        mercer::sum_square(samples, columns.data(), n, each.data(), ending, kNumbers, summed.data(), threads);
        check_sum<T>(expected, columns, columns, summed);
    }

    const std::int64_t stride = width + 5;
    std::vector<T> out(static_cast<std::size_t>(up_to(m, tiles.rows) * stride));
    mercer::store_block(packed, samples, rows.data(), m, ending, kNumbers, out.data(), stride, threads);
    std::vector<T> square(static_cast<std::size_t>(up_to(n, tiles.rows) * stride));
    mercer::store_square(packed, samples, columns.data(), ending, kNumbers, square.data(), stride, threads);
    std::vector<T> one(static_cast<std::size_t>(width));
    for (std::int64_t i = 0; i < m; ++i) {
        const std::int64_t r = rows[static_cast<std::size_t>(i)];
        mercer::TileRun<T> run{stored.data() + r * data.d,
                               panels.data(),
                               norms.data() + r,
                               panel_norms.data(),
                               data.d,
                               width / tiles.columns,
                               {}};
        std::transform(kNumbers, kNumbers + mercer::kNumbers, run.numbers,
                       [](double number) { return static_cast<T>(number); });
        tiles.store_row[ending](run, one.data());
        for (std::int64_t j = 0; j < n; ++j) {
            const double value = expected(r, columns[static_cast<std::size_t>(j)]);
            CHECK(close(static_cast<double>(one[static_cast<std::size_t>(j)]), value, kTolerance<T>));
        }
    }
    for (std::int64_t j = 0; j < n; ++j) {
        const std::int64_t cj = columns[static_cast<std::size_t>(j)];
        for (std::int64_t i = 0; i < m; ++i) {
            const auto got = static_cast<double>(out[static_cast<std::size_t>(i * stride + j)]);
            CHECK(close(got, expected(rows[static_cast<std::size_t>(i)], cj), kTolerance<T>));
        }
        for (std::int64_t i = 0; i < n; ++i) {
            const T got = square[static_cast<std::size_t>(i * stride + j)];
            CHECK(close(static_cast<double>(got), expected(columns[static_cast<std::size_t>(i)], cj), kTolerance<T>));
            CHECK(got == square[static_cast<std::size_t>(j * stride + i)]);
        }
    }
}

template <class T>
void sparse(const Data& data, const Expected& expected, int ending, const mercer::Level& level, int n_threads) {
    mercer::Poll poll;
    const mercer::Threads threads{n_threads, level, poll};
    std::vector<T> values;
    std::vector<std::int32_t> indices;
    std::vector<std::int64_t> starts{0};
    for (std::int64_t i = 0; i < data.n; ++i) {
        for (std::int64_t k = 0; k < data.d; ++k) {
            if (data.row(i)[k] == 0.0) continue;
            values.push_back(static_cast<T>(data.row(i)[k]));
            indices.push_back(static_cast<std::int32_t>(k));
        }
        starts.push_back(static_cast<std::int64_t>(values.size()));
    }
    const std::vector<T> norms = norms_of<T>(data, ending);
    const mercer::SparseSamples<T> samples{values.data(), indices.data(), starts.data(), data.n, data.d, norms.data()};
    std::vector<std::int64_t> columns, rows;
    for (std::int64_t i = 0; i < data.n; ++i) columns.push_back(data.n - 1 - i);
    for (std::int64_t i = 0; i < data.n; i += 3) rows.push_back(i);
    const auto n = static_cast<std::int64_t>(columns.size()), m = static_cast<std::int64_t>(rows.size());
    const mercer::SparseColumns<T> picked{samples, columns.data(), n};

    std::vector<double> coefficients, total(columns.size(), 10.0);
    for (std::int64_t i = 0; i < m; ++i) coefficients.push_back(static_cast<double>(i + 1));
    mercer::sum_block(picked, samples, rows.data(), m, coefficients.data(), ending, kNumbers, total.data(), threads);
    check_sum<T>(expected, columns, rows, total);
    if (ending == mercer::kGaussian) check_two_sums(picked, samples, rows, coefficients, total, threads);
    check_several_sums<T>(picked, samples, rows, coefficients, ending, total, threads);

    const std::int64_t stride = up_to(n, mercer::strips_of<T>(level).width);
    std::vector<T> out(static_cast<std::size_t>(n * stride)), square(static_cast<std::size_t>(n * stride));
    mercer::store_block(picked, samples, rows.data(), m, ending, kNumbers, out.data(), stride, threads);
    mercer::store_square(picked, samples, ending, kNumbers, square.data(), stride, threads);
    for (std::int64_t j = 0; j < n; ++j) {
        const std::int64_t cj = columns[static_cast<std::size_t>(j)];
        for (std::int64_t i = 0; i < m; ++i) {
            const auto got = static_cast<double>(out[static_cast<std::size_t>(j * stride + i)]);
            CHECK(close(got, expected(rows[static_cast<std::size_t>(i)], cj), kTolerance<T>));
        }
        for (std::int64_t i = 0; i < n; ++i) {
            const auto got = static_cast<double>(square[static_cast<std::size_t>(i * stride + j)]);
            CHECK(close(got, expected(columns[static_cast<std::size_t>(i)], cj), kTolerance<T>));
        }
    }
}

// Dense rows that are mostly zero become sparse ones: every entry that differs from the centre, shifted and scaled.
void entries(int n_threads) {
    mercer::Poll poll;
    const mercer::Threads threads{n_threads, mercer::level(), poll};
    const Data data = drawn_data(37, 11, 0.3);
    std::vector<double> centre(11, 0.0);
    centre[4] = 0.25;
    for (const bool l1 : {false, true}) {
        const mercer::SparseArrays<double> out =
            mercer::prepare_sparse<double>(mercer::PickedRows<double>{data.x.data(), data.n, data.d}, centre.data(), 3.0, l1, threads);
        CHECK(out.starts.size() == 38 && out.starts.front() == 0);
        CHECK(static_cast<std::size_t>(out.starts.back()) == out.values.size());
        for (std::int64_t i = 0; i < data.n; ++i) {
            auto e = static_cast<std::size_t>(out.starts[static_cast<std::size_t>(i)]);
            double size = 0.0;
            for (std::int64_t k = 0; k < data.d; ++k) {
                const double shifted = 3.0 * (data.row(i)[k] - centre[static_cast<std::size_t>(k)]);
                if (shifted == 0.0) continue;
                CHECK(out.indices[e] == k);
                CHECK(out.values[e++] == shifted);
                size += l1 ? std::abs(shifted) : 0.5 * shifted * shifted;
            }
            CHECK(e == static_cast<std::size_t>(out.starts[static_cast<std::size_t>(i + 1)]));
            CHECK(close(out.norms[static_cast<std::size_t>(i)], size, 1e-14));
        }
    }
}

// Kept values: sums over all and some of them, for every level and length of a row.
template <class T>
void tables(const mercer::Level& level) {
    mercer::Poll poll;
    for (const std::int64_t columns : {1, 7, 8, 31, 32, 33, 200}) {
        const std::int64_t rows = 19, stride = columns + 3;
        std::vector<T> values(static_cast<std::size_t>(rows * stride));
        for (std::size_t k = 0; k < values.size(); ++k) values[k] = static_cast<T>(static_cast<double>(k % 17) - 8.0);
        std::vector<double> coefficients, total(19, 1.0);
        for (std::int64_t j = 0; j < columns; ++j) coefficients.push_back(static_cast<double>(j % 5) + 0.5);
        mercer::add_table(mercer::KeptValues<const T>{values.data(), rows, columns, stride}, nullptr, rows,
                          coefficients.data(), total.data(), {2, level, poll});
        for (std::int64_t i = 0; i < rows; ++i) {
            double expected = 1.0;
            for (std::int64_t j = 0; j < columns; ++j) {
                expected += static_cast<double>(values[static_cast<std::size_t>(i * stride + j)]) *
                            coefficients[static_cast<std::size_t>(j)];
            }
            CHECK(close(total[static_cast<std::size_t>(i)], expected, 1e-13));
        }
        // Two runs of vectors, seven outputs and one, of ten in all.
        mercer::Combinations combinations;
        const std::vector<std::int64_t> some{9, 0, 1, 2, 3, 4, 5}, one{4};
        std::vector<double> table(19 * 10), first(12 * 7), second(7);
        for (std::size_t j = 0; j < 12; ++j) {
            for (std::size_t o = 0; o < 7; ++o) {
                first[j * 7 + o] = static_cast<double>((3 * j + o) % 5) - 2.0;
                table[j * 10 + static_cast<std::size_t>(some[o])] = first[j * 7 + o];
            }
        }
        for (std::size_t j = 0; j < 7; ++j) second[j] = table[(12 + j) * 10 + 4] = static_cast<double>(j);
        combinations.append(0, 12, some.data(), 7, first.data());
        combinations.append(12, 7, one.data(), 1, second.data());
        std::vector<double> sums(static_cast<std::size_t>(columns) * 10, 1.0);
        combinations.add(mercer::KeptValues<const T>{values.data(), rows, columns, stride}, sums.data(), 10,
                         {2, level, poll});
        for (std::size_t i = 0; i < static_cast<std::size_t>(columns); ++i) {
            for (std::size_t o = 0; o < 10; ++o) {
                double expected = 1.0;
                for (std::size_t j = 0; j < 19; ++j) {
                    expected +=
                        table[j * 10 + o] * static_cast<double>(values[j * static_cast<std::size_t>(stride) + i]);
                }
                CHECK(close(sums[i * 10 + o], expected, 1e-13));
            }
        }
        const std::vector<std::int64_t> picked{18, 0, 7}, sources{columns - 1, 0}, places{1, 3};
        std::vector<T> copied(3 * 5, T{-99});
        mercer::copy_entries(mercer::KeptValues<const T>{values.data(), rows, columns, stride}, picked.data(), 3,
                             sources.data(), places.data(), 2, copied.data(), 5, {2, level, poll});
        for (std::size_t i = 0; i < 3; ++i) {
            CHECK(copied[i * 5 + 1] == values[static_cast<std::size_t>(picked[i] * stride + columns - 1)]);
            CHECK(copied[i * 5 + 3] == values[static_cast<std::size_t>(picked[i] * stride)]);
            CHECK(copied[i * 5 + 2] == T{-99});
        }
        const std::vector<std::int64_t> which{18, 2, 3};
        std::vector<double> some_total(3, 1.0);
        mercer::add_table(mercer::KeptValues<const T>{values.data(), rows, columns, stride}, which.data(), 3,
                          coefficients.data(), some_total.data(), {2, level, poll});
        for (std::size_t i = 0; i < 3; ++i) CHECK(some_total[i] == total[static_cast<std::size_t>(which[i])]);
    }
}

}  // namespace

void test_blocks() {
    entries(1);
    entries(2);
    for (const mercer::Level* level : mercer::levels()) {
        tables<float>(*level);
        tables<double>(*level);
    }
    const Data wide = drawn_data(70, 9000, 0.01);  // only the features that a strip's rows have are laid out
    for (int ending = 0; ending < mercer::kEndings; ++ending) {
        const Expected of_wide = expected_values(wide, ending);
        for (const mercer::Level* level : mercer::levels()) {
            sparse<float>(wide, of_wide, ending, *level, 1);
            sparse<double>(wide, of_wide, ending, *level, 2);
        }
        for (const std::int64_t n : {1, 11, 12, 13, 33, 65, 130}) {
            for (const std::int64_t d : {1, 3, 40}) {
                const Data full = drawn_data(n, d, 1.0), thin = drawn_data(n, d, d == 40 ? 0.9 : 0.4);
                const Expected of_full = expected_values(full, ending), of_thin = expected_values(thin, ending);
                for (const mercer::Level* level : mercer::levels()) {
                    dense<float>(full, of_full, ending, *level, 2);
                    dense<double>(full, of_full, ending, *level, 1);
                    sparse<float>(thin, of_thin, ending, *level, 1);
                    sparse<double>(thin, of_thin, ending, *level, 2);
                }
            }
        }
    }
}
