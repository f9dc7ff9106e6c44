// Functions that JavaScript calls, with numbers and addresses of float64 arrays as arguments.
//
// A session holds the points and the kernel, the parts of the machine that was solved (one, or one for each pair of
// classes), the path in C of one part, and a trace. Arrays stay valid until the next call of the function that returned
// them.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "machines.hpp"
#include "steps.hpp"

#define PAGE_EXPORT(name) __attribute__((export_name(name), visibility("default"), used))

namespace mercer::page {
namespace {

struct PathSegment {
    double from, to;
    Vector begin, end;  // beta of the points at both ends
    double b_begin, b_end;
    int free, bounded;
    double energy;  // at the end
};

struct Session {
    std::size_t n = 0, d = 2;
    Vector x, y, K;
    std::vector<Term> terms;
    std::vector<Part> parts;
    Vector out, report, grid;
    std::vector<PathSegment> path;
    int path_end = 0;  // 1: at its end, 2: rounding decides, 3: too many events, 0: not begun
    Trace trace;
    Part at_step;  // the part at one step of the trace
};

Session session;

constexpr std::size_t kReport = 16;
constexpr std::size_t kMostEvents = 20000;
constexpr int kAtStep = -1;  // number of the part at a step of the trace

Part part_of(const std::vector<int>& members, const Vector& y) {
    Part part;
    part.members = members;
    part.d = session.d;
    part.y = y;
    for (const int i : members) {
        for (std::size_t k = 0; k < session.d; ++k) {
            part.x.push_back(session.x[static_cast<std::size_t>(i) * session.d + k]);
        }
    }
    return part;
}

Vector kernel_of(const std::vector<int>& members) {
    const std::size_t m = members.size();
    if (m == session.n) return session.K;
    Vector out(m * m);
    for (std::size_t a = 0; a < m; ++a) {
        const double* const row = session.K.data() + static_cast<std::size_t>(members[a]) * session.n;
        for (std::size_t b = 0; b < m; ++b) out[a * m + b] = row[static_cast<std::size_t>(members[b])];
    }
    return out;
}

std::vector<int> everyone() {
    std::vector<int> out(session.n);
    for (std::size_t i = 0; i < session.n; ++i) out[i] = static_cast<int>(i);
    return out;
}

// One part for each pair of classes that have points, in the order of classes; the first class is +1, as f > 0 is a vote
// for it.
void split_by_pairs() {
    session.parts.clear();
    std::vector<int> classes;
    for (const double label : session.y) {
        const int value = static_cast<int>(label);
        if (std::find(classes.begin(), classes.end(), value) == classes.end()) classes.push_back(value);
    }
    std::sort(classes.begin(), classes.end());
    for (std::size_t a = 0; a < classes.size(); ++a) {
        for (std::size_t b = a + 1; b < classes.size(); ++b) {
            std::vector<int> members;
            Vector y;
            for (std::size_t i = 0; i < session.n; ++i) {
                const int value = static_cast<int>(session.y[i]);
                if (value != classes[a] && value != classes[b]) continue;
                members.push_back(static_cast<int>(i));
                y.push_back(value == classes[a] ? 1.0 : -1.0);
            }
            session.parts.push_back(part_of(members, y));
        }
    }
}

Part* part_at(int k) {
    if (k == kAtStep) return &session.at_step;
    if (k < 0 || static_cast<std::size_t>(k) >= session.parts.size()) return nullptr;
    return &session.parts[static_cast<std::size_t>(k)];
}

// From values of a part's rows to those of all points.
void spread(const Part& part, const Vector& of_rows, double* out) {
    for (std::size_t i = 0; i < part.members.size(); ++i) out[part.members[i]] = of_rows[i];
}

// f of a part on a grid.
void fill_grid(const Part& part, const Grid& at, double* out) {
    std::fill_n(out, at.columns * at.rows, part.b);
    add_to_grid(part.points(), session.terms, part.problem.coefficients(part.beta), at, out);
}

}  // namespace
}  // namespace mercer::page

using namespace mercer::page;
using mercer::Homotopy;
using mercer::Segment;

