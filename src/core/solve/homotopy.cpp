#include "solve/homotopy.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "algebra/infinity.hpp"

namespace mercer {
namespace {

constexpr double kEps = std::numeric_limits<double>::epsilon();
// Slacks and residuals within this of zero are ties, in units of f.
constexpr double kTie = 1e-12;
// A dependent variable's residual that changes by less, in units of f, over all of t is not followed.
constexpr double kStill = 1e-11;
// Coefficients of a combination below this are zero.
constexpr double kNoMove = 1e-9;
// Residuals that could change their sign soon are followed: at least one in kLeastShareNear. Where they last for fewer
// than kShortEvents events, twice as many are followed; where for more than kLongEvents, half as many.
constexpr std::size_t kLeastShareNear = 16;
constexpr std::int64_t kShortEvents = 6, kLongEvents = 24;
// Variables that may become free, or near, until the near ones are chosen again.
constexpr std::size_t kSpare = 64;

}  // namespace

Homotopy::Next Homotopy::advance(double end, bool recompute_far, const Threads& threads) {
    threads.poll.check();
    bool recomputed = false;
    while (sound_) {
        before_ = t_;
        end_ = end;
        if (has_drifted()) restart(threads);
        at_rest_ = biased() && order_.empty();
        if (at_rest_) {
            double when = t_;
            std::size_t v = 0;
            const Meeting found = find_meeting(end, &when, &v);
            if (found == Meeting::kImpossible) return Next::kStalled;
            move_to(found == Meeting::kFound ? when : end);
            if (found == Meeting::kNone) return Next::kEnd;
            event_ = {t_, v, kFree};
            return compute_segment(false, threads) ? Next::kEvent : Next::kStalled;
        }
        const bool by_chance = at_once_ > n() + 50;
        if (!compute_segment(true, threads)) return Next::kStalled;
        bool found = find_event(end, by_chance, &event_);
        if (segment_.partial && !stays_near(found ? event_.t : end)) {
            if (!compute_segment(false, threads)) return Next::kStalled;
            found = find_event(end, by_chance, &event_);
        }
        if (!segment_.partial && follows_near_) choose_near();
        if (recompute_far && found && event_.t > 2.0 * t_ && t_ > 0.0 && !recomputed) {
            restart(threads);
            near_.reset();
            recomputed = true;
            continue;
        }
        if (!found) {
            move_to(end);
            rest(false, threads);
            return Next::kEnd;
        }
        t_ = event_.t;
        return Next::kEvent;
    }
    return Next::kStalled;
}

bool Homotopy::apply(const Threads& threads) {
    const std::size_t v = event_.v;
    if (side_[v] == kFree) {
        fix(v, event_.to, threads);
        rest(true, threads);
    } else if (!(at_rest_ ? release(v, threads) : enter(v, threads))) {
        return false;
    }
    ++steps_;
    at_once_ = t_ > before_ + 1e-13 * std::abs(before_) ? 0 : at_once_ + 1;
    return at_once_ <= 4 * n() + 200;
}

bool Homotopy::follow(double end, const Threads& threads) {
    while (true) {
        const Next next = advance(end, false, threads);
        if (next != Next::kEvent) return next == Next::kEnd;
        if (!apply(threads)) return false;
    }
}

bool Homotopy::find_event(double end, bool by_chance, Event* event) {
    struct Candidate {
        double slack, slope;
        std::size_t v;
        Side to;
    };
    std::vector<Candidate> falls;
    const double flat_below = flat(segment_.x_slope);
    const auto consider = [&](double slack, double slope, std::size_t v, Side to) {
        if (slope < -flat_below) falls.push_back({std::max(slack, 0.0), -slope, v, to});
    };
    double sizes = size_at(t_);
    for (std::size_t i = 0; i < order_.size(); ++i) {
        const std::size_t v = order_[i];
        const Line low = family_.lower[v], high = family_.upper[v];
        const double scale = kappa_[v], x = segment_.free_at(i, t_), slope = segment_.x_slope[i];
        sizes += std::abs(x);
        consider(scale * (x - low.at(t_)), scale * (slope - low.slope), v, kLower);
        consider(scale * (high.at(t_) - x), scale * (high.slope - slope), v, kUpper);
    }
    for (std::size_t i = 0; i < segment_.rho.size(); ++i) {
        const std::size_t v = segment_.partial ? segment_.near[i] : i;
        if (side_[v] == kFree || pinned_[v] || still_[v]) continue;
        consider(side_[v] * segment_.rho_at(i, t_), side_[v] * segment_.rho_slope[i], v, kFree);
    }
    if (falls.empty()) return false;
    const double tie = kTie + 2.0 * kEps * unit_ * sizes;
    double latest = kInfinity;
    for (const Candidate& c : falls) latest = std::min(latest, (c.slack + tie) / c.slope);
    const Candidate* best = nullptr;
    std::uint32_t among = 0;
    for (const Candidate& c : falls) {
        if (c.slack / c.slope > latest) continue;
        ++among;
        random_ = random_ * 1664525U + 1013904223U;
        const bool take = by_chance ? (random_ >> 8) % among == 0 : best == nullptr || c.slope > best->slope;
        if (take) best = &c;
    }
    if (best == nullptr) return false;  // every slack is infinite
    const double step = best->slack / best->slope;
    if (t_ + step >= end) return false;
    *event = {t_ + step, best->v, best->to};
    return true;
}

// With no free variable the bias lies in an interval. Where that closes, a variable at its end becomes free.
Homotopy::Meeting Homotopy::find_meeting(double end, double* when, std::size_t* v) const {
    std::vector<std::size_t> below, above;
    for (std::size_t i = 0; i < n(); ++i) {
        if (pinned_[i]) continue;
        if (side_[i] == kLower) below.push_back(i);
        if (side_[i] == kUpper) above.push_back(i);
    }
    const double flat_below = flat({});
    const auto value = [&](std::size_t i, double to) {
        return std::isinf(to) ? gradient_line(i).slope : gradient_line(i).at(to);
    };
    const auto top = [&](double to) {
        return *std::max_element(below.begin(), below.end(),
                                 [&](std::size_t a, std::size_t b) { return value(a, to) < value(b, to); });
    };
    const auto bottom = [&](double to) {
        return *std::min_element(above.begin(), above.end(),
                                 [&](std::size_t a, std::size_t b) { return value(a, to) < value(b, to); });
    };
    const double drift = family_.total.slope - sum_.slope;
    if (std::abs(drift) > flat_below / unit_) {  // the sum must change, so that the bias is at the end that allows it
        if ((drift > 0 ? below : above).empty()) return Meeting::kImpossible;
        *when = t_;
        *v = drift > 0 ? top(t_) : bottom(t_);
        return Meeting::kFound;
    }
    if (below.empty() || above.empty()) return Meeting::kNone;
    for (double to = end;;) {  // Newton's method from the right, on a convex function of t
        const std::size_t i = top(to);
        const Line a = gradient_line(i), b = gradient_line(bottom(to));
        const Line gap{a.start - b.start, a.slope - b.slope};
        *v = i;
        if (gap.slope <= flat_below || (std::isfinite(to) && gap.at(to) <= 0)) {
            *when = std::max(t_, to);
            return to == end ? Meeting::kNone : Meeting::kFound;
        }
        const double root = -gap.start / gap.slope;
        if (root <= t_ || !(root < to)) {
            *when = root <= t_ ? t_ : to;
            return Meeting::kFound;
        }
        to = root;
    }
}

// Uses up what w and the bias may move until `end`; false if a residual that is not near could change its sign before.
bool Homotopy::stays_near(double end) {
    const double step = end - t_;
    near_->w -= segment_.speed * step;
    near_->b -= std::abs(segment_.b.slope) * step;
    return near_->w >= 0.0 && near_->b >= 0.0;
}

// Chooses the variables whose residuals could change their sign soonest, and how far w and the bias may move until
// others do: |r'| <= sqrt(k(x, x)) |w'| + |bias'|.
void Homotopy::choose_near() {
    near_.reset();
    const double b = std::max(std::abs(segment_.b.slope), 0.3 * std::sqrt(unit_) * segment_.speed);
    Doubles soon(n(), kInfinity);
    for (std::size_t v = 0; v < n(); ++v) {
        if (side_[v] == kFree || pinned_[v]) continue;
        const double when = side_[v] * segment_.rho_at(v, t_) / (std::sqrt(kappa_[v]) * segment_.speed + b);
        if (std::isfinite(when)) soon[v] = when;
    }
    const std::int64_t lasted = steps_ - looked_at_;
    looked_at_ = steps_;
    const std::size_t least = n() / kLeastShareNear;
    if (lasted < kShortEvents) {
        n_near_ = std::min(2 * (n_near_ == 0 ? least : n_near_), n());
    } else if (lasted > kLongEvents) {
        n_near_ = std::max(n_near_ / 2, least);
    }
    if (n_near_ > n() / 2) return;  // to follow all of them is cheaper than to choose again and again
    Doubles sorted = soon;
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(n_near_);
    std::nth_element(sorted.begin(), middle, sorted.end());
    const double horizon = *middle;
    if (!std::isfinite(horizon) || horizon <= 0.0) return;
    Near near{{}, {}, order_.size() + kSpare, 0, segment_.speed * horizon * (1.0 - 1e-9), b * horizon * (1.0 - 1e-9)};
    for (std::size_t v = 0; v < n(); ++v) {
        if (soon[v] <= horizon) near.which.push_back(v);
    }
    near.width = near.which.size() + kSpare;
    near.rows.resize(near.height * near.width);
    near_ = std::move(near);
    for (std::size_t j = 0; j < order_.size(); ++j) add_near_row(j, rows_[j].get());
}

void Homotopy::rest(bool onwards, const Threads& threads) {
    if (!biased() || order_.size() != 1 || std::isinf(t_)) return;
    const std::size_t v = order_.front();
    sum_ = {};  // without what changes have rounded off
    for (std::size_t i = 0; i < n(); ++i) {
        sum_.start += at_.start[i];
        sum_.slope += at_.slope[i];
    }
    const Line own{family_.total.start - sum_.start, family_.total.slope - sum_.slope};
    const double rounding = kEps * static_cast<double>(n()) * size_at(t_);
    for (const Side side : {kLower, kUpper}) {
        const Line bound = family_.bound(v, side);
        if (!(std::abs(own.at(t_) - bound.at(t_)) <= rounding)) continue;
        if (onwards && std::abs(own.slope - bound.slope) > flat({bound.slope}) / unit_) continue;
        fix(v, side, threads);
        return;
    }
}

bool Homotopy::enter(std::size_t v, const Threads& threads) {
    const std::optional<Doubles> z = combination(v, threads);
    if (!sound_) return false;
    if (!z.has_value()) return release(v, threads);
    const double reach = std::isfinite(end_) ? end_ - t_ : std::max(std::abs(t_), 1.0);
    std::size_t place = v;
    if (segment_.partial) {
        const auto& near = segment_.near;
        place = static_cast<std::size_t>(std::find(near.begin(), near.end(), v) - near.begin());
    }
    if (std::abs(segment_.rho_slope[place]) * reach <= kStill) {
        still_[v] = true;
        return true;
    }
    return exchange(v, *z, threads);
}

// v moves into its box, and the free ones against it, until one of them has reached a bound.
bool Homotopy::exchange(std::size_t v, const Doubles& z, const Threads& threads) {
    const double inward = -side_[v];
    double least = kInfinity;
    Doubles steps(z.size(), kInfinity);
    for (std::size_t i = 0; i < z.size(); ++i) {
        const double move = -inward * z[i];
        if (std::abs(move) <= kNoMove) continue;
        const double bound = family_.bound(order_[i], move > 0 ? kUpper : kLower).at(t_);
        steps[i] = std::max((bound - segment_.free_at(i, t_)) / move, 0.0);
        least = std::min(least, steps[i]);
    }
    const double own = family_.upper.at(v, t_) - family_.lower.at(v, t_);
    if (own <= least) {
        if (!std::isfinite(own)) return false;
        fix(v, static_cast<Side>(-side_[v]), threads);
        return true;
    }
    std::size_t best = z.size();
    for (std::size_t i = 0; i < z.size(); ++i) {
        if (steps[i] > least * (1.0 + 1e-12)) continue;
        if (best == z.size() || std::abs(z[i]) > std::abs(z[best])) best = i;
    }
    fix(order_[best], -inward * z[best] > 0 ? kUpper : kLower, threads);
    return release(v, threads);
}

}  // namespace mercer
