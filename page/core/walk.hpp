// From one solution of a family of problems to another, one event after the other (mercer/solvers/active_set):
//
//     maximise  p(t)'b - 1/2 b'Kb   subject to  lower(t) <= b <= upper(t),  sum of b = total(t)
//
// where targets, bounds and total are affine in t. While the set of free variables stays the same, b and the residuals
// r = p - Kb - bias are affine in t. The next event is where a free variable reaches a bound, or where the residual of a
// bounded one would change its sign. A variable that would make the equations singular never becomes free: it changes
// places with one that is (Sentelle, Anagnostopoulos and Georgiopoulos, 2016).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "free_system.hpp"

namespace mercer::page {

enum Side : std::int8_t { kLower = -1, kFree = 0, kUpper = 1 };

struct Line {
    double start = 0.0, slope = 0.0;
    double at(double t) const { return start + t * slope; }
};

// Variable i belongs to row[i] of K, which is n_rows x n_rows.
struct Family {
    std::vector<Line> p, lower, upper;
    Line total;
    const std::vector<int>* row;
    const double* kernel;
    std::size_t n_rows;

    std::size_t n() const { return p.size(); }
    double k(int i, int j) const { return kernel[static_cast<std::size_t>(i) * n_rows + static_cast<std::size_t>(j)]; }
};

// What is known between two events: values at `t`, and slopes.
struct Segment {
    double t = 0.0;
    Vector x, x_slope;  // of the free variables, in their order
    Line b;             // its start is the value at t
    Vector rho, rho_slope;

    double b_at(double at) const { return b.start + (at - t) * b.slope; }
};

class Walk {
public:
    // `side` says at which bound each variable is; those that are free must not depend on one another.
    Walk(Family family, std::vector<std::int8_t> side, double t);

    // Called at every event, before the sets change, with the segment that ends there; true ends the walk.
    using Seen = std::function<bool(const Walk&, const Segment&)>;

    // Follows t up to `end`; false if rounding decides the order of events, or the equations are singular.
    bool go(double end, const Seen& seen = nullptr);

    // The free variable's combination that v equals; false where v is independent of them.
    bool combination(int v, Vector* z);
    bool let_in(int v);
    void let_go(int v, Side side);
    void put(int v, Side side);
    // One free variable alone is what the others leave of the sum. Where that is a bound of its own, now and (`onwards`)
    // further on, no variable is free: it goes to that bound, and the bias has an interval.
    void rest(bool onwards);

    Vector beta(double t, const Segment& segment) const;
    bool segment(Segment* out);
    Segment resting(double when) const;  // with no free variable: the bias is in the middle of its interval
    Vector beta_here();

    double t;
    std::vector<std::int8_t> side;
    std::vector<int> order;  // the free variables
    Family family;
    bool sound = true;  // whether the start was

private:
    struct Event {
        double t;
        int v;
        Side hit;
    };

    FreeSystem system_;
    double unit_;
    Vector kappa_;
    std::vector<Line> at_;       // the bounded variables; zero for free ones
    std::vector<Line> u_;        // K times them
    Line sum_, lost_;            // their sum; what rounding may have cost u_
    std::vector<bool> still_, fixed_;

    int row(int v) const { return (*family.row)[static_cast<std::size_t>(v)]; }
    double k(int v, int w) const { return family.k(row(v), row(w)); }
    Vector column(int v) const;
    void restart();
    bool has_drifted() const;
    double flat(const Vector& slopes) const;
    bool next(const Segment& segment, double end, bool by_chance, Event* event);
    int meeting(double end, double* at);
    Line gradient(int v) const;
    bool enter(int v, const Segment& segment, double end);
    bool exchange(int v, const Vector& z, const Segment& segment);
    void leave_bound(int v);
    void join_bound(int v, Side to);
    void add(int v, Line at);
    std::uint32_t random_ = 1;
};

// The sets of the exact solution at t = 1, from any b in the box that the problem at t = 1 has; `start` holds it. False
// where rounding decides. The family's lines must be constant.
bool settle(const Family& problem, Vector start, std::vector<std::int8_t>* side, Vector* beta);

}  // namespace mercer::page
