// The values of an active set: what its equations say of the free variables, the bias and the residuals.
#include <algorithm>
#include <cmath>
#include <limits>

#include "algebra/infinity.hpp"
#include "simd/level.hpp"
#include "solve/active_set.hpp"

namespace mercer {
namespace {

constexpr double kEps = std::numeric_limits<double>::epsilon();
// Slopes of residuals below this share of their terms are rounding.
constexpr double kFlatShare = 1e-14;
// Digits of Kb that may be lost, in units of f, and how many times what computing it afresh would lose.
constexpr double kDrift = 1e-10, kDriftTimes = 16.0;
// For the order of events residuals of this share of the targets, far below any tolerance, will do.
constexpr double kRoughShare = 1e-11;

void add_multiple(const Level& level, Doubles* to, const double* row, double factor) {
    if (factor != 0.0) level.linear_double.add(to->data(), row, factor, static_cast<std::int64_t>(to->size()));
}

}  // namespace

double ActiveSet::size_at(double when) const {
    double sum = 0.0;
    for (std::size_t v = 0; v < n(); ++v) sum += std::abs(at_.at(v, when));
    return sum;
}

// Returns whether changes have cost more digits of Kb than computing it afresh would.
bool ActiveSet::has_drifted() const {
    const double lost = lost_.start + std::abs(t_) * lost_.slope;
    return lost > kDrift && lost > kDriftTimes * kEps * unit_ * size_at(t_);
}

// The size below which slopes of residuals are rounding, where the free variables have these slopes.
double ActiveSet::flat(const Doubles& slopes) const {
    double terms = 0.0;
    for (const double slope : at_.slope) terms += std::abs(slope);
    for (const double slope : slopes) terms += std::abs(slope);
    return kFlatShare * (unit_ * terms + steepest_target_) + lost_.slope;
}

const Segment* ActiveSet::segment(const Threads& threads) {
    return segment_holds_ || compute_segment(false, threads) ? &segment_ : nullptr;
}

// The right side of the equations at `when`.
Doubles ActiveSet::right_side(double when) const {
    const std::size_t first = system_.first();
    Doubles out(system_.size());
    if (first == 1) {
        const Line missing{family_.total.start - sum_.start, family_.total.slope - sum_.slope};
        out[0] = unit_ * missing.at(when);
    }
    for (std::size_t i = 0; i < order_.size(); ++i) {
        out[first + i] = family_.p.at(order_[i], when) - u_.at(matrix_->row_of(order_[i]), when);
    }
    return out;
}

bool ActiveSet::compute_segment(bool near, const Threads& threads) {
    segment_holds_ = false;
    if (biased() && order_.empty()) {
        segment_ = resting(t_);
        segment_holds_ = true;
        return true;
    }
    // 1. The equations at t, and for the slopes: the values at t = 0 may be huge, and cancel.
    const std::size_t first = system_.first(), m = order_.size();
    Doubles right[2] = {right_side(t_), Doubles(system_.size())}, x[2];
    if (first == 1) right[1][0] = unit_ * (family_.total.slope - sum_.slope);
    Doubles bounded(m);
    for (std::size_t i = 0; i < m; ++i) {
        bounded[i] = u_.slope[matrix_->row_of(order_[i])];
        right[1][first + i] = family_.p.slope[order_[i]] - bounded[i];
    }
    const double rough = kRoughShare * largest_target_;
    const double enough[2] = {rough, t_ == 0.0 ? rough : rough / std::abs(t_)};
    if (!system_.solve(2, right, x, threads, near && follows_near_ ? enough : nullptr)) {
        sound_ = false;
        return false;
    }
    Segment& out = segment_;
    out.t = t_;
    out.b = first == 1 ? Line{unit_ * x[0][0], unit_ * x[1][0]} : Line{};
    out.x.assign(x[0].begin() + static_cast<std::ptrdiff_t>(first), x[0].end());
    out.x_slope.assign(x[1].begin() + static_cast<std::ptrdiff_t>(first), x[1].end());
    out.speed = follows_near_ ? speed_of(out.x_slope, bounded, out.b.slope) : 0.0;
    // 2. K times all variables, of the near ones or of all.
    out.partial = near && near_.has_value();
    const std::size_t count = out.partial ? near_->which.size() : matrix_->n_rows();
    Doubles u(count), u_slope(count);
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t row = out.partial ? matrix_->row_of(near_->which[i]) : i;
        u[i] = u_.at(row, t_);
        u_slope[i] = u_.slope[row];
    }
    std::vector<const double*> rows(m);
    for (std::size_t j = 0; j < m; ++j) rows[j] = out.partial ? near_->rows.data() + j * near_->width : rows_[j].get();
    threads.level.homotopy.add_rows(rows.data(), static_cast<std::int64_t>(m), out.x.data(), out.x_slope.data(),
                                    static_cast<std::int64_t>(count), u.data(), u_slope.data());
    // 3. The residuals of bounded variables; those of free ones are zero, and not asked for.
    if (out.partial) out.near = near_->which;
    const std::size_t followed = out.partial ? count : n();
    out.rho.resize(followed);
    out.rho_slope.resize(followed);
    for (std::size_t i = 0; i < followed; ++i) {
        const std::size_t v = out.partial ? near_->which[i] : i, k = out.partial ? i : matrix_->row_of(v);
        out.rho[i] = family_.p.at(v, t_) - u[k] - out.b.start;
        out.rho_slope[i] = family_.p.slope[v] - u_slope[k] - out.b.slope;
        if (has_d_) {
            out.rho[i] -= matrix_->d[v] * at_.at(v, t_);
            out.rho_slope[i] -= matrix_->d[v] * at_.slope[v];
        }
    }
    segment_holds_ = true;
    return true;
}

