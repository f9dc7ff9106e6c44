// Two passes over the variables: the first finds each group's bias and how far its sum is off, the second the findings,
// and the variable that would take what a sum is off.
#include "solve/dual_findings.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "algebra/infinity.hpp"
#include "solve/equality.hpp"

namespace mercer {

namespace {

constexpr double kEps = std::numeric_limits<double>::epsilon();

struct GroupFindings {
    Bias bias;
    double upmost = -kInfinity, lowest = kInfinity;  // the ends of the gradient, with errors
    Total excess;
    Repair repair;
};

struct Gradient {
    double value, error;
};

Gradient gradient(const DualPoint& at, std::int64_t i) {
    const double u = at.u[at.row[i]], ridge = at.d[i] * at.beta[i];
    const double size = std::abs(at.p[i]) + std::abs(u) + std::abs(ridge);
    return {at.p[i] - u - ridge, at.error[at.row[i]] + 2.0 * kEps * size};
}

}  // namespace

DualFindings certify_dual(const DualPoint& at) {
    const auto count = static_cast<std::size_t>(at.n_groups);
    // The last one is for variables without a group, whose gradients are compared with zero.
    std::vector<GroupFindings> groups(count + 1);
    groups[count].upmost = groups[count].lowest = 0.0;
    Total together;
    for (std::int64_t i = 0; i < at.n; ++i) {
        const std::int32_t g = at.group[i];
        GroupFindings& group = groups[g < 0 ? count : static_cast<std::size_t>(g)];
        const auto [h, error] = gradient(at, i);
        const double beta = at.beta[i];
        const bool up = beta<at.upper[i], low = beta> at.lower[i];
        group.bias.add(h, up, low);
        if (up) raise_to(h + error, &group.upmost);
        if (low) lower_to(h - error, &group.lowest);
        if (g >= 0 && beta != 0.0) {
            group.excess.add(beta);
            if (count > 1) together.add(beta);
        }
    }

    DualFindings out;
    for (std::size_t g = 0; g < count; ++g) {
        out.bias.push_back(groups[g].bias.value());
        groups[g].excess.add(-at.totals[g]);
        together.add(-at.totals[g]);
        const double rounding = rounding_of(at.totals[g]);
        out.equality = std::max(out.equality, groups[g].excess.most() + rounding);
        groups[g].repair = Repair(groups[g].excess, rounding);
        raise_to(groups[g].upmost - groups[g].lowest, &out.violation);
    }
    if (count > 1) out.equality = std::max(out.equality, together.most());
    raise_to(groups[count].upmost, &out.violation);
    raise_to(-groups[count].lowest, &out.violation);

    for (std::int64_t i = 0; i < at.n; ++i) {
        const auto [h, error] = gradient(at, i);
        const double beta = at.beta[i], d = at.d[i], p = h + d * beta;
        double b = 0.0;
        if (at.group[i] >= 0) {
            const auto g = static_cast<std::size_t>(at.group[i]);
            b = out.bias[g];
            groups[g].repair.offer(h, error, b, beta, at.lower[i], at.upper[i], d, at.reach[at.row[i]]);
        }
        accumulate(p, b, error, d, at.lower[i], at.upper[i], beta, i, &out.found);
        out.gain += at.p[i] * beta;
        out.curved += d * beta * beta;
        out.size += std::abs(beta) * (std::abs(at.p[i]) + std::abs(at.u[at.row[i]]));
    }
    for (std::int64_t k = 0; k < at.n_rows; ++k) {
        out.energy += at.coefficients[k] * at.u[k];
        out.wrong += std::abs(at.coefficients[k]) * at.error[k];
    }
    for (const GroupFindings& group : groups) out.repair.add(group.repair.cost());
    if (out.found.box > 0.0) out.repair = MoveCost::without_end();
    return out;
}

}  // namespace mercer
