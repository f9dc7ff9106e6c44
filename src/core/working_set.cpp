// Two passes over the active variables and a partial sort; nothing here is worth a second thread.
#include "working_set.hpp"

#include <algorithm>
#include <limits>

namespace mercer {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Candidate {
    double score;
    std::int64_t variable;
    // Largest score first, ties by index.
    bool operator<(const Candidate& other) const {
        return score != other.score ? score > other.score : variable < other.variable;
    }
};

void keep_best(std::vector<Candidate>& list, std::int64_t size) {
    if (static_cast<std::int64_t>(list.size()) > size) {
        std::nth_element(list.begin(), list.begin() + size, list.end());
        list.resize(static_cast<std::size_t>(size));
    }
    std::sort(list.begin(), list.end());
}

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

std::vector<std::int64_t> working_set(const ActiveView& view, const Ends& ends, const std::uint8_t* excluded,
                                      std::int64_t size) {
    std::vector<std::vector<Candidate>> sides(view.groups == 0 ? 1 : 2 * static_cast<std::size_t>(view.groups));
    for (std::int64_t k = 0; k < view.n; ++k) {
        const std::int64_t i = view.active[k];
        if (excluded[i]) continue;
        const double h = view.gradient(i);
        const bool up = view.beta[i] < view.upper[i], low = view.beta[i] > view.lower[i];
        if (view.groups == 0) {
            const double gain = std::max(up ? h : -kInfinity, low ? -h : -kInfinity);
            if (gain > 0.0) sides[0].push_back({gain, i});
        } else {
            const auto g = static_cast<std::size_t>(view.group[i]);
            if (up && h > ends.bottom[g]) sides[2 * g].push_back({h, i});
            if (low && h < ends.top[g]) sides[2 * g + 1].push_back({-h, i});
        }
    }
    std::size_t longest = 0;
    for (auto& side : sides) {
        keep_best(side, size);
        longest = std::max(longest, side.size());
    }
    // A free variable can stand on both sides of its group: it is dealt once, at its first turn.
    std::vector<std::int64_t> dealt;
    std::vector<std::pair<std::int64_t, std::size_t>> seen;
    for (std::size_t turn = 0; turn < longest; ++turn) {
        for (const auto& side : sides) {
            if (turn < side.size()) {
                seen.emplace_back(side[turn].variable, dealt.size());
                dealt.push_back(side[turn].variable);
            }
        }
    }
    std::sort(seen.begin(), seen.end());
    std::vector<std::uint8_t> repeated(dealt.size(), 0);
    for (std::size_t k = 1; k < seen.size(); ++k) {
        if (seen[k].first == seen[k - 1].first) repeated[seen[k].second] = 1;
    }
    std::vector<std::int64_t> out;
    for (std::size_t k = 0; k < dealt.size() && static_cast<std::int64_t>(out.size()) < size; ++k) {
        if (!repeated[k]) out.push_back(dealt[k]);
    }
    return out;
}

std::int64_t survivors(const ActiveView& view, const Ends& ends, std::uint8_t* stays) {
    std::int64_t count = 0;
    for (std::int64_t k = 0; k < view.n; ++k) {
        const std::int64_t i = view.active[k];
        const auto g = static_cast<std::size_t>(view.groups == 0 ? 0 : view.group[i]);
        const double h = view.gradient(i);
        const bool up = view.beta[i] < view.upper[i], low = view.beta[i] > view.lower[i];
        stays[k] = (up && low) || (up && h >= ends.bottom[g]) || (low && h <= ends.top[g]);
        count += stays[k];
    }
    return count;
}

}  // namespace mercer