// |w'| from the slopes of the free variables, of Kb without them, and of the bias.
double ActiveSet::speed_of(const Doubles& x, const Doubles& u, double b) const {
    double of_bounded = 0.0, of_free = 0.0;
    for (std::size_t v = 0; v < n(); ++v) of_bounded += at_.slope[v] * u_.slope[matrix_->row_of(v)];
    for (std::size_t i = 0; i < order_.size(); ++i) {
        const std::size_t v = order_[i];
        of_free += x[i] * (u[i] + family_.p.slope[v] - b - matrix_->d[v] * x[i]);
    }
    return std::sqrt(std::max(0.0, of_bounded + of_free) + 1e-12 * (std::abs(of_bounded) + std::abs(of_free)));
}

Line ActiveSet::gradient_line(std::size_t v) const {
    const std::size_t row = matrix_->row_of(v);
    return {family_.p.start[v] - u_.start[row] - matrix_->d[v] * at_.start[v],
            family_.p.slope[v] - u_.slope[row] - matrix_->d[v] * at_.slope[v]};
}

Segment ActiveSet::resting(double when) const {
    Segment out;
    out.t = when;
    double below = -kInfinity, above = kInfinity;
    out.rho.resize(n());
    out.rho_slope.resize(n());
    for (std::size_t v = 0; v < n(); ++v) {
        const Line h = gradient_line(v);
        out.rho[v] = h.at(when);
        out.rho_slope[v] = h.slope;
        if (pinned_[v]) continue;
        if (side_[v] == kLower) below = std::max(below, out.rho[v]);
        if (side_[v] == kUpper) above = std::min(above, out.rho[v]);
    }
    const bool low = std::isfinite(below), high = std::isfinite(above);
    out.b.start = low && high ? 0.5 * (below + above) : low ? below : high ? above : 0.0;
    for (double& rho : out.rho) rho -= out.b.start;
    return out;
}

Doubles ActiveSet::beta(double when, const Segment& segment, const Threads& threads) const {
    Doubles out(n()), x(order_.size());
    double size = 0.0, outside = 0.0;
    for (std::size_t v = 0; v < n(); ++v) out[v] = at_.at(v, when);
    for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t v = order_[i];
        x[i] = segment.free_at(i, when);
        out[v] = std::clamp(x[i], family_.lower.at(v, when), family_.upper.at(v, when));
        outside += kappa_[v] * std::abs(x[i] - out[v]);
    }
    for (const double value : out) size += std::abs(value);
    if (outside <= 2.0 * kEps * unit_ * size) return out;  // f has as much rounding itself
    hold_in_box(when, &x, threads);
    for (std::size_t i = 0; i < x.size(); ++i) out[order_[i]] = x[i];
    return out;
}

