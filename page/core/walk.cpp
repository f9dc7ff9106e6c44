#include "walk.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mercer::page {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kEps = std::numeric_limits<double>::epsilon();
// The numbers of mercer/solvers/active_set: what is left of a variable beside the free ones, as a share of the terms
// that cancelled, below which it depends on them; slopes and residuals that are rounding; digits that may be lost.
constexpr double kDependentShare = 3e-14;
constexpr double kFlatShare = 1e-14;
constexpr double kTie = 1e-12;
constexpr double kStill = 1e-11;
constexpr double kDrift = 1e-10, kDriftTimes = 16.0;

std::size_t at(int v) { return static_cast<std::size_t>(v); }

}  // namespace

Walk::Walk(Family of, std::vector<std::int8_t> sides, double begin)
    : t(begin), side(std::move(sides)), family(std::move(of)), system_(1.0), unit_(0.0) {
    const std::size_t n = family.n();
    kappa_.resize(n);
    for (std::size_t v = 0; v < n; ++v) {
        const auto own = static_cast<int>(v);
        kappa_[v] = k(own, own);
        unit_ = std::max(unit_, kappa_[v]);
    }
    if (!(unit_ > 0.0)) unit_ = 1.0;
    for (double& own : kappa_) own = own > 1e-8 * unit_ ? own : unit_;
    system_ = FreeSystem(unit_);
    still_.assign(n, false);
    fixed_.resize(n);
    at_.resize(n);
    for (std::size_t v = 0; v < n; ++v) {
        const Line low = family.lower[v], high = family.upper[v];
        fixed_[v] = low.start == high.start && low.slope == high.slope;
    }
    for (std::size_t v = 0; v < n; ++v) {
        if (side[v] != kFree) continue;
        const Vector own = column(static_cast<int>(v));
        sound = system_.add(own, k(static_cast<int>(v), static_cast<int>(v))) && sound;
        order.push_back(static_cast<int>(v));
    }
    restart();
}

// A variable's kernel values with the free ones, as a column of the system.
Vector Walk::column(int v) const {
    Vector out(order.size() + 1);
    out[0] = unit_;
    for (std::size_t i = 0; i < order.size(); ++i) out[i + 1] = k(order[i], v);
    return out;
}

void Walk::restart() {
    const std::size_t n = family.n();
    u_.assign(family.n_rows, {});
    sum_ = lost_ = {};
    for (std::size_t v = 0; v < n; ++v) {
        at_[v] = side[v] == kFree ? Line{} : side[v] == kUpper ? family.upper[v] : family.lower[v];
        if (at_[v].start != 0.0 || at_[v].slope != 0.0) add(static_cast<int>(v), at_[v]);
    }
    lost_ = {};
}

void Walk::add(int v, Line of) {
    const double* const from = family.kernel + at(row(v)) * family.n_rows;
    double start = 0.0, slope = 0.0;
    for (std::size_t i = 0; i < family.n_rows; ++i) {
        u_[i].start += of.start * from[i];
        u_[i].slope += of.slope * from[i];
        start = std::max(start, std::abs(u_[i].start));
        slope = std::max(slope, std::abs(u_[i].slope));
    }
    sum_.start += of.start;
    sum_.slope += of.slope;
    lost_.start += kEps * (unit_ * std::abs(of.start) + start);
    lost_.slope += kEps * (unit_ * std::abs(of.slope) + slope);
}

bool Walk::has_drifted() const {
    const double lost = lost_.start + std::abs(t) * lost_.slope;
    if (lost <= kDrift) return false;
    double now = 0.0;
    for (const Line& own : at_) now += std::abs(own.at(t));
    return lost > kDriftTimes * kEps * unit_ * now;
}

// The size below which slopes of residuals are rounding, where the free variables have these slopes.
double Walk::flat(const Vector& slopes) const {
    double terms = 0.0, target = 0.0;
    for (const Line& own : at_) terms += std::abs(own.slope);
    for (const double slope : slopes) terms += std::abs(slope);
    for (const Line& p : family.p) target = std::max(target, std::abs(p.slope));
    return kFlatShare * (unit_ * terms + target) + lost_.slope;
}

Line Walk::gradient(int v) const {
    const Line p = family.p[at(v)], u = u_[at(row(v))];
    return {p.start - u.start, p.slope - u.slope};
}

