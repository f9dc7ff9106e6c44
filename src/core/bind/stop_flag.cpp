// Python's view of what ends a fit's calls.
#include "bind/stop_flag.hpp"

#include "bind/arguments.hpp"

void bind_stop_flag(nb::module_& m) {
    // Not an Exception: what a user's kernel function catches must not keep a cancelled fit alive.
    nb::exception<Cancelled>(m, "Cancelled", PyExc_BaseException);
    nb::class_<StopFlag>(m, "StopFlag", "Ends the calls of all threads that watch it.")
        .def(nb::init<>())
        .def("stop", &StopFlag::raise, "End those calls, and all later ones, with Cancelled.")
        .def("watch", &StopFlag::watch, "Let this thread watch this flag, and no other, from now on.");
    nb::exception<OutOfTime>(m, "OutOfTime", PyExc_TimeoutError);
    nb::class_<TimeLimit>(m, "TimeLimit", "A context in which this thread's calls end with OutOfTime after `seconds`.")
        .def(nb::init<double>(), "seconds"_a)
        .def("__enter__", &TimeLimit::begin)
        .def("__exit__", [](const TimeLimit& limit, const nb::args&) { limit.end(); },
             nb::sig("def __exit__(self, *error: object) -> None"));
    m.def("check_stop", &check_stop, "Raise Cancelled or OutOfTime if this thread is to stop.");
}
