// A number as an unevaluated sum of two: twice the precision of float64. V is double, or a vector of them.
//
// Sums come in two kinds. `collect` adds a term to `high` exactly and what that rounds to `low`: after m of them, with
// u = 2^-53, |high + low - sum| <= (m u / (1 - m u))^2 sum |term| (Ogita, Rump and Oishi's Sum2 and Dot2, "Accurate sum
// and dot product", SIAM J. Sci. Comput. 26, 2005, propositions 4.5 and 5.5 before their last addition). `plus` and
// `times` keep |low| <= u |high|, with relative errors below 2^-104 and 2^-103 (Joldes, Muller and Popescu, "Tight and
// rigorous error bounds for basic building blocks of double-word arithmetic", ACM Trans. Math. Softw. 44, 2017).
//
// Contraction of a * b + c does not touch sums of sums. A product must be rounded before it is added here.
#pragma once

#include "algebra/arithmetic.hpp"

namespace mercer {
namespace {

template <class V>
struct Doubled {
    V high{}, low{};

    // a + b, exactly.
    static Doubled of_sum(V a, V b) {
        const V sum = a + b, of_b = sum - a;
        return {sum, (a - (sum - of_b)) + (b - of_b)};
    }

    void collect(V term) {
        const Doubled sum = of_sum(high, term);
        high = sum.high;
        low += sum.low;
    }

    // The same number with |low| <= u |high|, if |low| <= |high|.
    Doubled normal() const {
        const V sum = high + low;
        return {sum, low - (sum - high)};
    }

    Doubled plus(const Doubled& other) const {
        const Doubled highs = of_sum(high, other.high), lows = of_sum(low, other.low);
        const Doubled first = Doubled{highs.high, highs.low + lows.high}.normal();
        return Doubled{first.high, first.low + lows.low}.normal();
    }
};

}  // namespace
}  // namespace mercer
