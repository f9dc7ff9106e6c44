// LIBSVM and SVMlight text, `label [qid:n] index:value ... # comment`, parsed into CSR arrays.
//
// Two passes over the text: `lay_out_text` cuts it into blocks of whole lines and counts, so that the caller can
// allocate once; `parse_text` then writes every block to its final place, many blocks at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "threads/interrupt.hpp"

namespace mercer {

// Where a block of lines is in the text, and where its rows and entries go. There is no entry without a colon, so lines
// and colons are counted.
struct TextBlock {
    std::int64_t begin, end;  // bytes, whole lines
    std::int64_t row, entry;  // at most this many come before it
};

struct TextLayout {
    std::vector<TextBlock> blocks;
    std::int64_t rows = 0, entries = 0;  // upper bounds: comments count too
};

// The first thing wrong with a text. Line and column count from 1.
struct TextFault {
    std::int64_t line, column;
    std::string what;
};

// Room for as many rows and entries as the layout says.
struct TextArrays {
    double* labels;         // rows
    std::int64_t* starts;   // rows + 1
    std::int64_t* queries;  // rows
    std::int32_t* indices;  // entries, as written in the text
    double* values;         // entries
};

struct TextResult {
    std::int64_t rows = 0, entries = 0;
    std::int32_t least_index = 0, largest_index = -1;  // of all entries, if there are any
    std::int64_t rows_with_query = 0;
    std::optional<TextFault> fault;  // if set, the arrays hold nothing of use
};

TextLayout lay_out_text(const char* text, std::int64_t size, int n_threads, Poll& poll,
                        std::int64_t block_bytes = std::int64_t{1} << 19);

// Every number is the double nearest to its decimal text, whatever the locale; nan, inf and overflow are faults.
TextResult parse_text(const char* text, std::int64_t size, const TextLayout& layout, const TextArrays& out,
                      int n_threads, Poll& poll);

}  // namespace mercer
