#include "solve/active_set.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "algebra/infinity.hpp"
#include "simd/level.hpp"

namespace mercer {
namespace {

constexpr double kEps = std::numeric_limits<double>::epsilon();
// A variable depends on the free ones if they leave less of its k(x, x) than this share of the terms that cancelled:
// some hundred roundings of float64.
constexpr double kDependentShare = 3e-14;
// Kernel values below this share of the largest are taken for it where variables are compared.
constexpr double kSmallShare = 1e-8;
// From this many variables on only those residuals are followed that could change their sign soon.
constexpr std::size_t kMany = 512;
// Beyond this share of all variables it is faster to compute K times the bounded ones afresh than to change it.
constexpr std::size_t kFewChanges = 8;

double largest(const Doubles& x) {
    double most = 0.0;
    for (const double value : x) most = std::max(most, std::abs(value));
    return most;
}

void add_multiple(const Level& level, Doubles* to, const double* row, double factor) {
    if (factor != 0.0) level.linear_double.add(to->data(), row, factor, static_cast<std::int64_t>(to->size()));
}

}  // namespace

std::vector<KernelRow> StoredKernel::rows(const std::vector<std::int64_t>& which) {
    std::vector<KernelRow> out;
    out.reserve(which.size());
    for (const std::int64_t i : which) out.emplace_back(KernelRow(), values_ + static_cast<std::size_t>(i) * stride_);
    return out;
}

Doubles StoredKernel::product(const Doubles& coefficients) {
    Doubles out(n_, 0.0);
    for (std::size_t i = 0; i < n_; ++i) add_multiple(level_, &out, values_ + i * stride_, coefficients[i]);
    return out;
}

ActiveSet::ActiveSet(std::shared_ptr<const HomotopyMatrix> matrix, Family family, std::vector<std::int8_t> side,
                     double t, const Threads& threads)
    : matrix_(std::move(matrix)), family_(std::move(family)), t_(t), side_(std::move(side)), system_(0.0) {
    kappa_.resize(n());
    for (std::size_t v = 0; v < n(); ++v) {
        kappa_[v] = matrix_->own(v);
        unit_ = std::max(unit_, kappa_[v]);
    }
    if (!(unit_ > 0.0)) unit_ = 1.0;
    for (double& own : kappa_) own = own > kSmallShare * unit_ ? own : unit_;
    has_d_ = std::any_of(matrix_->d.begin(), matrix_->d.end(), [](double d) { return d != 0.0; });
    system_ = FreeSystem(biased() ? unit_ : 0.0);
    describe_family();
    std::vector<std::int64_t> wanted;
    for (std::size_t v = 0; v < n(); ++v) {
        if (side_[v] != kFree) continue;
        order_.push_back(v);
        wanted.push_back(matrix_->row[v]);
    }
    if (!order_.empty()) {
        rows_ = matrix_->kernel->rows(wanted);
        const std::size_t m = order_.size();
        Doubles values(m * m);
        for (std::size_t i = 0; i < m; ++i) {
            for (std::size_t j = 0; j < m; ++j) values[i * m + j] = rows_[i].get()[wanted[j]];
            values[i * m + i] += matrix_->d[order_[i]];
        }
        sound_ = system_.fill(values, m, threads);
    }
    restart(threads);
}

void ActiveSet::describe_family() {
    pinned_.assign(n(), false);
    still_.assign(n(), false);
    for (std::size_t v = 0; v < n(); ++v) {
        const Line low = family_.lower[v], high = family_.upper[v];
        pinned_[v] = low.start == high.start && low.slope == high.slope;
    }
    steepest_target_ = largest(family_.p.slope);
    largest_target_ = std::max(largest(family_.p.start), steepest_target_);
    // A residual far from zero stays so for a while only if w and the bias alone move it.
    follows_near_ = n() >= kMany && !has_d_ && steepest_target_ == 0.0;
    near_.reset();
    segment_holds_ = false;
}

void ActiveSet::change_family(Family family, double t, const Threads& threads) {
    family_ = std::move(family);
    t_ = t;
    log_.clear();
    describe_family();
    std::vector<std::size_t> moved;
    std::vector<std::int64_t> wanted;
    for (std::size_t v = 0; v < n(); ++v) {
        if (side_[v] == kFree) continue;
        const Line bound = family_.bound(v, side_of(v));
        if (bound.start == at_.start[v] && bound.slope == at_.slope[v]) continue;
        moved.push_back(v);
        wanted.push_back(matrix_->row[v]);
    }
    if (moved.size() > n() / kFewChanges) {
        restart(threads);
        return;
    }
    const std::vector<KernelRow> rows = matrix_->kernel->rows(wanted);
    for (std::size_t i = 0; i < moved.size(); ++i) {
        const std::size_t v = moved[i];
        const Line bound = family_.bound(v, side_of(v)), before = at_[v];
        add(rows[i].get(), {bound.start - before.start, bound.slope - before.slope}, threads.level);
        at_.set(v, bound);
    }
}

void ActiveSet::move_to(double t) {
    t_ = t;
    segment_holds_ = false;
}

void ActiveSet::restart(const Threads& threads) {
    threads.poll.check();
    at_ = Lines(n());
    sum_ = lost_ = {};
    const std::size_t n_rows = matrix_->n_rows();
    Lines coefficients(n_rows);
    bool starts = false, slopes = false;
    for (std::size_t v = 0; v < n(); ++v) {
        if (side_[v] == kFree) continue;
        const Line bound = family_.bound(v, side_of(v));
        at_.set(v, bound);
        sum_.start += bound.start;
        sum_.slope += bound.slope;
        coefficients.start[matrix_->row_of(v)] += bound.start;
        coefficients.slope[matrix_->row_of(v)] += bound.slope;
        starts = starts || bound.start != 0.0;
        slopes = slopes || bound.slope != 0.0;
    }
    u_.start = starts ? matrix_->kernel->product(coefficients.start) : Doubles(n_rows, 0.0);
    u_.slope = slopes ? matrix_->kernel->product(coefficients.slope) : Doubles(n_rows, 0.0);
    segment_holds_ = false;
}

// --- who depends on whom ---------------------------------------------------------------------------------------------

// A variable's kernel values with the free ones, as a column of M.
Doubles ActiveSet::column(std::size_t v) const {
    const std::size_t first = system_.first();
    Doubles out(first + order_.size());
    if (first == 1) out[0] = unit_;
    for (std::size_t i = 0; i < order_.size(); ++i) out[first + i] = rows_[i].get()[matrix_->row_of(v)];
    return out;
}

// v's combination of the free ones, the squared length of what is left, and the terms that cancelled in it.
ActiveSet::Split ActiveSet::split(std::size_t v, const Threads& threads) {
    const double own = matrix_->own(v);
    if (order_.empty()) return {{}, own, unit_};
    const Doubles from = column(v);
    Split out{{}, own, 0.0};
    if (!system_.solve(1, &from, &out.z, threads)) {
        sound_ = false;
        return out;
    }
    double size = 0.0, most = 0.0;
    for (std::size_t i = 0; i < from.size(); ++i) {
        out.left -= from[i] * out.z[i];
        size += std::abs(out.z[i]);
        most = std::max(most, system_.entry(i, i));
    }
    // z solves its equations up to rounding, and what is left is wrong by z'|M|z roundings, or by fewer than these:
    out.terms = own + most + unit_ * size * size;
    if (out.left > kDependentShare * out.terms) return out;
    out.terms = own + most;
    for (std::size_t i = 0; i < from.size(); ++i) {
        double sum = 0.0;
        for (std::size_t j = 0; j < from.size(); ++j) sum += std::abs(system_.entry(i, j)) * std::abs(out.z[j]);
        out.terms += std::abs(out.z[i]) * sum;
    }
    return out;
}

std::optional<Doubles> ActiveSet::combination(std::size_t v, const Threads& threads) {
    if (biased() && order_.empty()) return std::nullopt;
    Split found = split(v, threads);
    if (!sound_) return std::nullopt;
    if (found.left > kDependentShare * found.terms) {
        known_variable_ = v;
        known_column_ = std::move(found.z);
        return std::nullopt;
    }
    found.z.erase(found.z.begin(), found.z.begin() + static_cast<std::ptrdiff_t>(order_.empty() ? 0 : system_.first()));
    return std::move(found.z);
}

double ActiveSet::distance(std::size_t v, const Threads& threads) {
    return biased() && order_.empty() ? kInfinity : std::max(0.0, split(v, threads).left);
}

// --- changes ---------------------------------------------------------------------------------------------------------

bool ActiveSet::release(std::size_t v, const Threads& threads) {
    const KernelRow row = matrix_->kernel->rows({matrix_->row[v]}).front();
    leave_bound(v, row.get(), threads.level);
    side_[v] = kFree;
    segment_holds_ = false;
    const bool known = known_column_.has_value() && known_variable_ == v;
    sound_ = system_.add(column(v), matrix_->own(v), known ? &*known_column_ : nullptr, threads) && sound_;
    known_column_.reset();
    if (near_.has_value() && !add_near_row(order_.size(), row.get())) near_.reset();
    rows_.push_back(row);
    order_.push_back(v);
    log_.push_back({t_, v, kFree});
    return sound_;
}

void ActiveSet::fix(std::size_t v, Side side, const Threads& threads) {
    segment_holds_ = false;
    if (side_[v] != kFree) {
        const KernelRow row = matrix_->kernel->rows({matrix_->row[v]}).front();
        leave_bound(v, row.get(), threads.level);
        join_bound(v, side, row.get(), threads.level);
        return;
    }
    const auto k = static_cast<std::size_t>(std::find(order_.begin(), order_.end(), v) - order_.begin());
    const std::size_t last = order_.size() - 1;
    join_bound(v, side, rows_[k].get(), threads.level);
    system_.remove(k, threads.level);
    known_column_.reset();
    if (near_.has_value()) {
        std::copy_n(near_->rows.data() + last * near_->width, near_->width, near_->rows.data() + k * near_->width);
    }
    rows_[k] = rows_[last];
    rows_.pop_back();
    order_[k] = order_[last];
    order_.pop_back();
    still_.assign(n(), false);
    if (order_.empty() || (near_.has_value() && !add_near(v))) near_.reset();
}

// Adds the kernel values of a free variable with the near ones; false if they do not fit.
bool ActiveSet::add_near_row(std::size_t place, const double* row) {
    if (place >= near_->height) return false;
    double* const to = near_->rows.data() + place * near_->width;
    for (std::size_t i = 0; i < near_->which.size(); ++i) to[i] = row[matrix_->row_of(near_->which[i])];
    return true;
}

// Follows one more residual; false if it does not fit.
bool ActiveSet::add_near(std::size_t v) {
    if (std::find(near_->which.begin(), near_->which.end(), v) != near_->which.end()) return true;
    const std::size_t i = near_->which.size();
    if (i >= near_->width) return false;
    const std::size_t row = matrix_->row_of(v);
    for (std::size_t j = 0; j < order_.size(); ++j) near_->rows[j * near_->width + i] = rows_[j].get()[row];
    near_->which.push_back(v);
    return true;
}

void ActiveSet::leave_bound(std::size_t v, const double* row, const Level& level) {
    add(row, {-at_.start[v], -at_.slope[v]}, level);
    at_.set(v, {});
}

void ActiveSet::join_bound(std::size_t v, Side side, const double* row, const Level& level) {
    const Line bound = family_.bound(v, side);
    side_[v] = side;
    at_.set(v, bound);
    log_.push_back({t_, v, side});
    add(row, bound, level);
}

void ActiveSet::add(const double* row, Line line, const Level& level) {
    if (line.start == 0.0 && line.slope == 0.0) return;
    add_multiple(level, &u_.start, row, line.start);
    add_multiple(level, &u_.slope, row, line.slope);
    sum_.start += line.start;
    sum_.slope += line.slope;
    lost_.start += kEps * (unit_ * std::abs(line.start) + largest(u_.start));
    lost_.slope += kEps * (unit_ * std::abs(line.slope) + largest(u_.slope));
}

}  // namespace mercer
