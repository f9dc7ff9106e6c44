// Classes of integer labels by counting, which takes a fraction of the time of sorting them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mercer {

// The classes in ascending order, and the index of each label's class.
struct ClassCodes {
    std::vector<std::int64_t> classes, codes;
};

// No classes if the labels span `most_values` integers or more.
inline ClassCodes class_codes(const std::int64_t* labels, std::size_t n, std::uint64_t most_values) {
    ClassCodes out;
    if (n == 0 || most_values < 2) return out;
    const auto [least, largest] = std::minmax_element(labels, labels + n);
    const auto low = static_cast<std::uint64_t>(*least);  // differences of unsigned numbers do not overflow
    const std::uint64_t last = static_cast<std::uint64_t>(*largest) - low;
    if (last >= most_values - 1) return out;
    std::vector<std::int64_t> code(static_cast<std::size_t>(last) + 1, -1);
    for (std::size_t i = 0; i < n; ++i) code[static_cast<std::uint64_t>(labels[i]) - low] = 0;
    for (std::size_t offset = 0; offset < code.size(); ++offset) {
        if (code[offset] < 0) continue;
        code[offset] = static_cast<std::int64_t>(out.classes.size());
        out.classes.push_back(static_cast<std::int64_t>(low + offset));
    }
    out.codes.reserve(n);
    for (std::size_t i = 0; i < n; ++i) out.codes.push_back(code[static_cast<std::uint64_t>(labels[i]) - low]);
    return out;
}

}  // namespace mercer
