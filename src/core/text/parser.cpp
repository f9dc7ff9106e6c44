// A block is parsed without a bounds check per byte: it ends in a newline, and no loop runs past one.
#include "text/parser.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "text/decimal.hpp"
#include "threads/pool.hpp"

namespace mercer {
namespace {

constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::min();

struct Fault {
    const char* at;
    std::string what;
};

// The result of one block; lines are counted from the block's first.
struct Parsed {
    std::int64_t rows = 0, entries = 0, with_query = 0;
    std::int32_t least = std::numeric_limits<std::int32_t>::max(), largest = -1;
    std::optional<TextFault> fault;
};

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool ends_token(char c) { return is_blank(c) || c == '\n' || c == '#'; }

// A token for a message, with control characters escaped.
std::string quoted(const char* at) {
    std::string token = "'";
    for (const char* p = at; !is_blank(*p) && *p != '\n'; ++p) {
        if (p - at == 40) return token + "...'";
        const auto c = static_cast<unsigned char>(*p);
        if (c >= 32 && c < 127) {
            token += *p;
        } else {
            constexpr char kHex[] = "0123456789abcdef";
            token += {'\\', 'x', kHex[c >> 4], kHex[c & 15]};
        }
    }
    return token + "'";
}

class BlockParser {
public:
    BlockParser(const TextArrays& out, const TextBlock& block) : out_(out), row_(block.row), entry_(block.entry) {}

    Parsed parse(const char* begin, const char* end) {
        Parsed parsed;
        const std::int64_t first_row = row_, first_entry = entry_;
        std::int64_t line = 0;
        try {
            for (const char* p = begin; p != end; ++line) {
                line_ = p;
                p = parse_line(p, parsed);
            }
        } catch (const Fault& fault) {
            parsed.fault = TextFault{line + 1, fault.at - line_ + 1, fault.what};
        }
        parsed.rows = row_ - first_row;
        parsed.entries = entry_ - first_entry;
        return parsed;
    }

private:
    const TextArrays& out_;
    std::int64_t row_, entry_;
    const char* line_ = nullptr;

    [[noreturn]] static void fail(const char* at, std::string what) { throw Fault{at, std::move(what)}; }

    const char* parse_line(const char* p, Parsed& parsed) {
        while (is_blank(*p)) ++p;
        if (*p == '#') return past_line(p);
        if (*p == '\n') fail(p, "the line is empty, but every line begins with a label");
        double label;
        p = number(p, label, "label");
        if (!ends_token(*p)) fail(p, "expected a blank after the label, found " + quoted(p));
        while (is_blank(*p)) ++p;
        std::int64_t query = kNone;
        if (*p == 'q') {
            p = query_id(p, query);
            ++parsed.with_query;
        }
        p = entries(p, parsed);
        out_.labels[row_] = label;
        out_.queries[row_] = query == kNone ? 0 : query;
        out_.starts[++row_] = entry_;
        return past_line(p);
    }

    const char* entries(const char* p, Parsed& parsed) {
        std::int32_t last = -1;
        double* const values = out_.values;
        std::int32_t* const indices = out_.indices;
        std::int64_t entry = entry_;
        while (true) {
            while (is_blank(*p)) ++p;
            if (!detail::is_digit(*p)) break;
            const char* const token = p;
            std::int64_t index = 0;
            do {
                index = index * 10 + (*p++ - '0');
                if (index > std::numeric_limits<std::int32_t>::max()) {
                    fail(token, "index " + quoted(token) + " is larger than 2147483647, the largest that is read");
                }
            } while (detail::is_digit(*p));
            if (*p != ':') fail(token, "expected index:value, found " + quoted(token));
            ++p;
            const auto column = static_cast<std::int32_t>(index);
            if (column <= last) {
                fail(token, "indices must ascend, but " + std::to_string(column) + " follows " + std::to_string(last));
            }
            // A fast path for "1:1 ", which one-hot data mostly consist of.
            if (detail::is_digit(*p) && is_blank(p[1])) {
                values[entry] = *p - '0';
                p += 2;
            } else {
                p = number(p, values[entry], "value");
                if (!ends_token(*p)) fail(p, "expected a blank after the value, found " + quoted(p));
            }
            if (last < 0) parsed.least = std::min(parsed.least, column);
            indices[entry++] = last = column;
        }
        entry_ = entry;
        parsed.largest = std::max(parsed.largest, last);
        if (*p != '\n' && *p != '#') fail(p, "expected index:value, found " + quoted(p));
        return p;
    }

    static const char* number(const char* p, double& out, const char* name) {
        const char* const token = p;
        switch (read_decimal(p, out)) {
            case Decimal::ok: return p;
            case Decimal::overflow:
                fail(token, std::string("the ") + name + " " + quoted(token) + " overflows float64");
            default: fail(token, std::string("the ") + name + " " + quoted(token) + " is not a finite decimal number");
        }
    }

