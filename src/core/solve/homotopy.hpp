// From one solution of a family of dual problems to another, one event after the other (solve/active_set.hpp).
//
// While the set of free variables stays the same, b, the bias and the residuals r = p - Kb - d b - bias are affine in
// t. The next event is where a free variable reaches a bound, or where the residual of a bounded one would change its
// sign:
//
//     at its lower bound: r <= 0        free: r = 0        at its upper bound: r >= 0
//
// With an equality a single free variable is what the others leave of the sum. Where that is one of its bounds it is
// put there: all are bounded, the bias has an interval, and the next event is where that closes.
//
// A variable that would make the equations singular never becomes free (Sentelle, Anagnostopoulos and Georgiopoulos,
// 2016). Its row is a combination of the free ones' rows. Moving it, and the free ones against it, changes no residual;
// it moves until it, or one of them, has reached a bound, and then takes that one's place. Values follow from the sets
// alone, by a fresh solve after every event, so that errors do not add up.
#pragma once

#include "solve/active_set.hpp"

namespace mercer {

class Homotopy : public ActiveSet {
public:
    using ActiveSet::ActiveSet;

    // kStalled: rounding decides the order of events, or the equations are singular.
    enum class Next { kEvent, kEnd, kStalled };

    // Moves t to the next event, before the sets change, or to `end` if there is none before. `recompute_far`: before
    // an event at more than twice t, recompute Kb; slopes that are zero except for rounding would cause such events.
    Next advance(double end, bool recompute_far, const Threads& threads);

    // Changes the sets as the event that advance() found wants it; false if that shows that rounding decides.
    bool apply(const Threads& threads);

    // advance() and apply() up to `end`; false if rounding decides.
    bool follow(double end, const Threads& threads);

    // Puts a single free variable onto a bound where the equality leaves it there, now and (`onwards`) further on. With
    // bounds of 0 and C that is always so; with other bounds or another total it may be inside them.
    void rest(bool onwards, const Threads& threads);

    std::int64_t steps() const { return steps_; }

private:
    struct Event {
        double t;
        std::size_t v;
        Side to;
    };

    Event event_{0.0, 0, kFree};
    double before_ = 0.0, end_ = 0.0;  // t before the event, and where advance() was to end
    bool at_rest_ = false;             // whether no variable was free
    std::int64_t steps_ = 0;
    std::size_t at_once_ = 0;  // events at one t
    std::uint32_t random_ = 1;
    std::size_t n_near_ = 0;
    std::int64_t looked_at_ = 0;

    bool find_event(double end, bool by_chance, Event* event);
    enum class Meeting { kFound, kNone, kImpossible };
    Meeting find_meeting(double end, double* when, std::size_t* v) const;
    bool stays_near(double end);
    void choose_near();
    bool enter(std::size_t v, const Threads& threads);
    bool exchange(std::size_t v, const Doubles& z, const Threads& threads);
};

// The homotopy at t = 1 of the exact solution of the problem that `family` is at t = 1, from any point `beta` in its
// box; nullopt where rounding decides. The family's lines must be constant.
//
// With other targets p0 that point is optimal: those with a gradient equal to the bias where b is free, and with a
// residual of the right sign where it is not; how large these residuals are is left to chance, so that no two events
// coincide. Then p0 is led to p along a line, and the sum to its total. The nearer the point is to the solution, the
// fewer events there are on the way.
std::optional<Homotopy> settle(const std::shared_ptr<const HomotopyMatrix>& matrix, const Family& family, Doubles beta,
                               const Threads& threads);

}  // namespace mercer
