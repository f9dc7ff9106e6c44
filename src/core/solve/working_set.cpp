// Passes over the active variables, in chunks where there are many. The best of them lie above a step of a histogram, so
// that few are sorted.
#include "solve/working_set.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "algebra/infinity.hpp"
#include "algebra/rounding.hpp"
#include "threads/pool.hpp"

namespace mercer {
namespace {

// Variables that a thread looks at in about 50 microseconds: fewer do not pay for waking a second one.
constexpr std::int64_t kVariablesPerChunk = 1 << 14;

// Results of work(begin, end) for each chunk of the active variables, in their order.
template <class Work>
auto by_chunks(const ActiveView& view, int n_threads, Poll& poll, Work work) {
    using Part = decltype(work(std::int64_t{0}, std::int64_t{0}));
    std::vector<Part> parts(static_cast<std::size_t>(std::max<std::int64_t>(1, ceil_div(view.n, kVariablesPerChunk))));
    parallel_for(
        static_cast<std::int64_t>(parts.size()), n_threads,
        [&](std::int64_t c) {
            const std::int64_t begin = c * kVariablesPerChunk, end = std::min(view.n, begin + kVariablesPerChunk);
            parts[static_cast<std::size_t>(c)] = work(begin, end);
        },
        poll);
    return parts;
}

// `up` is h if the variable may grow, `low` is h if it may shrink; otherwise they are infinite. There is no branch:
// which bound a variable lies at cannot be predicted, and a wrong guess costs more than everything else.
struct Sides {
    double up, low;
};

double chosen(bool yes, double value, double otherwise) {
    const std::uint64_t mask = -static_cast<std::uint64_t>(yes);
    return std::bit_cast<double>((std::bit_cast<std::uint64_t>(value) & mask) |
                                 (std::bit_cast<std::uint64_t>(otherwise) & ~mask));
}

Sides sides_of(const ActiveView& view, std::int64_t i) {
    const double h = view.gradient(i);
    return {chosen(view.beta[i] < view.upper[i], h, -kInfinity), chosen(view.beta[i] > view.lower[i], h, kInfinity)};
}

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

// Scores of a side between two ends, in steps of equal width from 1 on; 0 stands for what cannot be chosen. A larger
// score is never in a lower step.
class Steps {
public:
    static constexpr int kSteps = 1024;