bool Walk::segment(Segment* out) {
    if (order.empty()) {
        *out = resting(t);
        return true;
    }
    const std::size_t m = order.size();
    Vector right(m + 1), slope(m + 1), x, x_slope;
    slope[0] = unit_ * (family.total.slope - sum_.slope);
    right[0] = unit_ * (family.total.at(t) - sum_.at(t));
    for (std::size_t i = 0; i < m; ++i) {
        const Line p = family.p[at(order[i])], u = u_[at(row(order[i]))];
        right[i + 1] = p.at(t) - u.at(t);
        slope[i + 1] = p.slope - u.slope;
    }
    if (!system_.solve(right, &x) || !system_.solve(slope, &x_slope)) return false;
    out->t = t;
    out->b = {unit_ * x[0], unit_ * x_slope[0]};
    out->x.assign(x.begin() + 1, x.end());
    out->x_slope.assign(x_slope.begin() + 1, x_slope.end());
    Vector u(family.n_rows), u_slope(family.n_rows);
    for (std::size_t i = 0; i < family.n_rows; ++i) {
        u[i] = u_[i].at(t);
        u_slope[i] = u_[i].slope;
    }
    for (std::size_t j = 0; j < m; ++j) {
        const double* const from = family.kernel + at(row(order[j])) * family.n_rows;
        const double value = out->x[j], change = out->x_slope[j];
        for (std::size_t i = 0; i < family.n_rows; ++i) {
            u[i] += value * from[i];
            u_slope[i] += change * from[i];
        }
    }
    out->rho.resize(family.n());
    out->rho_slope.resize(family.n());
    for (std::size_t v = 0; v < family.n(); ++v) {
        const std::size_t i = at(row(static_cast<int>(v)));
        out->rho[v] = family.p[v].at(t) - u[i] - out->b.start;
        out->rho_slope[v] = family.p[v].slope - u_slope[i] - out->b.slope;
    }
    return true;
}

Segment Walk::resting(double when) const {
    Segment out;
    out.t = when;
    double below = -kInfinity, above = kInfinity;
    out.rho.resize(family.n());
    out.rho_slope.resize(family.n());
    for (std::size_t v = 0; v < family.n(); ++v) {
        const Line h = gradient(static_cast<int>(v));
        out.rho[v] = h.at(when);
        out.rho_slope[v] = h.slope;
        if (fixed_[v]) continue;
        if (side[v] == kLower) below = std::max(below, out.rho[v]);
        if (side[v] == kUpper) above = std::min(above, out.rho[v]);
    }
    const bool low = std::isfinite(below), high = std::isfinite(above);
    out.b.start = low && high ? 0.5 * (below + above) : low ? below : high ? above : 0.0;
    for (double& rho : out.rho) rho -= out.b.start;
    return out;
}

Vector Walk::beta(double to, const Segment& segment) const {
    Vector out(family.n());
    for (std::size_t v = 0; v < out.size(); ++v) out[v] = at_[v].at(to);
    for (std::size_t i = 0; i < order.size(); ++i) {
        const std::size_t v = at(order[i]);
        const double value = segment.x[i] + (to - segment.t) * segment.x_slope[i];
        out[v] = std::clamp(value, family.lower[v].at(to), family.upper[v].at(to));
    }
    return out;
}

Vector Walk::beta_here() {
    Segment here;
    if (!segment(&here)) return Vector(family.n(), std::nan(""));
    return beta(t, here);
}

bool Walk::next(const Segment& segment, double end, bool by_chance, Event* event) {
    struct Candidate {
        double room, slope;
        int v;
        Side hit;
    };
    std::vector<Candidate> falls;
    const double flat_below = flat(segment.x_slope);
    const auto consider = [&](double room, double slope, int v, Side hit) {
        if (slope < -flat_below) falls.push_back({std::max(room, 0.0), -slope, v, hit});
    };
    double sizes = 0.0;
    for (std::size_t i = 0; i < order.size(); ++i) {
        const int v = order[i];
        const Line low = family.lower[at(v)], high = family.upper[at(v)];
        const double scale = kappa_[at(v)], x = segment.x[i], slope = segment.x_slope[i];
        sizes += std::abs(x);
        consider(scale * (x - low.at(t)), scale * (slope - low.slope), v, kLower);
        consider(scale * (high.at(t) - x), scale * (high.slope - slope), v, kUpper);
    }
    for (std::size_t v = 0; v < family.n(); ++v) {
        sizes += std::abs(at_[v].at(t));
        if (fixed_[v] || still_[v] || side[v] == kFree) continue;
        consider(side[v] * segment.rho[v], side[v] * segment.rho_slope[v], static_cast<int>(v), kFree);
    }
    if (falls.empty()) return false;
    const double tie = kTie + 2.0 * kEps * unit_ * sizes;
    double latest = kInfinity;
    for (const Candidate& c : falls) latest = std::min(latest, (c.room + tie) / c.slope);
    const Candidate* best = nullptr;
    std::uint32_t among = 0;
    for (const Candidate& c : falls) {
        if (c.room / c.slope > latest) continue;
        ++among;
        random_ = random_ * 1664525U + 1013904223U;
        const bool take = by_chance ? (random_ >> 8) % among == 0 : best == nullptr || c.slope > best->slope;
        if (take) best = &c;
    }
    const double step = best->room / best->slope;
    if (t + step >= end) return false;
    *event = {t + step, best->v, best->hit};
    return true;
}

