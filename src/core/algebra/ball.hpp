// Numbers with bounds on their errors, as in src/mercer/places/ball.py, which has the derivations: the same operations in
// the same order, for problems that are too many or too small for NumPy. Compile without contraction.
#pragma once

#include <cmath>
#include <limits>

#include "algebra/infinity.hpp"

namespace mercer {

struct Ball {
    static constexpr double kUnit = 0x1p-53, kUp = 1.0 + 8.0 * kUnit;
    static constexpr double kLeast = std::numeric_limits<double>::denorm_min();

    double value, error;

    // A number of which only an upper bound on the absolute value is known.
    static Ball within(double bound) { return {0.0 * bound, bound}; }

    // Bounds on the true number, infinite where nothing is known.
    double high() const { return rounded_up(value, error); }
    double low() const { return -rounded_up(-value, error); }

    friend Ball operator+(const Ball& x, const Ball& y) {
        const double sum = x.value + y.value;
        return {sum, (x.error + y.error + kUnit * std::abs(sum)) * kUp};
    }
    friend Ball operator+(const Ball& x, double y) { return shifted(x.value + y, x.error); }
    friend Ball operator-(const Ball& x, double y) { return shifted(x.value - y, x.error); }
    friend Ball operator-(double x, const Ball& y) { return shifted(x - y.value, y.error); }
    friend Ball operator*(const Ball& x, double y) {
        const double product = x.value * y, size = std::abs(y);
        const double error = size * x.error + kUnit * std::abs(product);
        const double underflow = std::abs(x.value) + x.error > 0.0 && size > 0.0 ? 4.0 * kLeast : 0.0;
        return {product, error * kUp + underflow};
    }

private:
    static Ball shifted(double value, double error) { return {value, (error + kUnit * std::abs(value)) * kUp}; }
    static double rounded_up(double value, double error) {
        double sum = value + error;
        sum += 2.0 * kUnit * std::abs(sum);
        return sum > -kInfinity ? sum : kInfinity;  // also where it is NaN
    }
};

}  // namespace mercer