// Puts the free variables into their box: those outside are held at a bound, one by one, while the others solve their
// equations again. Where free variables nearly depend on one another, rounding moves them along a direction that f does
// not feel. Holding one of them takes that direction away; the one with the longest way back along it brings back all.
void ActiveSet::hold_in_box(double when, Doubles* x, const Threads& threads) const {
    const std::size_t first = system_.first();
    FreeSystem rest = system_;
    std::vector<std::size_t> place(x->size());
    for (std::size_t i = 0; i < place.size(); ++i) place[i] = i;
    Doubles right = right_side(when);
    const auto nearest = [&](std::size_t i) {
        return std::clamp((*x)[i], family_.lower.at(order_[i], when), family_.upper.at(order_[i], when));
    };
    while (true) {
        double outside = 0.0, size = 0.0;
        for (const double value : *x) size += std::abs(value);
        for (const std::size_t i : place) outside += kappa_[order_[i]] * std::abs((*x)[i] - nearest(i));
        if (place.empty() || !(outside > 2.0 * kEps * unit_ * size)) break;
        const Doubles moves = rest.moves();
        std::size_t worst = 0;
        double most = -1.0;
        for (std::size_t k = 0; k < place.size(); ++k) {
            const double way = std::abs((*x)[place[k]] - nearest(place[k])) * moves[k];
            if (way > most) {
                most = way;
                worst = k;
            }
        }
        const std::size_t held = place[worst];
        (*x)[held] = nearest(held);
        for (std::size_t i = 0; i < right.size(); ++i) right[i] -= (*x)[held] * system_.entry(i, first + held);
        rest.remove(worst, threads.level);
        place[worst] = place.back();
        place.pop_back();
        Doubles part(first + place.size()), solved;
        if (first == 1) part[0] = right[0];
        for (std::size_t k = 0; k < place.size(); ++k) part[first + k] = right[first + place[k]];
        if (!rest.solve(1, &part, &solved, threads)) break;
        for (std::size_t k = 0; k < place.size(); ++k) (*x)[place[k]] = solved[first + k];
    }
    for (std::size_t i = 0; i < x->size(); ++i) (*x)[i] = nearest(i);
}

Doubles ActiveSet::gradient(double when, const Doubles& beta, const Threads& threads) const {
    Doubles u(matrix_->n_rows()), out(n());
    for (std::size_t i = 0; i < u.size(); ++i) u[i] = u_.at(i, when);
    for (std::size_t j = 0; j < order_.size(); ++j) add_multiple(threads.level, &u, rows_[j].get(), beta[order_[j]]);
    for (std::size_t v = 0; v < n(); ++v) {
        out[v] = family_.p.at(v, when) - u[matrix_->row_of(v)] - matrix_->d[v] * beta[v];
    }
    return out;
}

double ActiveSet::energy(double when, const Segment& segment) const {
    double sum = 0.0;
    for (std::size_t v = 0; v < n(); ++v) sum += at_.at(v, when) * u_.at(matrix_->row_of(v), when);
    for (std::size_t i = 0; i < order_.size(); ++i) {
        const std::size_t v = order_[i];
        const double x = segment.free_at(i, when);
        // (Kb)_F from the equations of the free variables
        const double total = family_.p.at(v, when) - matrix_->d[v] * x - segment.b_at(when);
        sum += x * (u_.at(matrix_->row_of(v), when) + total);
    }
    return std::max(0.0, sum);
}

Line ActiveSet::sum_of(const double* factors, const Segment& segment) const {
    Line out;
    for (std::size_t v = 0; v < n(); ++v) {
        out.start += factors[v] * at_.at(v, segment.t);
        out.slope += factors[v] * at_.slope[v];
    }
    const double rounding = flat(segment.x_slope);
    for (std::size_t i = 0; i < order_.size(); ++i) {
        const std::size_t v = order_[i];
        out.start += factors[v] * segment.x[i];
        if (kappa_[v] * std::abs(segment.x_slope[i]) > rounding) out.slope += factors[v] * segment.x_slope[i];
    }
    return out;
}

}  // namespace mercer
