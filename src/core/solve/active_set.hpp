// A dual problem that moves along a line, with the sets of its variables that are free and at a bound:
//
//     maximise  p(t)'b - 1/2 b'(K + diag d)b   subject to  lower(t) <= b <= upper(t),  sum of b = total(t),
//
// all of them affine functions of t. Where F is free, b_F and the bias solve
// (K_FF + diag d_F) b_F + bias = p_F - K_FB b_B and sum of b = total. A variable that would make these equations
// singular depends on the free ones: its row is a combination of theirs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "solve/free_system.hpp"

namespace mercer {

enum Side : std::int8_t { kLower = -1, kFree = 0, kUpper = 1 };

// start + t slope; an infinite start has the slope 0.
struct Line {
    double start = 0.0, slope = 0.0;
    double at(double t) const { return start + t * slope; }
};

struct Lines {
    Doubles start, slope;

    Lines() = default;
    explicit Lines(std::size_t n) : start(n, 0.0), slope(n, 0.0) {}
    Lines(Doubles starts, Doubles slopes) : start(std::move(starts)), slope(std::move(slopes)) {}

    std::size_t size() const { return start.size(); }
    Line operator[](std::size_t i) const { return {start[i], slope[i]}; }
    void set(std::size_t i, Line line) {
        start[i] = line.start;
        slope[i] = line.slope;
    }
    double at(std::size_t i, double t) const { return start[i] + t * slope[i]; }
};

// Targets, bounds and total. Without an equality there is no bias.
struct Family {
    Lines p, lower, upper;
    Line total;
    bool has_total = true;

    std::size_t n() const { return p.size(); }
    Line bound(std::size_t v, Side side) const { return side == kUpper ? upper[v] : lower[v]; }
};

// Rows of K. A row stays valid as long as a KernelRow points to it.
using KernelRow = std::shared_ptr<const double>;
class KernelRows {
public:
    virtual ~KernelRows() = default;
    virtual std::vector<KernelRow> rows(const std::vector<std::int64_t>& which) = 0;
    virtual Doubles product(const Doubles& coefficients) = 0;  // K coefficients
};

// A matrix in memory that this object does not own, with rows `stride` elements apart.
class StoredKernel final : public KernelRows {
public:
    StoredKernel(const double* values, std::size_t stride, std::size_t n, const Level& level)
        : values_(values), stride_(stride), n_(n), level_(level) {}
    std::vector<KernelRow> rows(const std::vector<std::int64_t>& which) override;
    Doubles product(const Doubles& coefficients) override;

private:
    const double* values_;
    std::size_t stride_, n_;
    const Level& level_;
};

// K + diag d as the variables see it: variable v belongs to row[v] of K.
struct HomotopyMatrix {
    std::shared_ptr<KernelRows> kernel;
    Doubles diagonal;  // of K
    Doubles d;
    std::vector<std::int64_t> row;

    std::size_t n_rows() const { return diagonal.size(); }
    std::size_t row_of(std::size_t v) const { return static_cast<std::size_t>(row[v]); }
    double own(std::size_t v) const { return diagonal[row_of(v)] + d[v]; }
};

// The values between two events, at `t` and as slopes: the free variables in their order, the bias, and the residuals
// r = p - Kb - d b - bias of all bounded variables or, where it is `partial`, of those in `near`.
struct Segment {
    double t = 0.0;
    Doubles x, x_slope;
    Line b;  // its start is the value at t
    Doubles rho, rho_slope;
    bool partial = false;
    std::vector<std::size_t> near;
    double speed = 0.0;  // |w'|, from above

    double free_at(std::size_t i, double when) const { return x[i] + (when - t) * x_slope[i]; }
    double rho_at(std::size_t i, double when) const { return rho[i] + (when - t) * rho_slope[i]; }
    double b_at(double when) const { return b.start + (when - t) * b.slope; }
};

// A variable that went to a bound or became free.
struct Change {
    double t;
    std::size_t variable;
    Side to;
};

class ActiveSet {
public:
    // `side` says at which bound each variable is; those that are free must not depend on one another.
    ActiveSet(std::shared_ptr<const HomotopyMatrix> matrix, Family family, std::vector<std::int8_t> side, double t,
              const Threads& threads);

