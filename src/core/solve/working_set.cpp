// Two passes over the active variables, in chunks where there are many, and a partial sort of the best of each chunk.
#include "solve/working_set.hpp"

#include <algorithm>
#include <bit>

#include "algebra/infinity.hpp"
#include "algebra/rounding.hpp"
#include "threads/pool.hpp"

namespace mercer {
namespace {

// Variables that a thread looks at in about 50 microseconds: fewer do not pay for waking a second one.
constexpr std::int64_t kVariablesPerChunk = 1 << 14;

// What work(begin, end) returns for each chunk of the active variables, in their order.
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

// What may grow and what may shrink has h, all else an infinity. There is no branch: which bound a variable lies at
// cannot be predicted, and a wrong guess costs more than all else.
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

    // Of candidates that come in ascending order of their variables, at least the best `size` stay.
    void offer(Candidate candidate, std::size_t size) {
        if (!(candidate.score > least_)) return;
        list.push_back(candidate);
        if (list.size() < 4 * size + 64) return;
        std::nth_element(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(size), list.end());
        list.resize(size + 1);
        least_ = list[size].score;
    }
    void append(const Side& later) { list.insert(list.end(), later.list.begin(), later.list.end()); }
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
    double least_ = -kInfinity;
};

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
    auto parts = by_chunks(view, n_threads, poll, [&](std::int64_t begin, std::int64_t end) {
        std::vector<Side> sides(count);
        for (std::int64_t k = begin; k < end; ++k) {
            const std::int64_t i = view.active[k];
            if (taken[i]) continue;
            const Sides h = sides_of(view, i);
            if (view.groups == 0) {
                const double gain = std::max(h.up, -h.low);
                if (gain > 0.0) sides[0].offer({gain, i}, whole);
            } else {
                const auto g = static_cast<std::size_t>(view.group[i]);
                if (h.up > ends.bottom[g]) sides[2 * g].offer({h.up, i}, whole);
                if (h.low < ends.top[g]) sides[2 * g + 1].offer({-h.low, i}, whole);
            }
        }
        return sides;
    });
    std::vector<Side> sides = std::move(parts.front());
    for (std::size_t c = 1; c < parts.size(); ++c) {
        for (std::size_t s = 0; s < count; ++s) sides[s].append(parts[c][s]);
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
