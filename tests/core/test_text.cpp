// Numbers exact to the last bit, faults where they are, and the same arrays for every cut into blocks.
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "check.hpp"
#include "text/decimal.hpp"
#include "text/parser.hpp"

namespace {

struct Read {
    mercer::TextResult result;
    std::vector<double> labels, values;
    std::vector<std::int64_t> starts, queries;
    std::vector<std::int32_t> indices;
};

Read read(const std::string& text, std::int64_t block_bytes, int n_threads) {
    mercer::Poll poll;
    const auto size = static_cast<std::int64_t>(text.size());
    const auto layout = mercer::lay_out_text(text.data(), size, n_threads, poll, block_bytes);
    const auto rows = static_cast<std::size_t>(layout.rows), entries = static_cast<std::size_t>(layout.entries);
    Read out{{},
             std::vector<double>(rows),
             std::vector<double>(entries),
             std::vector<std::int64_t>(rows + 1),
             std::vector<std::int64_t>(rows),
             std::vector<std::int32_t>(entries)};
    const mercer::TextArrays arrays{out.labels.data(), out.starts.data(), out.queries.data(), out.indices.data(),
                                    out.values.data()};
    out.result = mercer::parse_text(text.data(), size, layout, arrays, n_threads, poll);
    return out;
}

void numbers_are_those_of_strtod() {
    std::mt19937_64 random(3);
    std::vector<std::string> texts = {"0",
                                      "-0",
                                      "+7",
                                      "5.",
                                      ".5",
                                      "1e22",
                                      "1e23",
                                      "9007199254740993",
                                      "4.9e-324",
                                      "2e-324",
                                      "1.7976931348623157e308",
                                      "2.2250738585072011e-308",
                                      "1e-400",
                                      "0." + std::string(400, '0') + "1",
                                      std::string(300, '9') + "e-290"};
    for (int k = 0; k < 200000; ++k) {
        std::string text = random() % 2 ? "-" : "";
        for (std::size_t digits = 1 + random() % 22; digits > 0; --digits) {
            text += static_cast<char>('0' + random() % 10);
        }
        if (random() % 2) {
            const auto behind = static_cast<std::ptrdiff_t>(random() % (text.size() - (text[0] == '-')));
            text.insert(text.end() - behind, '.');
        }
        if (random() % 2) {
            text += 'e';
            text += std::to_string(static_cast<int>(random() % 600) - 310);
        }
        texts.push_back(text);
    }
    for (const std::string& text : texts) {
        const std::string line = text + "\n";
        const char* at = line.data();
        double value = 0;
        const mercer::Decimal kind = mercer::read_decimal(at, value);
        const double expected = std::strtod(line.data(), nullptr);  // in the C locale, which tests run in
        if (std::isinf(expected)) {
            CHECK(kind == mercer::Decimal::overflow);
        } else {
            CHECK(kind == mercer::Decimal::ok);
            CHECK(value == expected);
            CHECK(std::signbit(value) == std::signbit(expected));
            CHECK(at == line.data() + text.size());
        }
    }
    for (const char* text : {"\n", "-\n", ".\n", "e5\n", "nan\n", "inf\n", "1e\n", "1e+\n", "+-1\n", "-inf\n"}) {
        const char* at = text;
        double value;
        CHECK(mercer::read_decimal(at, value) == mercer::Decimal::none);
    }
}

void every_cut_gives_the_same_arrays() {
    std::string text = "# first: a comment\n";
    for (int i = 0; i < 500; ++i) {
        text += std::to_string(i % 3 - 1) + " qid:" + std::to_string(i / 7) + " ";
        for (int j = i % 5; j < 40; j += 1 + i % 4) {
            text += std::to_string(j) + ":" + std::to_string(i - 0.37 * j) + " ";
        }
        text += i % 11 == 0 ? "# tail: " + std::string(static_cast<std::size_t>(i), ':') + "\n" : "\r\n";
    }
    text += "1 qid:3 5:2";  // no newline at the end
    const Read whole = read(text, 1 << 20, 1);
    CHECK(!whole.result.fault);
    CHECK(whole.result.rows == 501);
    CHECK(whole.result.rows_with_query == 501);
    CHECK(whole.result.least_index == 0 && whole.result.largest_index == 39);
    const auto entries = static_cast<std::size_t>(whole.result.entries);
    CHECK(whole.indices[entries - 1] == 5 && whole.values[entries - 1] == 2.0);
    for (const std::int64_t block : {1, 13, 100, 4096}) {
        for (const int n_threads : {1, 3}) {
            const Read cut = read(text, block, n_threads);
            CHECK(cut.result.rows == whole.result.rows && cut.result.entries == whole.result.entries);
            for (std::size_t i = 0; i < 501; ++i) {
                CHECK(cut.labels[i] == whole.labels[i] && cut.queries[i] == whole.queries[i]);
                CHECK(cut.starts[i + 1] == whole.starts[i + 1]);
            }
            for (std::size_t k = 0; k < entries; ++k) {
                CHECK(cut.indices[k] == whole.indices[k] && cut.values[k] == whole.values[k]);
            }
        }
    }
}

void faults_say_where() {
    struct Case {
        const char *text, *what;
        std::int64_t line, column;
    };
    const Case cases[] = {
        {"1 1:1\n1 2:x\n", "not a finite decimal", 2, 5},
        {"1 1:1\n\n1\n", "line is empty", 2, 1},
        {"1 1:1\n  \n", "line is empty", 2, 3},
        {"x 1:1\n", "label 'x'", 1, 1},
        {"1 2:1 2:1\n", "must ascend, but 2 follows 2", 1, 7},
        {"1 1:1e400\n", "overflows", 1, 5},
        {"1 2147483648:1\n", "larger than 2147483647", 1, 3},
        {"1 99999999999999999999999:1\n", "larger than", 1, 3},
        {"1 1:\n", "not a finite decimal", 1, 5},
        {"1 1 2\n", "expected index:value, found '1'", 1, 3},
        {"1 1:2:3\n", "expected a blank after the value", 1, 6},
        {"1 -1:2\n", "found '-1:2'", 1, 3},
        {"1 qid:x 1:1\n", "is not qid: and an integer", 1, 3},
        {"1 1:1 qid:1\n", "expected index:value", 1, 7},
        {"1;1:1\n", "expected a blank after the label", 1, 2},
        {"1 1:\x01\xff\n", "'\\x01\\xff'", 1, 5},
        {"1 1:infinity\n", "'infinity'", 1, 5},
        {"nan 1:1\n", "label 'nan'", 1, 1},
    };
    for (const Case& c : cases) {
        for (const std::int64_t block : {1, 1000}) {
            const Read out = read(c.text, block, 2);
            CHECK(out.result.fault.has_value());
            CHECK(out.result.fault->line == c.line);
            CHECK(out.result.fault->column == c.column);
            CHECK(out.result.fault->what.find(c.what) != std::string::npos);
        }
    }
    // Of several faults the first is reported, however the text is split.
    CHECK(read("1 1:1\n1 a:1\n1 b:1\n", 1, 3).result.fault->line == 2);
    CHECK(read("", 10, 1).result.rows == 0);
}

}  // namespace

int main() {
    numbers_are_those_of_strtod();
    every_cut_gives_the_same_arrays();
    faults_say_where();
    std::printf("text parser: %s\n", failures == 0 ? "passed" : "FAILED");
    return failures == 0 ? 0 : 1;
}
