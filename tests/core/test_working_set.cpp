// Working sets: ends, choice and survivors on a problem small enough to see through.
#include <cmath>
#include <cstdint>
#include <vector>

#include "check.hpp"
#include "solve/working_set.hpp"

namespace {

using Indices = std::vector<std::int64_t>;

// Five variables of two groups with h = p, since u, d and beta's products vanish where d = 0.
struct Example {
    std::vector<double> p{3.0, -1.0, 2.0, 0.5, -4.0},
        lower = std::vector<double>(5, 0.0), upper = std::vector<double>(5, 1.0), d = std::vector<double>(5, 0.0),
        beta{0.0, 1.0, 0.5, 0.5, 1.0}, u = std::vector<double>(5, 0.0);
    Indices row{0, 1, 2, 3, 4}, active{0, 1, 2, 3, 4};
    std::vector<std::int32_t> group{0, 0, 0, 1, 1};

    mercer::ActiveView view(std::int32_t groups) const {
        return {p.data(),   lower.data(), upper.data(), d.data(),      beta.data(),
                row.data(), group.data(), u.data(),     active.data(), static_cast<std::int64_t>(active.size()),
                groups};
    }
};

}  // namespace

void test_working_set() {
    const Indices which{2, 0, 2};
    CHECK((mercer::marked(which.data(), 3, 4) == std::vector<std::uint8_t>{1, 0, 1, 0}));
    const Example example;
    mercer::Poll poll;
    const auto ends_of = [&](const mercer::ActiveView& view) { return mercer::ends_of(view, 2, poll); };
    const auto survivors = [&](const mercer::ActiveView& view, const mercer::Ends& ends) {
        return mercer::survivors(view, ends, 2, poll);
    };
    const auto chosen = [&](const mercer::ActiveView& view, const mercer::Ends& ends, std::int64_t size,
                           std::vector<std::uint8_t> taken = std::vector<std::uint8_t>(5, 0)) {
        return mercer::working_set(view, ends, taken.data(), size, 2, poll);
    };
    const mercer::ActiveView view = example.view(2);
    const mercer::Ends ends = ends_of(view);
    CHECK(ends.violation == 4.5);  // group 1: 0.5 may grow, -4 may shrink
    CHECK((ends.top == std::vector<double>{3.0, 0.5}));
    CHECK((ends.bottom == std::vector<double>{-1.0, -4.0}));
    // Dealt in turn from up and low of each group; 2 and 3 are free and stand on two sides, but come once.
    CHECK((chosen(view, ends, 5) == Indices{0, 1, 3, 4, 2}));
    CHECK((chosen(view, ends, 3) == Indices{0, 1, 3}));
    CHECK((chosen(view, ends, 2, {1, 0, 0, 0, 0}) == Indices{2, 1}));

    CHECK((survivors(view, ends) == Indices{0, 1, 2, 3, 4}));

    Example settled;  // 4 sits at its upper bound with a gradient that wants more: it is never chosen
    settled.p[4] = 9.0;
    const mercer::Ends calm = ends_of(settled.view(2));
    CHECK((survivors(settled.view(2), calm) == Indices{0, 1, 2, 3}));

    // Without groups every variable is alone against zero.
    const mercer::Ends alone = ends_of(example.view(0));
    CHECK(alone.violation == 4.0);
    CHECK((chosen(example.view(0), alone, 4) == Indices{4, 0, 2, 1}));

    Example none;
    none.active.clear();
    const mercer::Ends empty = ends_of(none.view(1));
    CHECK(empty.violation == 0.0);
    CHECK(chosen(none.view(1), empty, 4).empty());
}
