// Python's view of the flag that ends a fit's threads.
#include "bind/stop_flag.hpp"

#include "bind/arguments.hpp"

void bind_stop_flag(nb::module_& m) {
    // Not an Exception: what a user's kernel function catches must not keep a cancelled fit alive.
    nb::exception<Cancelled>(m, "Cancelled", PyExc_BaseException);
    nb::class_<StopFlag>(m, "StopFlag", "Ends the calls of all threads that watch it.")
        .def(nb::init<>())
        .def("raise_", &StopFlag::raise, "End those calls, and all later ones, with Cancelled.")
        .def("watch", &StopFlag::watch, "Let this thread watch this flag, and no other, from now on.");
    m.def("check_stop", &StopFlag::check, "Raise Cancelled if the flag that this thread watches is raised.");
}