// With no free variable the bias lies in an interval. Where that closes, a variable at its end becomes free: returns
// it, or -1 if that is after `end`, or -2 if nobody can take up the sum.
int Walk::meeting(double end, double* when) {
    std::vector<int> below, above;
    for (std::size_t v = 0; v < family.n(); ++v) {
        if (fixed_[v]) continue;
        if (side[v] == kLower) below.push_back(static_cast<int>(v));
        if (side[v] == kUpper) above.push_back(static_cast<int>(v));
    }
    const double flat_below = flat({});
    const auto value = [&](int v, double to) { return std::isinf(to) ? gradient(v).slope : gradient(v).at(to); };
    const auto top = [&](double to) {
        return *std::max_element(below.begin(), below.end(), [&](int a, int b) { return value(a, to) < value(b, to); });
    };
    const auto bottom = [&](double to) {
        return *std::min_element(above.begin(), above.end(), [&](int a, int b) { return value(a, to) < value(b, to); });
    };
    const double drift = family.total.slope - sum_.slope;
    if (std::abs(drift) > flat_below / unit_) {  // the sum must change, so that the bias is at the end that allows it
        if ((drift > 0 ? below : above).empty()) return -2;
        *when = t;
        return drift > 0 ? top(t) : bottom(t);
    }
    if (below.empty() || above.empty()) return -1;
    for (double to = end;;) {  // Newton's method from the right, on a convex function of t
        const int i = top(to), j = bottom(to);
        const Line a = gradient(i), b = gradient(j);
        const Line gap{a.start - b.start, a.slope - b.slope};
        if (gap.slope <= flat_below || (std::isfinite(to) && gap.at(to) <= 0)) {
            *when = std::max(t, to);
            return to == end ? -1 : i;
        }
        const double root = -gap.start / gap.slope;
        if (root <= t || !(root < to)) {
            *when = root <= t ? t : to;
            return i;
        }
        to = root;
    }
}

bool Walk::go(double end, const Seen& seen) {
    const std::size_t most = 4 * family.n() + 200;
    std::size_t at_once = 0;
    bool renewed = false;
    if (!sound) return false;
    while (true) {
        const double before = t;
        if (has_drifted()) restart();
        if (order.empty()) {
            double when = t;
            const int v = meeting(end, &when);
            if (v == -2) return false;
            if (v == -1) {
                t = end;
                return true;
            }
            t = when;
            if (seen && seen(*this, resting(t))) return true;
            if (!let_in(v)) return false;
        } else {
            Segment here;
            Event event{};
            if (!segment(&here)) return false;
            const bool found = next(here, end, at_once > family.n() + 50, &event);
            // Far away, where slopes that are zero but for rounding would bring about an event.
            if (seen && found && event.t > 2.0 * t && t > 0.0 && !renewed) {
                restart();
                renewed = true;
                continue;
            }
            renewed = false;
            if (!found) {
                t = end;
                return true;
            }
            t = event.t;
            if (seen && seen(*this, here)) return true;
            if (side[at(event.v)] == kFree) {
                let_go(event.v, event.hit);
                rest(true);
            } else if (!enter(event.v, here, end)) {
                return false;
            }
        }
        at_once = t > before + 1e-13 * std::abs(before) ? 0 : at_once + 1;
        if (at_once > most) return false;
    }
}

bool Walk::combination(int v, Vector* z) {
    if (order.empty()) return false;
    const Vector own = column(v);
    if (!system_.solve(own, z)) {
        sound = false;
        return false;
    }
    const double kvv = k(v, v);
    double left = kvv, size = 0.0, most = 0.0;
    for (std::size_t i = 0; i < own.size(); ++i) {
        left -= own[i] * (*z)[i];
        size += std::abs((*z)[i]);
        most = std::max(most, system_.entry(i, i));
    }
    if (left > kDependentShare * (kvv + most + unit_ * size * size)) return false;
    double terms = kvv + most;
    for (std::size_t i = 0; i < own.size(); ++i) {
        for (std::size_t j = 0; j < own.size(); ++j) {
            terms += std::abs((*z)[i]) * std::abs(system_.entry(i, j)) * std::abs((*z)[j]);
        }
    }
    if (left > kDependentShare * terms) return false;
    z->erase(z->begin());
    return true;
}

