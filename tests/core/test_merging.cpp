// Merging: the order against a stable sort, equal rows against comparison.
#include "gram/merging.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <tuple>
#include <vector>

#include "check.hpp"

namespace {

// `bits` of every key are random: few make many equal keys, and buckets that are far from even.
void orders(std::size_t n, int bits) {
    std::mt19937_64 random(n + static_cast<std::size_t>(bits));
    std::vector<std::uint64_t> keys(n);
    std::vector<std::int64_t> second(n), expected(n);
    for (std::uint64_t& key : keys) key = random() >> (64 - bits) << (random() % 2 == 0 ? 0 : 64 - bits);
    for (std::int64_t& other : second) other = static_cast<std::int64_t>(random() % 3) - 1;
    std::iota(expected.begin(), expected.end(), std::int64_t{0});
    std::sort(expected.begin(), expected.end(), [&](std::int64_t a, std::int64_t b) {
        const auto i = static_cast<std::size_t>(a), j = static_cast<std::size_t>(b);
        return std::tie(keys[i], second[i], a) < std::tie(keys[j], second[j], b);
    });
    CHECK(mercer::order_by(keys.data(), second.data(), n) == expected);
    std::vector<std::int64_t> repeated;
    for (std::size_t k = 0; k + 1 < n; ++k) {
        const auto left = static_cast<std::size_t>(expected[k]), right = static_cast<std::size_t>(expected[k + 1]);
        if (keys[left] == keys[right]) repeated.push_back(static_cast<std::int64_t>(k));
    }
    CHECK(mercer::repeats(keys.data(), expected) == repeated);
}

void groups() {
    // Rows 0, 2 and 5 are equal, but 5 has another label; 1 equals 4; 3 is alone. Zeros of both signs are equal.
    const std::vector<double> data{1, 0.0, 2, 3, 1, -0.0, 5, 6, 2, 3, 1, 0.0};
    const std::vector<std::int64_t> labels{0, 1, 0, 1, 1, 1}, without_first{5, 4, 3, 2, 1};
    mercer::Poll poll;
    mercer::RowGroups found;
    CHECK(mercer::group_rows(mercer::PickedRows<double>{data.data(), 6, 2}, 6, labels.data(), 1, poll, &found));
    const auto& member = found.member;
    CHECK(found.first.size() == 4 && member[0] == member[2] && member[1] == member[4]);
    CHECK(member[5] == member[0] + 1 && member[3] != member[0] && member[3] != member[1] && member[3] != member[5]);
    for (std::size_t group = 0; group < 4; ++group) {
        const auto first = std::find(member.begin(), member.end(), static_cast<std::int64_t>(group));
        CHECK(found.first[group] == first - member.begin());
    }
    // Positions among the rows that are picked.
    const mercer::PickedRows<double> picked{data.data(), 5, 2, without_first.data()};
    CHECK(mercer::group_rows(picked, 6, labels.data(), 1, poll, &found));
    CHECK(found.first.size() == 4 && found.member[1] == found.member[4]);
    CHECK(found.member[0] == found.member[3] + 1);
    CHECK(mercer::group_rows(mercer::PickedRows<double>{data.data(), 0, 2}, 0, labels.data(), 1, poll, &found));
    CHECK(found.first.empty() && found.member.empty());
}

template <class T, class Index>
void equality() {
    // Rows 0 and 1 are equal; 2 has another value, 3 another column, 4 an entry more, and 5 and 6 are empty.
    const std::vector<T> data{1, 2, 1, 2, 1, 3, 1, 2, 1, 2, 0};
    const std::vector<Index> indices{0, 4, 0, 4, 0, 4, 0, 3, 0, 4, 5};
    const std::vector<std::int64_t> indptr{0, 2, 4, 6, 8, 11, 11, 11};
    const std::vector<std::int64_t> left{0, 0, 0, 0, 5, 0, 3}, right{1, 2, 3, 4, 6, 5, 3};
    const std::vector<std::uint8_t> expected{1, 0, 0, 0, 1, 0, 1};
    CHECK(mercer::equal_rows(data.data(), indices.data(), indptr.data(), left.data(), right.data(), left.size()) ==
          expected);
}

}  // namespace

void test_merging() {
    for (const std::size_t n : {0u, 1u, 2u, 100u, 5000u}) {
        for (const int bits : {1, 5, 63}) orders(n, bits);
    }
    groups();
    equality<float, std::int32_t>();
    equality<float, std::int64_t>();
    equality<double, std::int32_t>();
    equality<double, std::int64_t>();
}