    static const char* query_id(const char* p, std::int64_t& query) {
        const char* const token = p;
        if (std::strncmp(p, "qid:", 4) != 0) fail(p, "expected index:value, found " + quoted(p));
        p += 4;
        const bool negative = *p == '-';
        p += negative;
        std::int64_t value = 0;
        const char* const first = p;
        for (; detail::is_digit(*p); ++p) {
            if (p - first == 18) fail(token, "the query " + quoted(token) + " has more than 18 digits");
            value = value * 10 + (*p - '0');
        }
        if (p == first || !ends_token(*p)) fail(token, "the query " + quoted(token) + " is not qid: and an integer");
        query = negative ? -value : value;
        return p;
    }

    static const char* past_line(const char* p) {
        while (*p != '\n') ++p;
        return p + 1;
    }
};

// Closes the gaps that comments leave, for which room was counted: moves what follows to the left.
void close_holes(const TextLayout& layout, const std::vector<Parsed>& parsed, const TextArrays& out) {
    std::int64_t row = 0, entry = 0;
    for (std::size_t b = 0; b < parsed.size(); ++b) {
        const TextBlock& block = layout.blocks[b];
        const std::int64_t rows = parsed[b].rows, entries = parsed[b].entries;
        if (block.row != row || block.entry != entry) {
            std::copy(out.labels + block.row, out.labels + block.row + rows, out.labels + row);
            std::copy(out.queries + block.row, out.queries + block.row + rows, out.queries + row);
            std::copy(out.indices + block.entry, out.indices + block.entry + entries, out.indices + entry);
            std::copy(out.values + block.entry, out.values + block.entry + entries, out.values + entry);
            for (std::int64_t i = 1; i <= rows; ++i) {
                out.starts[row + i] = out.starts[block.row + i] - (block.entry - entry);
            }
        }
        row += rows;
        entry += entries;
    }
}

// With 32-bit counters for 4096 bytes at a time, so that the compiler vectorises the loop.
void count(const char* p, const char* end, std::int64_t& newlines, std::int64_t& colons) {
    while (p != end) {
        const char* const stop = p + std::min<std::ptrdiff_t>(end - p, 4096);
        std::int32_t n = 0, c = 0;
        for (; p != stop; ++p) {
            n += *p == '\n';
            c += *p == ':';
        }
        newlines += n;
        colons += c;
    }
}

}  // namespace

TextLayout lay_out_text(const char* text, std::int64_t size, int n_threads, Poll& poll, std::int64_t block_bytes) {
    TextLayout layout;
    for (std::int64_t begin = 0; begin < size;) {
        const std::int64_t from = std::min(size, begin + block_bytes) - 1;
        const void* found = std::memchr(text + from, '\n', static_cast<std::size_t>(size - from));
        const std::int64_t end = found == nullptr ? size : static_cast<const char*>(found) - text + 1;
        layout.blocks.push_back({begin, end, 0, 0});
        begin = end;
    }
    const auto blocks = static_cast<std::int64_t>(layout.blocks.size());
    const auto count_block = [&](std::int64_t b) {
        TextBlock& block = layout.blocks[static_cast<std::size_t>(b)];
        count(text + block.begin, text + block.end, block.row, block.entry);
    };
    parallel_for(blocks, n_threads, count_block, poll);
    for (TextBlock& block : layout.blocks) {
        std::swap(block.row, layout.rows);
        std::swap(block.entry, layout.entries);
        layout.rows += block.row;
        layout.entries += block.entry;
    }
    if (size > 0 && text[size - 1] != '\n') ++layout.rows;
    return layout;
}

TextResult parse_text(const char* text, std::int64_t size, const TextLayout& layout, const TextArrays& out,
                      int n_threads, Poll& poll) {
    std::vector<Parsed> parsed(layout.blocks.size());
    out.starts[0] = 0;
    const auto parse_block = [&](std::int64_t b) {
        const TextBlock& block = layout.blocks[static_cast<std::size_t>(b)];
        BlockParser parser(out, block);
        Parsed& result = parsed[static_cast<std::size_t>(b)];
        if (block.end < size || text[size - 1] == '\n') {
            result = parser.parse(text + block.begin, text + block.end);
        } else {  // the newline that the text lacks
            std::string last(text + block.begin, text + block.end);
            last += '\n';
            result = parser.parse(last.data(), last.data() + last.size());
        }
    };
    parallel_for(static_cast<std::int64_t>(layout.blocks.size()), n_threads, parse_block, poll);

    TextResult total;
    std::int32_t least = std::numeric_limits<std::int32_t>::max();
    for (std::size_t b = 0; b < parsed.size(); ++b) {
        if (parsed[b].fault) {
            total.fault = std::move(parsed[b].fault);
            total.fault->line += layout.blocks[b].row;  // as many lines end before the block
            return total;
        }
        total.rows += parsed[b].rows;
        total.entries += parsed[b].entries;
        total.rows_with_query += parsed[b].with_query;
        total.largest_index = std::max(total.largest_index, parsed[b].largest);
        least = std::min(least, parsed[b].least);
    }
    if (total.entries > 0) total.least_index = least;
    if (total.rows < layout.rows || total.entries < layout.entries) close_holes(layout, parsed, out);
    return total;
}

}  // namespace mercer