bool Walk::enter(int v, const Segment& segment, double end) {
    Vector z;
    if (!combination(v, &z)) return let_in(v);
    const double reach = std::isfinite(end) ? end - t : std::max(std::abs(t), 1.0);
    if (std::abs(segment.rho_slope[at(v)]) * reach <= kStill) {
        still_[at(v)] = true;
        return true;
    }
    return exchange(v, z, segment);
}

// v moves into its box, and the free ones against it, until one of them has reached a bound.
bool Walk::exchange(int v, const Vector& z, const Segment& segment) {
    const double inward = -side[at(v)];
    double least = kInfinity;
    std::vector<double> steps(z.size(), kInfinity);
    for (std::size_t i = 0; i < z.size(); ++i) {
        const double move = -inward * z[i];
        if (std::abs(move) <= 1e-9) continue;
        const std::size_t w = at(order[i]);
        const double x = segment.x[i] + (t - segment.t) * segment.x_slope[i];
        const double bound = move > 0 ? family.upper[w].at(t) : family.lower[w].at(t);
        steps[i] = std::max((bound - x) / move, 0.0);
        least = std::min(least, steps[i]);
    }
    const double own = family.upper[at(v)].at(t) - family.lower[at(v)].at(t);
    if (own <= least) {
        if (!std::isfinite(own)) return false;
        put(v, static_cast<Side>(-side[at(v)]));
        return true;
    }
    std::size_t best = z.size();
    for (std::size_t i = 0; i < z.size(); ++i) {
        if (steps[i] > least * (1.0 + 1e-12)) continue;
        if (best == z.size() || std::abs(z[i]) > std::abs(z[best])) best = i;
    }
    let_go(order[best], -inward * z[best] > 0 ? kUpper : kLower);
    return let_in(v);
}

bool Walk::let_in(int v) {
    leave_bound(v);
    side[at(v)] = kFree;
    if (!system_.add(column(v), k(v, v))) return false;
    order.push_back(v);
    return true;
}

void Walk::let_go(int v, Side to) {
    const auto place = static_cast<std::size_t>(std::find(order.begin(), order.end(), v) - order.begin());
    join_bound(v, to);
    system_.remove(place);
    order[place] = order.back();
    order.pop_back();
    std::fill(still_.begin(), still_.end(), false);
}

void Walk::rest(bool onwards) {
    if (order.size() != 1) return;
    restart();
    const int v = order.front();
    const Line own{family.total.start - sum_.start, family.total.slope - sum_.slope};
    double sizes = 0.0, slopes = 0.0;
    for (const Line& other : at_) {
        sizes += std::abs(other.at(t));
        slopes += std::abs(other.slope);
    }
    const double rounding = kEps * static_cast<double>(family.n());
    for (const Side to : {kLower, kUpper}) {
        const Line bound = to == kUpper ? family.upper[at(v)] : family.lower[at(v)];
        if (std::abs(own.at(t) - bound.at(t)) > rounding * sizes) continue;
        if (onwards && std::abs(own.slope - bound.slope) > rounding * slopes) continue;
        let_go(v, to);
        return;
    }
}

void Walk::put(int v, Side to) {
    leave_bound(v);
    join_bound(v, to);
}

void Walk::leave_bound(int v) {
    const Line own = at_[at(v)];
    if (own.start != 0.0 || own.slope != 0.0) add(v, {-own.start, -own.slope});
    at_[at(v)] = {};
}

void Walk::join_bound(int v, Side to) {
    const Line own = to == kUpper ? family.upper[at(v)] : family.lower[at(v)];
    side[at(v)] = to;
    at_[at(v)] = own;
    if (own.start != 0.0 || own.slope != 0.0) add(v, own);
}

