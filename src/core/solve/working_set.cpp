// Two passes over the active variables and a partial sort: too short for a second thread.
#include "solve/working_set.hpp"

#include <algorithm>

#include "algebra/infinity.hpp"

namespace mercer {
namespace {

struct Candidate {
    double score;
    std::int64_t variable;
    // Largest score first, ties by index.
    bool operator<(const Candidate& other) const {
        return score != other.score ? score > other.score : variable < other.variable;
    }
};

// The best candidates of one side: the first few in order, the others sorted once they are asked for.
class Side {
public:
    std::vector<Candidate> list;

    void settle(std::size_t size, std::size_t sorted) {
        cut(size);
        list.resize(std::min(list.size(), size));
        order(sorted);
    }
    bool has(std::size_t turn) {
        if (turn >= list.size()) return false;
        if (turn >= sorted_) order(list.size());
        return true;
    }

private:
    void cut(std::size_t at) {
        if (at < list.size()) {
            std::nth_element(list.begin() + begin(), list.begin() + static_cast<std::ptrdiff_t>(at), list.end());
        }
    }
    void order(std::size_t until) {
        until = std::min(until, list.size());
        cut(until);
        std::sort(list.begin() + begin(), list.begin() + static_cast<std::ptrdiff_t>(until));
        sorted_ = until;
    }
    std::ptrdiff_t begin() const { return static_cast<std::ptrdiff_t>(sorted_); }

    std::size_t sorted_ = 0;
};

}  // namespace

Ends ends_of(const ActiveView& view) {
    const auto count = static_cast<std::size_t>(std::max(view.groups, 1));
    const double start = view.groups == 0 ? 0.0 : kInfinity;
    Ends ends{std::vector<double>(count, -start), std::vector<double>(count, start)};
    for (std::int64_t k = 0; k < view.n; ++k) {
        const std::int64_t i = view.active[k];
        const auto g = static_cast<std::size_t>(view.groups == 0 ? 0 : view.group[i]);
        const double h = view.gradient(i);
        if (view.beta[i] < view.upper[i] && h > ends.top[g]) ends.top[g] = h;
        if (view.beta[i] > view.lower[i] && h < ends.bottom[g]) ends.bottom[g] = h;
    }
    for (std::size_t g = 0; g < count; ++g) {
        const double here = view.groups == 0 ? std::max(ends.top[g], -ends.bottom[g]) : ends.top[g] - ends.bottom[g];
        ends.violation = std::max(ends.violation, here);
    }
    return ends;
}

std::vector<std::uint8_t> marked(const std::int64_t* which, std::size_t count, std::size_t n) {
    std::vector<std::uint8_t> flags(n, 0);
    for (std::size_t k = 0; k < count; ++k) flags[static_cast<std::size_t>(which[k])] = 1;
    return flags;
}

std::vector<std::int64_t> working_set(const ActiveView& view, const Ends& ends, std::uint8_t* taken,
                                      std::int64_t size) {
    std::vector<Side> sides(view.groups == 0 ? 1 : 2 * static_cast<std::size_t>(view.groups));
    for (std::int64_t k = 0; k < view.n; ++k) {
        const std::int64_t i = view.active[k];
        if (taken[i]) continue;
        const double h = view.gradient(i);
        const bool up = view.beta[i]<view.upper[i], low = view.beta[i]> view.lower[i];
        if (view.groups == 0) {
            const double gain = std::max(up ? h : -kInfinity, low ? -h : -kInfinity);
            if (gain > 0.0) sides[0].list.push_back({gain, i});
        } else {
            const auto g = static_cast<std::size_t>(view.group[i]);
            if (up && h > ends.bottom[g]) sides[2 * g].list.push_back({h, i});
            if (low && h < ends.top[g]) sides[2 * g + 1].list.push_back({-h, i});
        }
    }
    // A list is rarely used beyond its share, so only that much is sorted, and 16 more.
    const auto whole = static_cast<std::size_t>(size);
    for (Side& side : sides) side.settle(whole, whole / sides.size() + 16);
    // A free variable is on both sides of its group: it is dealt once, at its first turn.
    std::vector<std::int64_t> out;
    out.reserve(whole);
    bool more = true;
    for (std::size_t turn = 0; more; ++turn) {
        more = false;
        for (Side& side : sides) {
            if (out.size() == whole || !side.has(turn)) continue;
            more = true;
            const std::int64_t i = side.list[turn].variable;
            if (!taken[i]) out.push_back(i);
            taken[i] = 1;
        }
    }
    return out;
}

std::vector<std::int64_t> survivors(const ActiveView& view, const Ends& ends) {
    std::vector<std::int64_t> out;
    out.reserve(static_cast<std::size_t>(view.n));
    for (std::int64_t k = 0; k < view.n; ++k) {
        const std::int64_t i = view.active[k];
        const auto g = static_cast<std::size_t>(view.groups == 0 ? 0 : view.group[i]);
        const double h = view.gradient(i);
        const bool up = view.beta[i]<view.upper[i], low = view.beta[i]> view.lower[i];
        if ((up && low) || (up && h >= ends.bottom[g]) || (low && h <= ends.top[g])) out.push_back(i);
    }
    return out;
}

}  // namespace mercer
