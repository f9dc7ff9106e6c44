// The text parser on random bytes: a seeded mutation loop, or libFuzzer's target where clang builds it with
//
//   tests/fuzz/run text 600
//
// As a program: fuzz_text [seconds] [seed]. Whatever the bytes are, the parser finds a fault inside the text, or fills
// arrays that are a CSR matrix of finite numbers, the same for every size of block.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "text/parser.hpp"

namespace {

#define EXPECT(condition)                                                        \
    do {                                                                         \
        if (!(condition)) {                                                      \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            std::abort();                                                        \
        }                                                                        \
    } while (false)

struct Read {
    mercer::TextResult result;
    std::vector<double> labels, values;
    std::vector<std::int64_t> starts, queries;
    std::vector<std::int32_t> indices;
};

Read read(const std::vector<char>& text, std::int64_t block_bytes) {
    mercer::Poll poll;
    const auto size = static_cast<std::int64_t>(text.size());
    const mercer::TextLayout layout = mercer::lay_out_text(text.data(), size, 1, poll, block_bytes);
    const auto rows = static_cast<std::size_t>(layout.rows), entries = static_cast<std::size_t>(layout.entries);
    EXPECT(rows <= text.size() && entries <= text.size());
    Read out;
    out.labels.resize(rows);
    out.queries.resize(rows);
    out.starts.resize(rows + 1);
    out.indices.resize(entries);
    out.values.resize(entries);
    const mercer::TextArrays arrays{out.labels.data(), out.starts.data(), out.queries.data(), out.indices.data(),
                                    out.values.data()};
    out.result = mercer::parse_text(text.data(), size, layout, arrays, 1, poll);
    return out;
}

void check(const std::uint8_t* data, std::size_t size) {
    // A vector of its own, so that the sanitizer sees a read behind the last byte.
    const std::vector<char> text(data, data + size);
    const Read whole = read(text, 1 << 19), pieces = read(text, 7);
    const mercer::TextResult& result = whole.result;
    EXPECT(result.fault.has_value() == pieces.result.fault.has_value());
    if (result.fault) {
        EXPECT(result.fault->line >= 1 && result.fault->column >= 1 && !result.fault->what.empty());
        EXPECT(result.fault->line == pieces.result.fault->line && result.fault->column == pieces.result.fault->column);
        EXPECT(result.fault->what == pieces.result.fault->what);
        return;
    }
    EXPECT(result.rows == pieces.result.rows && result.entries == pieces.result.entries);
    EXPECT(whole.starts[0] == 0 && whole.starts[static_cast<std::size_t>(result.rows)] == result.entries);
    for (std::size_t i = 0; i < static_cast<std::size_t>(result.rows); ++i) {
        EXPECT(std::isfinite(whole.labels[i]) && whole.labels[i] == pieces.labels[i]);
        EXPECT(whole.queries[i] == pieces.queries[i]);
        EXPECT(whole.starts[i] <= whole.starts[i + 1] && whole.starts[i + 1] == pieces.starts[i + 1]);
        for (auto k = static_cast<std::size_t>(whole.starts[i]); k < static_cast<std::size_t>(whole.starts[i + 1]);
             ++k) {
            EXPECT(std::isfinite(whole.values[k]) && whole.values[k] == pieces.values[k]);
            EXPECT(whole.indices[k] == pieces.indices[k]);
            EXPECT(whole.indices[k] >= result.least_index && whole.indices[k] <= result.largest_index);
            EXPECT(k == static_cast<std::size_t>(whole.starts[i]) || whole.indices[k - 1] < whole.indices[k]);
        }
    }
}

}  // namespace

#if defined(MERCER_LIBFUZZER)
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    check(data, size);
    return 0;
}
#else

namespace {

const char* const kCorpus[] = {
    "+1 1:0.708333 2:1 3:1 4:-0.320755 5:-0.105023\n-1 1:0.583333 2:-1 3:0.333333\n",
    "1\n2 \n-3 7:1e-5\n4 2147483647:1\n",
    "3 qid:1 1:1 2:1 3:0 # 1A\n2 qid:1 1:0 2:0 3:1 # 1B: x\n",
    "# a comment: 1:2\n1 1:1\r\n-1\t2:2\t\r\n",
    "15 0:1 1:4 2:6 3:1\n45 0:2 1:6 2:18 3:0\n",
    "1 1:179769313486231570814527423731704356798070e267 2:4.9e-324 3:1e-400 4:123456789012345678901234567890\n",
    "0.1 1:.5 2:5. 3:+5 4:-.5e+3\n",
};
const char* const kPieces[] = {":",
                               " ",
                               "\n",
                               "#",
                               "qid:",
                               "nan",
                               "inf",
                               "-",
                               "e",
                               ".",
                               "0x1",
                               "1:1 ",
                               "99999999999",
                               "\r\n",
                               "e-99999999999999999999",
                               "00000000000000000000000000000001",
                               "\t",
                               "1e400",
                               ""};

std::vector<char> mutated(std::mt19937_64& random) {
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    const char* const seed = kCorpus[below(std::size(kCorpus))];
    std::vector<char> text(seed, seed + std::strlen(seed));
    for (std::size_t changes = 1 + below(6); changes > 0; --changes) {
        const std::size_t at = below(text.size() + 1);
        const auto place = text.begin() + static_cast<std::ptrdiff_t>(at);
        const char* const piece = kPieces[below(std::size(kPieces))];
        switch (below(6)) {
            case 0: text.insert(place, piece, piece + std::strlen(piece)); break;
            case 1: text.insert(place, static_cast<char>(random())); break;
            case 2:
                if (at < text.size()) text[at] = static_cast<char>(random());
                break;
            case 3:
                if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
                break;
            case 4: text.resize(at); break;
            default: {
                const std::size_t count = std::min<std::size_t>(below(12), text.size() - at);
                const std::vector<char> copy(place, place + static_cast<std::ptrdiff_t>(count));
                text.insert(text.begin() + static_cast<std::ptrdiff_t>(below(text.size() + 1)), copy.begin(),
                            copy.end());
            }
        }
    }
    return text;
}

}  // namespace

int main(int argc, char** argv) {
    const double seconds = argc > 1 ? std::atof(argv[1]) : 5.0;
    std::mt19937_64 random(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
    const auto begin = std::chrono::steady_clock::now();
    for (const char* text : kCorpus) {
        for (std::size_t n = 0; n <= std::strlen(text); ++n) check(reinterpret_cast<const std::uint8_t*>(text), n);
    }
    std::int64_t runs = 0;
    while (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() < seconds) {
        for (int k = 0; k < 1000; ++k, ++runs) {
            const std::vector<char> text = mutated(random);
            check(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
        }
    }
    std::printf("%lld texts\n", static_cast<long long>(runs));
    return 0;
}
#endif