namespace {

// The same Kb with free variables of which none depends on the others; the rest are on bounds.
bool make_independent(const Family& problem, Vector* beta, std::vector<std::int8_t>* side) {
    const std::size_t n = problem.n();
    Family nothing = problem;
    nothing.p.assign(n, {});
    nothing.lower.assign(n, {});
    nothing.upper.assign(n, {});
    nothing.total = {};
    side->resize(n);
    std::vector<int> inside;
    std::vector<std::int8_t> held(n);
    for (std::size_t v = 0; v < n; ++v) {
        const double low = problem.lower[v].start, high = problem.upper[v].start;
        double& own = (*beta)[v];
        own = std::clamp(own, low, high);
        held[v] = own >= high ? kUpper : kLower;
        if (own > low && own < high) inside.push_back(static_cast<int>(v));
    }
    Walk walk(nothing, held, 0.0);
    for (const int v : inside) {
        Vector z;
        if (walk.combination(v, &z)) {
            std::vector<int> F = walk.order;
            F.push_back(v);
            Vector moves(z.size() + 1);
            for (std::size_t i = 0; i < z.size(); ++i) moves[i] = -z[i];
            moves.back() = 1.0;
            double best = kInfinity, sign = 1.0;
            std::size_t hit = F.size() - 1;
            for (const double way : {1.0, -1.0}) {
                for (std::size_t i = 0; i < F.size(); ++i) {
                    const double move = way * moves[i];
                    if (std::abs(move) <= 1e-9) continue;
                    const std::size_t w = at(F[i]);
                    const double bound = move > 0 ? problem.upper[w].start : problem.lower[w].start;
                    const double step = (bound - (*beta)[w]) / move;
                    if (step < best) {
                        best = step;
                        sign = way;
                        hit = i;
                    }
                }
            }
            if (!std::isfinite(best)) return false;
            for (std::size_t i = 0; i < F.size(); ++i) {
                const std::size_t w = at(F[i]);
                (*beta)[w] = std::clamp((*beta)[w] + best * sign * moves[i], problem.lower[w].start,
                                        problem.upper[w].start);
            }
            const Side to = sign * moves[hit] > 0 ? kUpper : kLower;
            const std::size_t w = at(F[hit]);
            (*beta)[w] = to == kUpper ? problem.upper[w].start : problem.lower[w].start;
            if (F[hit] == v) {
                walk.put(v, to);
                continue;
            }
            walk.let_go(F[hit], to);
        }
        if (!walk.sound || !walk.let_in(v)) return false;
    }
    *side = walk.side;
    return true;
}

}  // namespace

bool settle(const Family& problem, Vector start, std::vector<std::int8_t>* side, Vector* beta) {
    const std::size_t n = problem.n();
    if (!make_independent(problem, &start, side)) return false;
    // With other targets this point is optimal: those are led to the problem's own, and the sum to its total.
    Vector u(problem.n_rows, 0.0);
    double sum = 0.0, size = 0.0;
    for (std::size_t v = 0; v < n; ++v) {
        sum += start[v];
        size += std::abs(start[v]);
        if (start[v] == 0.0) continue;
        const double* const from = problem.kernel + at((*problem.row)[v]) * problem.n_rows;
        for (std::size_t i = 0; i < problem.n_rows; ++i) u[i] += start[v] * from[i];
    }
    Vector h(n);
    double mean = 0.0, top = -kInfinity, bottom = kInfinity;
    std::size_t free = 0;
    for (std::size_t v = 0; v < n; ++v) {
        h[v] = problem.p[v].start - u[at((*problem.row)[v])];
        if ((*side)[v] == kFree) {
            mean += h[v];
            ++free;
        }
        if ((*side)[v] == kLower) top = std::max(top, h[v]);
        if ((*side)[v] == kUpper) bottom = std::min(bottom, h[v]);
    }
    const bool low = std::isfinite(top), high = std::isfinite(bottom);
    const double b = free > 0 ? mean / static_cast<double>(free)
                              : low && high ? 0.5 * (top + bottom) : low ? top : high ? bottom : 0.0;
    Family way = problem;
    std::uint32_t random = 12345;
    for (std::size_t v = 0; v < n; ++v) {
        const double rho = h[v] - b;
        const bool wrong = (*side)[v] == kFree || ((*side)[v] == kLower && rho > 0) || ((*side)[v] == kUpper && rho < 0);
        random = random * 1664525U + 1013904223U;
        const double apart = (*side)[v] == kFree ? 0.0 : 0.1 + 0.9 * static_cast<double>(random >> 8) / 16777216.0;
        const double p = wrong ? problem.p[v].start - rho * (1.0 + apart) : problem.p[v].start;
        way.p[v] = {p, problem.p[v].start - p};
    }
    // A sum that is off by rounding must not make a variable free.
    const bool right_sum = std::abs(problem.total.start - sum) <= kEps * static_cast<double>(n) * size;
    way.total = right_sum ? problem.total : Line{sum, problem.total.start - sum};
    Walk walk(way, *side, 0.0);
    if (!walk.go(1.0)) return false;
    walk.rest(false);
    *side = walk.side;
    *beta = walk.beta_here();
    return true;
}

}  // namespace mercer::page
