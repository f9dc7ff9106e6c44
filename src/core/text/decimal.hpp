// Decimal text to the nearest double: one multiplication or division where that is exact, std::from_chars elsewhere.
#pragma once

#include <charconv>
#include <cstdint>
#if !defined(__cpp_lib_to_chars)
#include <locale>
#include <sstream>
#include <string>
#endif

namespace mercer {

enum class Decimal { ok, none, overflow };

namespace detail {

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

// Whether |x| < 1, for an x that is out of range; its significant digits are to be multiplied by 10^exponent.
inline bool below_one(const char* p, std::int64_t exponent) {
    std::int64_t significant = 0;
    for (; is_digit(*p) || *p == '.' || *p == '-'; ++p) {
        if (is_digit(*p)) significant += significant > 0 || *p != '0';
    }
    return significant + exponent <= 0;
}

// The general case: [first, last) is known to be a decimal number, without a plus sign; all its digits together are
// to be multiplied by 10^exponent.
inline Decimal exact_decimal(const char* first, const char* last, std::int64_t exponent, double& out) {
#if defined(__cpp_lib_to_chars)
    const auto [end, error] = std::from_chars(first, last, out);
    if (error == std::errc()) return end == last ? Decimal::ok : Decimal::none;
#else
    std::istringstream stream(std::string(first, last));
    stream.imbue(std::locale::classic());
    if (stream >> out) return Decimal::ok;
#endif
    if (!below_one(first, exponent)) return Decimal::overflow;
    out = *first == '-' ? -0.0 : 0.0;
    return Decimal::ok;
}

}  // namespace detail

// Reads a number at `at` and moves `at` behind it. The text must end, somewhere, in a character that is not part of a
// number, such as a newline: that is what stops the loops.
inline Decimal read_decimal(const char*& at, double& out) {
    using detail::is_digit;
    static constexpr double kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                         1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const char* p = at;
    const bool negative = *p == '-';
    p += *p == '-' || *p == '+';
    const char* first = p;
    std::uint64_t mantissa = 0;
    while (is_digit(*p)) mantissa = mantissa * 10 + static_cast<std::uint64_t>(*p++ - '0');
    std::int64_t digits = p - first, exponent = 0;
    if (*p == '.') {
        const char* point = ++p;
        while (is_digit(*p)) mantissa = mantissa * 10 + static_cast<std::uint64_t>(*p++ - '0');
        exponent = point - p;
        digits -= exponent;
    }
    if (digits == 0) return Decimal::none;
    if (*p == 'e' || *p == 'E') {
        const char* q = p + 1;
        const bool down = *q == '-';
        q += *q == '-' || *q == '+';
        if (!is_digit(*q)) return Decimal::none;
        std::int64_t power = 0;
        for (; is_digit(*q); ++q) power = power < 100000 ? power * 10 + (*q - '0') : power;
        exponent += down ? -power : power;
        p = q;
    }
    // 19 digits fit into 64 bits. Both factors are exact then, and the one rounding is the right one (Clinger 1990).
    if (digits <= 19 && mantissa <= (std::uint64_t{1} << 53) && exponent >= -22 && exponent <= 22) {
        const double m = static_cast<double>(mantissa);
        const double value = exponent < 0 ? m / kPowers[-exponent] : m * kPowers[exponent];
        out = negative ? -value : value;
        at = p;
        return Decimal::ok;
    }
    const Decimal result = detail::exact_decimal(negative ? first - 1 : first, p, exponent, out);
    at = p;
    return result;
}

}  // namespace mercer
