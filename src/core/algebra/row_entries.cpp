// Entries are counted by row, and then placed one column after another.
#include "algebra/row_entries.hpp"

#include <algorithm>
#include <utility>

namespace mercer {

namespace {

// value(e) of each entry, 0 for none; `join` makes one of two in the same cell.
template <class Value, class Join>
RowEntries gather(const ColumnEntries& of, std::int64_t n_rows, Value value, Join join) {
    std::vector<std::int64_t> ends(static_cast<std::size_t>(n_rows) + 1, 0);
    for (std::int64_t e = 0; e < of.count(); ++e) {
        if (value(e) != 0.0) ++ends[static_cast<std::size_t>(of.rows[e]) + 1];
    }
    for (std::size_t r = 1; r < ends.size(); ++r) ends[r] += ends[r - 1];
    // Where the next entry of each row goes: in the end, where its entries end.
    std::vector<std::int64_t> next(ends.begin(), ends.end() - 1);
    RowEntries out{std::vector<double>(static_cast<std::size_t>(ends.back())),
                   std::vector<std::int64_t>(static_cast<std::size_t>(ends.back())), {}};
    std::int64_t joined = 0;
    for (std::int64_t k = 0; k < of.n_columns; ++k) {
        for (std::int64_t e = of.ends[k]; e < of.ends[k + 1]; ++e) {
            const double now = value(e);
            if (now == 0.0) continue;
            const auto row = static_cast<std::size_t>(of.rows[e]);
            auto at = static_cast<std::size_t>(next[row]);
            if (next[row] > ends[row] && out.columns[at - 1] == k) {
                out.data[at - 1] = join(out.data[at - 1], now);
                ++joined;
            } else {
                out.data[at] = now;
                out.columns[at] = k;
                ++next[row];
            }
        }
    }
    if (joined > 0) {  // close the gaps
        std::size_t to = 0;
        for (std::size_t row = 0; row < next.size(); ++row) {
            const auto from = static_cast<std::size_t>(ends[row]), end = static_cast<std::size_t>(next[row]);
            ends[row] = static_cast<std::int64_t>(to);
            for (std::size_t e = from; e < end; ++e, ++to) {
                out.data[to] = out.data[e];
                out.columns[to] = out.columns[e];
            }
        }
        ends.back() = static_cast<std::int64_t>(to);
        out.data.resize(to);
        out.columns.resize(to);
    }
    out.ends = std::move(ends);
    return out;
}

}  // namespace

RowEntries by_rows(const ColumnEntries& of, const double* data, std::int64_t n_rows) {
    return gather(
        of, n_rows, [&](std::int64_t e) { return data[e]; }, [](double a, double b) { return a + b; });
}

RowEntries status_by_rows(const ColumnEntries& of, const double* beta, const double* lower, const double* upper,
                          std::int64_t n_rows, const std::int64_t* which, std::int64_t count) {
    const auto status = [&](std::int64_t e) {
        return beta[e] == 0.0 ? 0.0 : beta[e] > lower[e] && beta[e] < upper[e] ? 1.0 : 2.0;
    };
    const RowEntries all = gather(of, n_rows, status, [](double a, double b) { return std::min(a, b); });
    TakenRows taken = take_rows(all.ends.data(), which, count);
    RowEntries out{{}, {}, std::move(taken.ends)};
    for (const std::int64_t e : taken.entries) {
        out.data.push_back(all.data[static_cast<std::size_t>(e)]);
        out.columns.push_back(all.columns[static_cast<std::size_t>(e)]);
    }
    return out;
}

TakenRows take_rows(const std::int64_t* ends, const std::int64_t* rows, std::int64_t count) {
    TakenRows out;
    out.ends.reserve(static_cast<std::size_t>(count) + 1);
    out.ends.push_back(0);
    for (std::int64_t k = 0; k < count; ++k) {
        out.ends.push_back(out.ends.back() + ends[rows[k] + 1] - ends[rows[k]]);
    }
    out.entries.reserve(static_cast<std::size_t>(out.ends.back()));
    out.rows.reserve(static_cast<std::size_t>(out.ends.back()));
    for (std::int64_t k = 0; k < count; ++k) {
        for (std::int64_t e = ends[rows[k]]; e < ends[rows[k] + 1]; ++e) {
            out.entries.push_back(e);
            out.rows.push_back(k);
        }
    }
    return out;
}

}  // namespace mercer
