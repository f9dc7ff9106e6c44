// The machines of the page: their dual problems, solved by the library's own pair steps, made exact, and certified.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernel.hpp"
#include "solve/homotopy.hpp"

namespace mercer::page {

// maximise p'b - 1/2 b'Kb subject to lower <= b <= upper and a sum for each group; K is that of m points.
struct Problem {
    Vector p, lower, upper, totals;
    std::vector<std::int64_t> row;  // of each variable
    std::vector<std::int32_t> group;
    Vector kernel;
    std::size_t m;

    std::size_t n() const { return p.size(); }
    Vector coefficients(const Vector& beta) const;
    Family family() const;     // constant in t; one group only
    Family in_bounds() const;  // with bounds and total times t
    std::shared_ptr<const HomotopyMatrix> matrix() const;  // which refers to this problem's kernel
    Vector feasible_start() const;
};

struct Certificate {
    double primal, dual, gap, violation;
    double box, equality, outward, inward;
    Vector b;
};

// A problem on some of the points, and what is known of its solution.
struct Part {
    std::vector<int> members;  // which points
    Vector x, y;               // theirs; y is +1 or -1, or a target
    std::size_t d = 2;
    Problem problem;
    Vector beta;  // of the variables
    Certificate proof{};
    double b = 0.0, energy = 0.0;
    std::int64_t steps = 0;
    bool exact = false;
    int verdict = 1;  // of a hard margin: 1 apart, 0 the hulls meet, -1 not decided
    Vector hulls;     // of a hard margin, the coefficients of the hulls' nearest points

    Points points() const { return {x.data(), members.size(), d}; }
    int n_free() const;
    int n_bounded() const;
};

Problem soft_margin(const Vector& y, double C, Vector kernel);
Problem tube(const Vector& y, double C, double epsilon, Vector kernel);
Problem one_class(std::size_t n, double nu, Vector kernel);

// One thread, WebAssembly's instructions, and no interrupts.
const Threads& one_thread();

void solve(Part* part, const std::vector<Term>& terms);
void solve_hard_margin(Part* part, const std::vector<Term>& terms);

// Takes over b, shares it among points that are the same, and certifies it.
void conclude(Part* part, const std::vector<Term>& terms, Vector beta);

// The part with coefficients and b that need not be optimal, as they are in the middle of an algorithm, and their
// certificate.
Part with_coefficients(const Part& part, const std::vector<Term>& terms, Vector beta, double b);

}  // namespace mercer::page
