// Python's view of solve/working_set.hpp: a problem at a point that moves, seen through its active variables.
#include <algorithm>
#include <memory>
#include <type_traits>

#include "bind/arguments.hpp"
#include "solve/working_set.hpp"

namespace {

using Values = Vector<const double>;

// Every index is checked once, when the object is made, and kept in a copy; the values may change from call to call.
class Active {
public:
    Active(AnyArray p, AnyArray lower, AnyArray upper, AnyArray d, AnyArray row, AnyArray group,
           std::int32_t groups, AnyArray beta, AnyArray u, int n_threads)
        : n_threads_(n_threads),
          p_(vector<const double>(p, "p")),
          lower_(vector<const double>(lower, "lower", size())),
          upper_(vector<const double>(upper, "upper", size())),
          d_(vector<const double>(d, "d", size())),
          beta_(vector<const double>(beta, "beta", size())),
          u_(vector<const double>(u, "u")),
          row_(copy(vector<const std::int64_t>(row, "row", size()))),
          group_(copy(vector<const std::int32_t>(group, "group", size()))) {
        check_threads(n_threads);
        if (groups < 0) refuse("groups", "must not be negative");
        check_range(row_.data(), row_.size(), static_cast<std::int64_t>(u_.shape(0)), "row");
        if (groups > 0 && !mercer::all_indices(group_.data(), group_.size(), groups)) {
            refuse("group", "holds an unknown group");
        }
        view_ = {p_.data(),     lower_.data(), upper_.data(), d_.data(), beta_.data(), row_.data(),
                 group_.data(), u_.data(),     nullptr,       0,         groups};
    }

    void choose(AnyArray active) {
        const auto given = vector<const std::int64_t>(active, "active");
        check_range(given.data(), given.shape(0), static_cast<std::int64_t>(size()), "active");
        active_ = std::make_shared<const std::vector<std::int64_t>>(copy(given));
        view_.active = active_->data();
        view_.n = static_cast<std::int64_t>(active_->size());
    }

    TupleOf<double, Doubles, Doubles> ends() const {
        mercer::Ends ends = unlocked([this](const mercer::ActiveView& view, mercer::Poll& poll) {
            return mercer::ends_of(view, n_threads_, poll);
        });
        return nb::make_tuple(ends.violation, as_array(std::move(ends.top)), as_array(std::move(ends.bottom)));
    }

    Indices working_set(AnyArray top, AnyArray bottom, AnyArray kept, std::int64_t count) const {
        const auto kept_ = vector<const std::int64_t>(kept, "kept");
        check_range(kept_.data(), kept_.shape(0), static_cast<std::int64_t>(size()), "kept");
        if (count < 0) refuse("size", "must not be negative");
        std::vector<std::uint8_t> taken = mercer::marked(kept_.data(), kept_.shape(0), size());
        const mercer::Ends ends = given(top, bottom);
        return as_array(unlocked([&](const mercer::ActiveView& view, mercer::Poll& poll) {
            return mercer::working_set(view, ends, taken.data(), count, n_threads_, poll);
        }));
    }

    Indices survivors(AnyArray top, AnyArray bottom) const {
        const mercer::Ends ends = given(top, bottom);
        return as_array(unlocked([&](const mercer::ActiveView& view, mercer::Poll& poll) {
            return mercer::survivors(view, ends, n_threads_, poll);
        }));
    }

private:
    // Calls run(view, poll) without the interpreter's lock. Another thread may call `choose` meanwhile, so that the active
    // variables are held until the end.
    template <class Run>
    std::invoke_result_t<Run, const mercer::ActiveView&, mercer::Poll&> unlocked(Run run) const {
        const auto held = active_;
        const mercer::ActiveView view = view_;
        Signals signals;
        const nb::gil_scoped_release released;
        return run(view, signals.poll());
    }

    std::size_t size() const { return p_.shape(0); }

    template <class T>
    static std::vector<T> copy(const Vector<const T>& from) {
        return {from.data(), from.data() + from.shape(0)};
    }

    mercer::Ends given(AnyArray top, AnyArray bottom) const {
        const auto count = static_cast<std::size_t>(std::max(view_.groups, 1));
        return {copy(vector<const double>(top, "top", count)), copy(vector<const double>(bottom, "bottom", count))};
    }

    int n_threads_;
    Values p_, lower_, upper_, d_, beta_, u_;
    std::vector<std::int64_t> row_;
    std::vector<std::int32_t> group_;
    std::shared_ptr<const std::vector<std::int64_t>> active_;
    mercer::ActiveView view_{};
};

}  // namespace

void bind_active(nb::module_& m) {
    nb::class_<Active>(m, "Active", "A problem at a point that moves, seen through its active variables; h = p - u[row] - d beta.\n\n"
                       "It shares the memory of the float arrays.")
        .def(nb::init<AnyArray, AnyArray, AnyArray, AnyArray, AnyArray, AnyArray, std::int32_t, AnyArray,
                      AnyArray, int>(),
             "p"_a, "lower"_a, "upper"_a, "d"_a, "row"_a, "group"_a,
             "groups"_a, "beta"_a, "u"_a, "n_threads"_a = 1)
        .def("choose", &Active::choose, "active"_a, "Which variables are active from now on.")
        .def("ends", &Active::ends,
             "The violation, and per group the largest h that may grow and the smallest that may shrink.")
        .def("working_set", &Active::working_set, "top"_a, "bottom"_a, "kept"_a, "size"_a,
             "The worst violators besides those kept, by the rule of mercer.problems.working_set, between these ends.")
        .def("survivors", &Active::survivors, "top"_a, "bottom"_a,
             "The active variables that are free or could still be chosen.");
}