    Steps(double low, double high) : low_(low), scale_(high > low ? (kSteps - 1) / (high - low) : 0.0) {
        if (!(scale_ < kInfinity) || !(std::abs(low) < kInfinity)) low_ = scale_ = 0.0;  // all are in one step
    }
    std::uint16_t of(double score, bool fits) const {
        const double step = (std::max(score, low_) - low_) * scale_;
        const int whole = static_cast<int>(std::min(step, static_cast<double>(kSteps - 1)));  // 0 or more, and no NaN
        return static_cast<std::uint16_t>((whole + 1) & -static_cast<int>(fits));
    }

private:
    double low_, scale_;
};

using Counts = std::array<std::int32_t, Steps::kSteps + 1>;  // of each step

// The highest step at or above which there are at least `size` scores, or the lowest.
std::uint16_t step_with(const Counts& counts, std::int64_t size) {
    std::size_t step = Steps::kSteps;
    for (std::int64_t above = counts[step]; step > 1 && above < size; above += counts[step]) --step;
    return static_cast<std::uint16_t>(step);
}

}  // namespace

Ends ends_of(const ActiveView& view, int n_threads, Poll& poll) {
    const auto count = static_cast<std::size_t>(std::max(view.groups, 1));
    const double start = view.groups == 0 ? 0.0 : kInfinity;
    const auto parts = by_chunks(view, n_threads, poll, [&](std::int64_t begin, std::int64_t end) {
        Ends ends{std::vector<double>(count, -start), std::vector<double>(count, start)};
        if (view.groups > 1) {
            for (std::int64_t k = begin; k < end; ++k) {
                const std::int64_t i = view.active[k];
                const auto g = static_cast<std::size_t>(view.group[i]);
                const Sides h = sides_of(view, i);
                ends.top[g] = std::max(ends.top[g], h.up);
                ends.bottom[g] = std::min(ends.bottom[g], h.low);
            }
            return ends;
        }
        double top = -start, bottom = start;  // in registers
        for (std::int64_t k = begin; k < end; ++k) {
            const Sides h = sides_of(view, view.active[k]);
            top = std::max(top, h.up);
            bottom = std::min(bottom, h.low);
        }
        ends.top[0] = top;
        ends.bottom[0] = bottom;
        return ends;
    });
    Ends all = parts.front();
    for (std::size_t g = 0; g < count; ++g) {
        for (const Ends& part : parts) {
            all.top[g] = std::max(all.top[g], part.top[g]);
            all.bottom[g] = std::min(all.bottom[g], part.bottom[g]);
        }
        const double here = view.groups == 0 ? std::max(all.top[g], -all.bottom[g]) : all.top[g] - all.bottom[g];
        all.violation = std::max(all.violation, here);
    }
    return all;
}

std::vector<std::uint8_t> marked(const std::int64_t* which, std::size_t count, std::size_t n) {
    std::vector<std::uint8_t> flags(n, 0);
    for (std::size_t k = 0; k < count; ++k) flags[static_cast<std::size_t>(which[k])] = 1;
    return flags;
}

std::vector<std::int64_t> working_set(const ActiveView& view, const Ends& ends, std::uint8_t* taken, std::int64_t size,
                                      int n_threads, Poll& poll) {
    const auto whole = static_cast<std::size_t>(size);
    const std::size_t count = view.groups == 0 ? 1 : 2 * static_cast<std::size_t>(view.groups);
    std::vector<Steps> steps;
    for (std::size_t s = 0; s < count; ++s) {
        const double top = ends.top[s / 2], bottom = ends.bottom[s / 2];
        if (view.groups == 0) {
            steps.emplace_back(0.0, std::max(top, -bottom));
        } else {
            steps.emplace_back(s % 2 == 0 ? bottom : -top, s % 2 == 0 ? top : -bottom);
        }
    }
    const auto group_of = [&](std::int64_t i) {
        return view.groups <= 1 ? std::size_t{0} : static_cast<std::size_t>(view.group[i]);
    };
    // The gains of both sides of a variable; without groups only the larger one counts.
    const auto gains_of = [&](std::int64_t i) {
        const Sides h = sides_of(view, i);
        return view.groups == 0 ? Sides{std::max(h.up, -h.low), -kInfinity} : Sides{h.up, -h.low};
    };
    std::vector<std::array<std::uint16_t, 2>> at(static_cast<std::size_t>(view.n));  // the step of each side
    const auto counted = by_chunks(view, n_threads, poll, [&](std::int64_t begin, std::int64_t end) {
        std::vector<Counts> counts(count, Counts{});
        for (std::int64_t k = begin; k < end; ++k) {
            const std::int64_t i = view.active[k];
            const Sides gain = gains_of(i);
            const std::size_t g = group_of(i);
            const bool open = taken[i] == 0;
            auto& own = at[static_cast<std::size_t>(k)];
            if (view.groups == 0) {
                own = {steps[0].of(gain.up, (gain.up > 0.0) & open), 0};
            } else {
                own = {steps[2 * g].of(gain.up, (gain.up > ends.bottom[g]) & open),
                       steps[2 * g + 1].of(gain.low, (gain.low > -ends.top[g]) & open)};
                ++counts[2 * g + 1][own[1]];
            }
            ++counts[2 * g][own[0]];
        }
        return counts;
    });
    std::vector<std::uint16_t> least(count);
    for (std::size_t s = 0; s < count; ++s) {
        Counts all = counted.front()[s];
        for (std::size_t c = 1; c < counted.size(); ++c) {
            for (std::size_t step = 0; step < all.size(); ++step) all[step] += counted[c][s][step];
        }
        least[s] = step_with(all, size);
    }
    const auto parts = by_chunks(view, n_threads, poll, [&](std::int64_t begin, std::int64_t end) {
        std::vector<std::vector<Candidate>> best(count);
        for (std::int64_t k = begin; k < end; ++k) {
            const auto own = at[static_cast<std::size_t>(k)];
            if ((own[0] | own[1]) == 0) continue;
            const std::int64_t i = view.active[k];
            const std::size_t first = 2 * group_of(i);
            if (own[0] >= least[first]) best[first].push_back({gains_of(i).up, i});
            if (view.groups > 0 && own[1] >= least[first + 1]) best[first + 1].push_back({gains_of(i).low, i});
        }
        return best;
    });
    std::vector<Side> sides(count);
    for (const auto& part : parts) {
        for (std::size_t s = 0; s < count; ++s) {
            sides[s].list.insert(sides[s].list.end(), part[s].begin(), part[s].end());
        }
    }
    // A list is rarely used beyond its share, so only that much is sorted, and 16 more.
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

std::vector<std::int64_t> survivors(const ActiveView& view, const Ends& ends, int n_threads, Poll& poll) {
    const auto parts = by_chunks(view, n_threads, poll, [&](std::int64_t begin, std::int64_t end) {
        std::vector<std::int64_t> stay(static_cast<std::size_t>(end - begin));
        std::size_t count = 0;
        for (std::int64_t k = begin; k < end; ++k) {
            const std::int64_t i = view.active[k];
            const auto g = static_cast<std::size_t>(view.groups == 0 ? 0 : view.group[i]);
            const double h = view.gradient(i);
            const int up = view.beta[i] < view.upper[i], low = view.beta[i] > view.lower[i];
            stay[count] = i;
            count += static_cast<std::size_t>((up & low) | (up & (h >= ends.bottom[g])) | (low & (h <= ends.top[g])));
        }
        stay.resize(count);
        return stay;
    });
    std::vector<std::int64_t> out;
    out.reserve(static_cast<std::size_t>(view.n));
    for (const auto& part : parts) out.insert(out.end(), part.begin(), part.end());
    return out;
}

}  // namespace mercer
