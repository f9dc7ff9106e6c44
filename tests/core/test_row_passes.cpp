// Passes over rows: against plain loops, and the same bits for any number of threads.
#include "gram/row_passes.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "check.hpp"

namespace {

template <class T>
void passes(std::int64_t n, std::int64_t d, bool picked) {
    std::mt19937_64 random(static_cast<std::uint64_t>(n * d));
    std::vector<T> x(static_cast<std::size_t>(n * d));
    for (T& value : x) value = static_cast<T>(random() % 1000) / T{8};  // sums are exact in any order
    std::vector<std::int64_t> which;
    for (std::int64_t i = n - 1; i >= 0; i -= 2) which.push_back(i);
    mercer::PickedRows<T> rows{x.data(), n, d};
    if (picked) rows = {x.data(), static_cast<std::int64_t>(which.size()), d, which.data()};
    const auto count = static_cast<std::size_t>(rows.n), width = static_cast<std::size_t>(d);
    const std::vector<double> centre(width, 0.5);
    std::vector<double> by_row(count), by_row2(count), by_column(width), by_column2(width);
    for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t k = 0; k < width; ++k) {
            const double apart = static_cast<double>(rows.row(static_cast<std::int64_t>(i))[k]) - 0.5;
            by_row[i] += apart;
            by_row2[i] += apart * apart;
            by_column[k] += apart;
            by_column2[k] += apart * apart;
        }
    }
    mercer::Poll poll;
    for (const int threads : {1, 2, 5}) {
        std::vector<T> out(count * width);
        mercer::copy_rows(rows, out.data(), threads, poll);
        bool same = true;
        for (std::int64_t i = 0; i < rows.n; ++i) same &= std::equal(rows.row(i), rows.row(i) + d, out.data() + i * d);
        CHECK(same);
        std::vector<double> sums(width), squares(width);
        mercer::column_moments(rows, centre.data(), sums.data(), squares.data(), threads, poll);
        CHECK(sums == by_column && squares == by_column2);
        sums.assign(count, 0.0);
        squares.assign(count, 0.0);
        mercer::row_moments(rows, 0.5, sums.data(), squares.data(), threads, poll);
        CHECK(sums == by_row && squares == by_row2);
        CHECK(mercer::all_finite(x.data(), n * d, threads, poll));
    }
    if (n * d == 0) return;
    const std::vector<std::int64_t> left{0, 0}, right{0, rows.n - 1};
    std::vector<std::uint8_t> equal(2);
    mercer::equal_rows(rows, left.data(), right.data(), 2, equal.data(), 2, poll);
    CHECK(equal[0] == 1 && (equal[1] == 1) == (rows.n == 1));
    for (const T bad : {std::numeric_limits<T>::infinity(), -std::numeric_limits<T>::infinity(), static_cast<T>(NAN)}) {
        std::vector<T> y = x;
        y.back() = bad;
        CHECK(!mercer::all_finite(y.data(), n * d, 2, poll));
    }
}

}  // namespace

void test_row_passes() {
    for (const bool picked : {false, true}) {
        passes<float>(0, 3, picked);
        passes<double>(1, 5, picked);
        passes<float>(70, 19, picked);
        passes<double>(30001, 21, picked);
    }
}
