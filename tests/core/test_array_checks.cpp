// Checks of arrays: what they must refuse, at both ends and in between.
#include "algebra/array_checks.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "algebra/rounding.hpp"
#include "check.hpp"

namespace {

template <class Index>
void indices() {
    const std::vector<Index> good{0, 3, 4, 0}, negative{0, -1, 4}, beyond{0, 5};
    CHECK(mercer::all_indices(good.data(), 4, 5));
    CHECK(!mercer::all_indices(good.data(), 4, 4));
    CHECK(!mercer::all_indices(good.data(), 1, 0));
    CHECK(mercer::all_indices(good.data(), 0, 0));
    CHECK(!mercer::all_indices(negative.data(), 3, 5));
    CHECK(!mercer::all_indices(negative.data(), 3, std::numeric_limits<std::int64_t>::max()));
    CHECK(!mercer::all_indices(beyond.data(), 2, 5));
}

template <class Pointer>
void pointers() {
    const Pointer good[] = {0, 0, 3}, falling[] = {0, 3, 2}, outside[] = {0, 1, 4}, negative[] = {-1, 1, 2};
    CHECK(mercer::is_indptr(good, 2, 3));
    CHECK(!mercer::is_indptr(good, 2, 2));
    CHECK(!mercer::is_indptr(falling, 2, 3));
    CHECK(!mercer::is_indptr(outside, 2, 3));
    CHECK(!mercer::is_indptr(negative, 2, 3));
    const Pointer starts[] = {2, 0}, ends[] = {3, 0}, early[] = {1, 0}, late[] = {4, 0};
    CHECK(mercer::are_ranges(starts, ends, 2, 3));
    CHECK(!mercer::are_ranges(starts, early, 2, 3));
    CHECK(!mercer::are_ranges(starts, late, 2, 3));
    CHECK(!mercer::are_ranges(negative, ends, 1, 3));
}

}  // namespace

void test_array_checks() {
    indices<std::int32_t>();
    indices<std::int64_t>();
    pointers<std::int32_t>();
    pointers<std::int64_t>();

    const std::int64_t level[] = {1, 2, 2}, up[] = {1, 2, 5}, down[] = {1, 0};
    CHECK(mercer::is_nondecreasing(level, 3) && !mercer::is_increasing(level, 3));
    CHECK(mercer::is_nondecreasing(up, 3) && mercer::is_increasing(up, 3));
    CHECK(!mercer::is_nondecreasing(down, 2) && !mercer::is_increasing(down, 2));
    CHECK(mercer::is_increasing(down, 1) && mercer::is_increasing(down, 0));

    const double tiny = std::numeric_limits<double>::denorm_min(), infinity = std::numeric_limits<double>::infinity();
    const double positive[] = {1.0, tiny, infinity}, zero[] = {1.0, 0.0}, nan[] = {std::nan("")}, below[] = {-tiny};
    CHECK(mercer::all_positive(positive, 3));
    CHECK(!mercer::all_positive(zero, 2) && !mercer::all_positive(nan, 1) && !mercer::all_positive(below, 1));

    CHECK(mercer::ceil_div(0, 4) == 0 && mercer::ceil_div(4, 4) == 1 && mercer::ceil_div(5, 4) == 2);
    CHECK(mercer::round_up(0, 4) == 0 && mercer::round_up(4, 4) == 4 && mercer::round_up(5, 4) == 8);
}