extern "C" {

// --- points and kernel ------------------------------------------------------------------------------------------------

// Room for n points of d coordinates, and for their labels or targets.
PAGE_EXPORT("points") double* points(int n, int d) {
    session = {};
    session.n = static_cast<std::size_t>(n);
    session.d = static_cast<std::size_t>(d);
    session.x.assign(session.n * session.d, 0.0);
    session.y.assign(session.n, 0.0);
    return session.x.data();
}
PAGE_EXPORT("targets") double* targets() { return session.y.data(); }

PAGE_EXPORT("clear_kernel") void clear_kernel() { session.terms.clear(); }
PAGE_EXPORT("add_term") void add_term(int kind, double scale, double gamma, int degree, double coef0) {
    session.terms.push_back({static_cast<Kind>(kind), scale, gamma, degree, coef0});
}

// 1, or 0 where a kernel value is no finite number.
PAGE_EXPORT("prepare") int prepare() {
    session.K = gram({session.x.data(), session.n, session.d}, session.terms);
    for (const double value : session.K) {
        if (!std::isfinite(value)) return 0;
    }
    return 1;
}
PAGE_EXPORT("gram") const double* gram_values() { return session.K.data(); }

// --- machines -----------------------------------------------------------------------------------------------------------

// Each returns the number of parts.
PAGE_EXPORT("fit_svc") int fit_svc(double C) {
    split_by_pairs();
    for (Part& part : session.parts) {
        part.problem = soft_margin(part.y, C, kernel_of(part.members));
        solve(&part, session.terms);
    }
    return static_cast<int>(session.parts.size());
}

PAGE_EXPORT("fit_hard_margin") int fit_hard_margin() {
    split_by_pairs();
    for (Part& part : session.parts) {
        part.problem = soft_margin(part.y, 1.0, kernel_of(part.members));
        solve_hard_margin(&part, session.terms);
    }
    return static_cast<int>(session.parts.size());
}

PAGE_EXPORT("fit_svr") int fit_svr(double C, double epsilon) {
    session.parts.assign(1, part_of(everyone(), session.y));
    session.parts[0].problem = tube(session.y, C, epsilon, session.K);
    solve(&session.parts[0], session.terms);
    return 1;
}

PAGE_EXPORT("fit_one_class") int fit_one_class(double nu) {
    session.parts.assign(1, part_of(everyone(), Vector(session.n, 1.0)));
    session.parts[0].problem = one_class(session.n, nu, session.K);
    solve(&session.parts[0], session.terms);
    return 1;
}

// primal, dual, gap, violation, box, equality, primal feasibility, complementary slackness, b, free, bounded, steps,
// whether it is exact, the verdict of a hard margin, w'w, variables.
PAGE_EXPORT("report") const double* report(int k) {
    const Part* const part = part_at(k);
    if (part == nullptr) return nullptr;
    const Certificate& proof = part->proof;
    session.report = {proof.primal,
                      proof.dual,
                      proof.gap,
                      proof.violation,
                      proof.box,
                      proof.equality,
                      proof.outward,
                      proof.inward,
                      part->b,
                      static_cast<double>(part->n_free()),
                      static_cast<double>(part->n_bounded()),
                      static_cast<double>(part->steps),
                      part->exact ? 1.0 : 0.0,
                      static_cast<double>(part->verdict),
                      part->energy,
                      static_cast<double>(part->problem.n())};
    session.report.resize(kReport);
    return session.report.data();
}

// The coefficients of all points in one part's f; zero for those that it does not have.
PAGE_EXPORT("coefficients") const double* coefficients(int k) {
    session.out.assign(session.n, 0.0);
    if (const Part* const part = part_at(k)) spread(*part, part->problem.coefficients(part->beta), session.out.data());
    return session.out.data();
}

// Coefficients of the hulls' nearest points for a hard margin; they add up to +1 and -1.
PAGE_EXPORT("hull_coefficients") const double* hull_coefficients(int k) {
    session.out.assign(session.n, 0.0);
    if (const Part* const part = part_at(k); part != nullptr && !part->hulls.empty()) {
        spread(*part, part->hulls, session.out.data());
    }
    return session.out.data();
}

// f of all points, and NaN for those that the part does not have.
PAGE_EXPORT("values") const double* values(int k) {
    session.out.assign(session.n, std::nan(""));
    const Part* const part = part_at(k);
    if (part == nullptr) return session.out.data();
    const Vector own = part->problem.coefficients(part->beta);
    const std::size_t m = own.size();
    for (std::size_t i = 0; i < m; ++i) {
        double sum = part->b;
        for (std::size_t j = 0; j < m; ++j) sum += own[j] * part->problem.kernel[i * m + j];
        session.out[static_cast<std::size_t>(part->members[i])] = sum;
    }
    return session.out.data();
}

// f of every part on a grid, one after the other; each has rows of `columns` values.
PAGE_EXPORT("grid") const double* grid(double left, double top, double width, double height, int columns, int rows) {
    const Grid at{left, top, width, height, static_cast<std::size_t>(columns), static_cast<std::size_t>(rows)};
    const std::size_t size = at.columns * at.rows;
    session.grid.assign(size * session.parts.size(), 0.0);
    for (std::size_t k = 0; k < session.parts.size(); ++k) {
        fill_grid(session.parts[k], at, session.grid.data() + k * size);
    }
    return session.grid.data();
}

// --- the path in C --------------------------------------------------------------------------------------------------------

// Follows part k, which was fitted, from one C to another; returns how it ended: 1 at `to`, 2 where rounding decides the
// order of events, 3 after too many, 0 if it did not begin.
PAGE_EXPORT("follow") int follow(int k, double from, double to) {
    session.path.clear();
    session.path_end = 0;
    const Part* const part = part_at(k);
    if (part == nullptr) return 0;
    Problem unit = part->problem;
    for (std::size_t v = 0; v < unit.n(); ++v) {
        unit.lower[v] = unit.lower[v] < 0 ? -1.0 : 0.0;
        unit.upper[v] = unit.upper[v] > 0 ? 1.0 : 0.0;
    }
    Part first = *part;
    for (std::size_t v = 0; v < unit.n(); ++v) {
        first.problem.lower[v] = from * unit.lower[v];
        first.problem.upper[v] = from * unit.upper[v];
    }
    solve(&first, session.terms);
    std::optional<Homotopy> path = settle(first.problem.matrix(), first.problem.family(), first.beta, one_thread());
    if (!path.has_value()) return 0;
    path->change_family(unit.in_bounds(), from, one_thread());
    double begun = from;
    std::size_t events = 0;
    // Sums of coefficients from which on f's rounding is more than a millionth.
    double largest = 0.0;
    for (std::size_t i = 0; i < unit.m; ++i) largest = std::max(largest, unit.kernel[i * unit.m + i]);
    const double most = 1e-6 / (8.0 * 0x1p-52 * std::max(largest, 1e-300));
    // Notes what lies between the last event and `end`; false where f's rounding is too large.
    const auto note = [&](const Segment& known, double end) {
        if (!(end > begun * (1.0 + 1e-12))) return true;
        const bool rests = path->order().empty();
        const Segment segment = rests ? path->resting(end) : known;
        PathSegment own;
        own.from = begun;
        own.to = end;
        const Vector last = path->beta(end, segment, one_thread());
        own.begin = unit.coefficients(path->beta(begun, segment, one_thread()));
        own.end = unit.coefficients(last);
        own.b_begin = rests ? path->resting(begun).b.start : segment.b_at(begun);
        own.b_end = segment.b_at(end);
        own.free = static_cast<int>(path->order().size());
        own.bounded = 0;
        double size = 0.0;
        for (std::size_t v = 0; v < last.size(); ++v) {
            size += std::abs(last[v]);
            own.bounded += last[v] != 0.0 && path->side()[v] != mercer::kFree;
        }
        own.energy = path->energy(end, segment);
        begun = end;
        session.path.push_back(std::move(own));
        return size <= most;
    };
    while (session.path_end == 0) {
        const Homotopy::Next next = path->advance(to, true, one_thread());
        if (next == Homotopy::Next::kEnd) {
            path->move_to(begun);
            if (const Segment* const last = path->segment(one_thread())) note(*last, to);
            session.path_end = 1;
        } else if (next == Homotopy::Next::kStalled) {
            session.path_end = 2;
        } else if (++events > kMostEvents) {
            session.path_end = 3;
        } else if (!note(*path->segment(one_thread()), path->t()) || !path->apply(one_thread())) {
            session.path_end = 2;
        }
    }
    return session.path_end;
}

PAGE_EXPORT("path_segments") int path_segments() { return static_cast<int>(session.path.size()); }

// A segment of part k: from, to, b at both ends, free, bounded, w'w at its end; then the coefficients of all points at its
// beginning, and those at its end.
PAGE_EXPORT("path_segment") const double* path_segment(int k, int at) {
    const Part* const part = part_at(k);
    session.out.assign(7 + 2 * session.n, 0.0);
    if (part == nullptr || at < 0 || static_cast<std::size_t>(at) >= session.path.size()) return session.out.data();
    const PathSegment& own = session.path[static_cast<std::size_t>(at)];
    const double head[] = {own.from, own.to,  own.b_begin, own.b_end, static_cast<double>(own.free),
                           static_cast<double>(own.bounded), own.energy};
    std::copy(std::begin(head), std::end(head), session.out.begin());
    spread(*part, own.begin, session.out.data() + 7);
    spread(*part, own.end, session.out.data() + 7 + session.n);
    return session.out.data();
}

// Puts part k, a soft margin with one variable for each point, onto its path at C, and certifies it there: 1, or 0 where
// the path does not go.
PAGE_EXPORT("move_along") int move_along(int k, double C) {
    Part* const part = part_at(k);
    if (part == nullptr || part->problem.n() != part->problem.m || session.path.empty()) return 0;
    const auto after = std::find_if(session.path.begin(), session.path.end(),
                                    [C](const PathSegment& own) { return C <= own.to; });
    if (after == session.path.end() || C < after->from) return 0;
    const double share = (C - after->from) / (after->to - after->from);
    Vector beta(part->problem.n());
    for (std::size_t v = 0; v < beta.size(); ++v) {
        const bool positive = part->problem.p[v] > 0;
        part->problem.lower[v] = positive ? 0.0 : -C;
        part->problem.upper[v] = positive ? C : 0.0;
        // A variable on a bound at both ends is on it in between, to the last bit.
        const double sign = positive ? 1.0 : -1.0;
        const bool bounded = after->begin[v] == sign * after->from && after->end[v] == sign * after->to;
        const double between = after->begin[v] + share * (after->end[v] - after->begin[v]);
        beta[v] = bounded ? sign * C : std::clamp(between, part->problem.lower[v], part->problem.upper[v]);
    }
    part->exact = true;
    conclude(part, session.terms, std::move(beta));
    return 1;
}

// --- the trace --------------------------------------------------------------------------------------------------------------

// The steps of Algorithm 4.2 on part k; returns how many, negative if it did not converge.
PAGE_EXPORT("trace") int run_trace(int k, double C, int rule, double tol, int most) {
    session.trace = {};
    const Part* const part = part_at(k);
    if (part == nullptr) return 0;
    Problem problem = part->problem;
    session.trace = trace(problem, C, static_cast<Rule>(rule), tol, static_cast<std::size_t>(most));
    const int count = static_cast<int>(session.trace.steps.size());
    return session.trace.converged ? count : -count;
}

// i, j (points), room of i and of j, Newton's step, the step taken, gain, dual, violation, b, alpha_i and alpha_j before;
// then the alpha of all points afterwards.
PAGE_EXPORT("trace_step") const double* trace_step(int k, int at) {
    const Part* const part = part_at(k);
    session.out.assign(12 + session.n, 0.0);
    if (part == nullptr || at < 0 || static_cast<std::size_t>(at) >= session.trace.steps.size()) {
        return session.out.data();
    }
    const Step& s = session.trace.steps[static_cast<std::size_t>(at)];
    const double head[] = {static_cast<double>(part->members[static_cast<std::size_t>(s.i)]),
                           static_cast<double>(part->members[static_cast<std::size_t>(s.j)]),
                           s.room_i, s.room_j, s.newton, s.size, s.gain, s.dual, s.violation, s.b, s.alpha_i, s.alpha_j};
    std::copy(std::begin(head), std::end(head), session.out.begin());
    spread(*part, session.trace.alpha[static_cast<std::size_t>(at)], session.out.data() + 12);
    return session.out.data();
}

// Makes part -1 of part k: α and b after this many steps of its trace, with their certificate. 0 if there is no such
// step.
PAGE_EXPORT("go_to_step") int go_to_step(int k, int steps) {
    const Part* const part = part_at(k);
    if (part == nullptr || steps < 0 || static_cast<std::size_t>(steps) > session.trace.steps.size()) return 0;
    Vector beta(part->problem.n(), 0.0);  // of the start, where b is 0, too
    double b = 0.0;
    if (steps > 0) {
        const std::size_t last = static_cast<std::size_t>(steps) - 1;
        for (std::size_t v = 0; v < beta.size(); ++v) beta[v] = part->problem.p[v] * session.trace.alpha[last][v];
        b = session.trace.steps[last].b;
    }
    session.at_step = with_coefficients(*part, session.terms, std::move(beta), b);
    return 1;
}

// f of part -1 on a grid.
PAGE_EXPORT("grid_at_step") const double* grid_at_step(double left, double top, double width, double height,
                                                       int columns, int rows) {
    const Grid at{left, top, width, height, static_cast<std::size_t>(columns), static_cast<std::size_t>(rows)};
    session.grid.assign(at.columns * at.rows, 0.0);
    fill_grid(session.at_step, at, session.grid.data());
    return session.grid.data();
}

}  // extern "C"
