#include "solve/pair_values.hpp"

#include <cmath>

#include "algebra/ball.hpp"
#include "algebra/infinity.hpp"

namespace mercer {

namespace {

double known(double value) { return value == value ? value : kInfinity; }

// NaN if one of them is.
double larger(double x, double y) { return x != x ? x : y != y ? y : x > y ? x : y; }

// primal - dual rounded upwards: Knuth's TwoSum gives the sign of its rounding error.
double difference_above(double primal, double dual) {
    const double difference = primal - dual, moved = difference - primal;
    const bool rounded_down = primal - (difference - moved) > dual + moved;
    return rounded_down ? std::nextafter(difference, kInfinity) : difference;
}

}  // namespace

PairValues pair_values(const PairSums& found, bool paired, double share) {
    // An upper bound on the sum of |beta| (|p| + |u|) and the other sizes: gain is the sum of |beta|, and where beta f is
    // negative, |beta f| is at most the loss and half of d beta^2.
    const double size = std::abs(found.energy) + 3.0 * found.losses + 2.0 * found.curved + (1.0 + std::abs(found.b)) * found.gain;
    const Ball half = Ball{found.energy, (1.0 + share) * found.wrong} * 0.5 + Ball::within(share * size);
    const double ends = paired ? found.top - found.bottom : larger(found.top, -found.bottom);
    PairValues out;
    out.primal = (half + found.losses).high();
    out.dual = (found.gain - half - 0.5 * found.curved - found.to_dual).low();
    out.gap = larger(known(found.shares + found.to_gap), difference_above(out.primal, out.dual));
    out.violation = found.to_gap < kInfinity ? known(larger(ends, 0.0)) : kInfinity;
    out.box = known(found.box);
    out.equality = paired ? known(found.total) : 0.0;
    out.outward = known(found.outward);
    out.inward = known(found.inward);
    return out;
}

}  // namespace mercer
