// Cost of making coefficients feasible whose sum differs from its total, if only by rounding.
//
// One variable of the group takes the excess t. With the gradient h and any b,
//
//     D(beta - t e_j) = D(beta) - t h_j - t^2 (K_jj + d_j) / 2,
//     P(beta, b) - D(beta - t e_j) = sum of shares + t (h_j - b) + t^2 (K_jj + d_j) / 2,
//
// so that the dual value of a feasible point, and the gap to it, are known. Where no variable has room for all of t, some
// take parts of it: the room of all is enough if the problem has a feasible point, and the same formulas with the largest
// |h - b|, K_jj and d_j of those that may move are bounds. b times the excess is none: it is for the optimal b alone.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "algebra/doubled.hpp"
#include "algebra/infinity.hpp"

namespace mercer {

// x as an upper bound; infinity if it is NaN by overflow.
inline double at_most(double x) { return x < kInfinity ? x : kInfinity; }

// Bounds on what moving variables adds to the gap and takes from the dual value: first-order terms, and the lengths and
// ridges of the second-order ones.
struct MoveCost {
    double gap = 0.0, dual = 0.0, length = 0.0, ridge = 0.0;

    double second_order() const { return 0.5 * (1.0 + 1e-6) * (length * length + ridge); }  // lengths were rounded
    // Infinity for a point that cannot be moved.
    static MoveCost without_end() { return {kInfinity, kInfinity, kInfinity, kInfinity}; }
    double of_gap() const { return rounded(gap + second_order()); }
    double of_dual() const { return rounded(dual + second_order()); }
    void raise(const MoveCost& other) {
        gap = std::max(gap, other.gap), dual = std::max(dual, other.dual);
        length = std::max(length, other.length), ridge = std::max(ridge, other.ridge);
    }
    void add(const MoveCost& other) {
        gap += other.gap, dual += other.dual, length += other.length, ridge += other.ridge;
    }
    static double rounded(double x) { return at_most(x * (1.0 + 16.0 * std::numeric_limits<double>::epsilon())); }
};

namespace {

// A sum of coefficients; `Doubled` says what rounding may hide of it.
struct Total {
    static constexpr double kEps = std::numeric_limits<double>::epsilon();
    Doubled<double> sum;
    double size = 0.0;
    std::int64_t terms = 0;

    bool exact = true;

    void add(double x) {
        const double before = sum.low;
        sum.low = 0.0;
        sum.collect(x);
        exact = exact && sum.low == 0.0;
        sum.low += before;
        size += std::abs(x);
        ++terms;
    }
    double hidden() const {
        if (exact && size < kInfinity) return 0.0;
        const double share = kEps * static_cast<double>(terms);  // twice m u, for roundings of `size` and of this
        return share * share * size;
    }
    // The most that its absolute value can be.
    double most() const { return at_most((1.0 + kEps) * std::abs(sum.high + sum.low) + hidden()); }
    // The most that it can be.
    double highest(double sign = 1.0) const {
        const double value = sign * (sum.high + sum.low);
        return at_most(value + kEps * std::abs(value) + hidden());
    }
};

// Whole totals are exact; others, such as a share of all weights, were rounded.
inline double rounding_of(double total) {
    return total == std::rint(total) ? 0.0 : 4.0 * Total::kEps * std::abs(total);
}

// Looks for the variable of a group that takes the excess at the least cost.
class Repair {
public:
    // `excess` is the sum of coefficients minus a total that is itself known up to `rounding`.
    Repair(const Total& excess, double rounding)
        : below_(std::max(excess.highest() + rounding, 0.0)), above_(std::max(excess.highest(-1.0) + rounding, 0.0)) {}
    Repair() = default;

    bool needed() const { return below_.amount > 0.0 || above_.amount > 0.0; }

    // A variable with the gradient h, which may be off by `error`, and K_jj <= reach^2.
    void offer(double h, double error, double b, double beta, double lower, double upper, double d, double reach) {
        below_.consider(beta - lower, h, error, b, d, reach);
        above_.consider(upper - beta, h, error, b, d, reach);
    }

    MoveCost cost() const {
        MoveCost most = below_.cost();
        most.raise(above_.cost());
        return most;
    }

private:
    // The sum has to fall, or to rise, by `amount` at most.
    struct Side {
        double amount = 0.0;
        MoveCost best = MoveCost::without_end(), largest{};
        bool found = false;

        Side() = default;
        explicit Side(double most) : amount(most) {}

        void consider(double room, double h, double error, double b, double d, double reach) {
            if (!(amount > 0.0) || room <= 0.0) return;
            const double off = error + Total::kEps * (std::abs(h) + std::abs(b));
            const MoveCost own{at_most(amount * (std::abs(h - b) + off)), at_most(amount * (std::abs(h) + off)),
                               at_most(amount * reach), at_most(d * amount * amount)};
            largest.raise(own);
            if (room * (1.0 - 2.0 * Total::kEps) >= amount && !(own.of_gap() > best.of_gap())) best = own, found = true;
        }
        MoveCost cost() const { return found ? best : largest; }
    };

    Side below_, above_;
};

}  // namespace
}  // namespace mercer
