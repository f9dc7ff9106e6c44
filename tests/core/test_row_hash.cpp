// Row hashes: one row, however stored, has one hash, and different rows have different ones.
#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "check.hpp"
#include "gram/row_hash.hpp"

namespace {

using Hashes = std::vector<std::uint64_t>;

template <class T>
Hashes dense(const std::vector<T>& x, std::int64_t rows, std::int64_t columns, bool by_column, int n_threads) {
    Hashes out(static_cast<std::size_t>(rows));
    mercer::Poll poll;
    const mercer::DenseRows<T> view{x.data(), rows, columns, by_column ? 1 : columns, by_column ? rows : 1};
    mercer::hash_rows(view, n_threads, poll, out.data());
    return out;
}

template <class T, class Index>
Hashes sparse(const std::vector<T>& x, std::int64_t rows, std::int64_t columns, bool keep_zeros) {
    std::vector<T> data;
    std::vector<Index> indices;
    std::vector<std::int64_t> indptr{0};
    for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) {
            const T value = x[static_cast<std::size_t>(i * columns + j)];
            if (value == T{0} && !(keep_zeros && j % 3 == 0)) continue;
            data.push_back(value);
            indices.push_back(static_cast<Index>(j));
        }
        indptr.push_back(static_cast<std::int64_t>(data.size()));
    }
    Hashes out(static_cast<std::size_t>(rows));
    mercer::Poll poll;
    mercer::hash_rows(data.data(), indices.data(), indptr.data(), rows, 2, poll, out.data());
    return out;
}

}  // namespace

void test_row_hash() {
    const std::int64_t rows = 5000, columns = 37;
    std::mt19937_64 random(1);
    std::normal_distribution<float> normal;
    std::vector<float> x(static_cast<std::size_t>(rows * columns));
    for (float& value : x) {
        value = normal(random);
        if (value < 0.5f) value = value < 0.0f ? -0.0f : 0.0f;
    }
    const std::vector<double> wide(x.begin(), x.end());
    std::vector<double> transposed(x.size());
    for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) {
            transposed[static_cast<std::size_t>(j * rows + i)] = wide[static_cast<std::size_t>(i * columns + j)];
        }
    }

    const Hashes truth = dense(x, rows, columns, false, 1);
    CHECK(truth == dense(x, rows, columns, false, 4));
    CHECK(truth == dense(wide, rows, columns, false, 2));
    CHECK(truth == dense(transposed, rows, columns, true, 2));
    CHECK((truth == sparse<float, std::int32_t>(x, rows, columns, false)));
    CHECK((truth == sparse<float, std::int64_t>(x, rows, columns, true)));
    CHECK((truth == sparse<double, std::int32_t>(wide, rows, columns, true)));
    CHECK((truth == sparse<double, std::int64_t>(wide, rows, columns, false)));
    CHECK(std::set(truth.begin(), truth.end()).size() == truth.size());

    // Rows of few small integers are where weak mixing shows: all 3^8 of them, and the place of a value counts.
    std::vector<double> small;
    for (int code = 0; code < 6561; ++code) {
        for (int rest = code, j = 0; j < 8; ++j, rest /= 3) small.push_back(rest % 3);
    }
    const Hashes distinct = dense(small, 6561, 8, false, 2);
    CHECK(std::set(distinct.begin(), distinct.end()).size() == 6561);

    CHECK(dense(std::vector<float>{}, 0, 5, false, 2).empty());
    CHECK(dense(std::vector<float>{}, 3, 0, false, 2)[0] == dense(std::vector<float>{0.0f}, 1, 1, false, 2)[0]);
}
