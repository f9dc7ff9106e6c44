// Reads the arrays that describe the variables of a problem with bounds.
#pragma once

#include "bind/arguments.hpp"
#include "bind/stop_reason.hpp"

// Where the variables start and end up, their bounds, and what is added to the diagonal of K.
struct Variables {
    Variables(AnyArray beta_, AnyArray lower_, AnyArray upper_, AnyArray d_, std::size_t n)
        : beta(vector<double>(beta_, "beta", n)),
          lower(vector<const double>(lower_, "lower", n)),
          upper(vector<const double>(upper_, "upper", n)),
          d(vector<const double>(d_, "d", n)) {}

    Vector<double> beta;
    Vector<const double> lower, upper, d;
};

inline Vector<const std::int32_t> group_of_each(AnyArray group, std::size_t n) {
    const auto out = vector<const std::int32_t>(group, "group", n);
    if (!mercer::all_within(out.data(), n, -1, INT32_MAX)) {
        refuse("group", "must hold group numbers from 0, or -1 for no equality");
    }
    return out;
}

// The rows of K may lie apart.
template <class Array>
void check_contiguous_rows(const Array& K) {
    if (K.shape(1) > 1 && K.stride(1) != 1) refuse("K", "must have contiguous rows");
}

// How steps ended: an SmoResult or a JointResult.
template <class Result>
TupleOf<std::int64_t, double, nb::str> how_ended(const Result& result) {
    return nb::make_tuple(result.steps, result.violation, word_of(result.reason));
}