    // Puts these sets on the way of another family of problems with the same matrix.
    void change_family(Family family, double t, const Threads& threads);

    double t() const { return t_; }
    void move_to(double t);
    bool sound() const { return sound_; }  // whether the equations could be solved so far
    const Family& family() const { return family_; }
    const std::vector<std::int8_t>& side() const { return side_; }
    const std::vector<std::size_t>& order() const { return order_; }  // the free variables
    const std::vector<Change>& log() const { return log_; }
    const FreeSystem& system() const { return system_; }

    // Values that hold as long as the sets stay the same; null if the equations are singular.
    const Segment* segment(const Threads& threads);
    // With no free variable, the bias in the middle of its interval.
    Segment resting(double when) const;
    // The variables at `when`, in the box.
    Doubles beta(double when, const Segment& segment, const Threads& threads) const;
    // p - Kb - d b at `when`, where the bounded ones of b are at their bounds.
    Doubles gradient(double when, const Doubles& beta, const Threads& threads) const;
    // b'Kb.
    double energy(double when, const Segment& segment) const;
    // The sum of these multiples of b where the segment begins, and its slope without what is rounding.
    Line sum_of(const double* factors, const Segment& segment) const;

    // Recomputes what the bounded variables add to Kb and to the sum of b.
    void restart(const Threads& threads);

    // The combination of the free variables that v equals; none where v is independent of them.
    std::optional<Doubles> combination(std::size_t v, const Threads& threads);
    // The squared distance of v's image from the affine hull of the free ones; without an equality from their span.
    double distance(std::size_t v, const Threads& threads);

    // Makes v free, which must not depend on those that are; false if that makes the equations singular.
    bool release(std::size_t v, const Threads& threads);
    // Puts v onto a bound.
    void fix(std::size_t v, Side side, const Threads& threads);

protected:
    // Variables whose residuals are followed, their kernel values with the free ones, and how far w and the bias may
    // still move until another residual could change its sign.
    struct Near {
        std::vector<std::size_t> which;
        Doubles rows;  // `height` rows of `width`
        std::size_t height, width;
        double w, b;
    };

    std::shared_ptr<const HomotopyMatrix> matrix_;
    Family family_;
    double t_;
    std::vector<std::int8_t> side_;
    std::vector<std::size_t> order_;
    std::vector<KernelRow> rows_;  // of the free variables
    std::vector<Change> log_;
    bool sound_ = true, has_d_;
    double unit_ = 0.0;
    Doubles kappa_;
    FreeSystem system_;
    Segment segment_;
    bool segment_holds_ = false;
    std::vector<bool> pinned_, still_;  // lower = upper; dependent, with a residual that does not move
    Lines at_, u_;                      // the bounded variables, 0 for free ones; K times them
    Line sum_, lost_;                   // their sum; what rounding may have cost u_ since it was computed
    double largest_target_ = 0.0, steepest_target_ = 0.0;
    bool follows_near_ = false;
    std::optional<Near> near_;

    std::size_t n() const { return family_.n(); }
    bool biased() const { return family_.has_total; }
    Side side_of(std::size_t v) const { return static_cast<Side>(side_[v]); }
    Line gradient_line(std::size_t v) const;  // with no free variable
    double flat(const Doubles& slopes) const;
    bool has_drifted() const;
    double size_at(double when) const;  // sum of |b| over the bounded variables
    bool compute_segment(bool near, const Threads& threads);
    bool add_near_row(std::size_t place, const double* row);

private:
    struct Split {
        Doubles z;
        double left, terms;
    };

    std::size_t known_variable_ = 0;  // with its M^-1 column
    std::optional<Doubles> known_column_;

    void describe_family();
    Doubles column(std::size_t v) const;
    Split split(std::size_t v, const Threads& threads);
    double speed_of(const Doubles& x, const Doubles& u, double b) const;
    Doubles right_side(double when) const;
    void hold_in_box(double when, Doubles* x, const Threads& threads) const;
    void add(const double* row, Line line, const Level& level);
    void leave_bound(std::size_t v, const double* row, const Level& level);
    void join_bound(std::size_t v, Side side, const double* row, const Level& level);
    bool add_near(std::size_t v);
};

}  // namespace mercer
