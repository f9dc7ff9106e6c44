// The module that Python sees: arrays come in, are checked for what memory safety needs, and the core runs without the
// interpreter's lock.
#include <nanobind/stl/string.h>

#include <string>

#include "bind/arguments.hpp"
#include "simd/dispatch.hpp"
#include "simd/summation.hpp"
#include "threads/thread_limit.hpp"

// A file for each subject.
void bind_active(nb::module_& m);
void bind_cholesky(nb::module_& m);
void bind_doubled(nb::module_& m);
void bind_dual_findings(nb::module_& m);
void bind_findings(nb::module_& m);
void bind_homotopy(nb::module_& m);
void bind_joint(nb::module_& m);
void bind_kept_values(nb::module_& m);
void bind_linear(nb::module_& m);
void bind_merging(nb::module_& m);
void bind_pegasos(nb::module_& m);
void bind_prepare(nb::module_& m);
void bind_row_entries(nb::module_& m);
void bind_row_hash(nb::module_& m);
void bind_row_passes(nb::module_& m);
void bind_votes(nb::module_& m);
void bind_samples(nb::module_& m);
void bind_shapley(nb::module_& m);
void bind_smo(nb::module_& m);
void bind_stop_flag(nb::module_& m);
void bind_stored(nb::module_& m);
void bind_text(nb::module_& m);

namespace {

auto levels() {
    return as_list(mercer::levels(), [](const mercer::Level* level) { return std::string(level->name); });
}

void set_num_threads(int n) {
    if (n < 1) refuse("n", "must be at least 1, got " + std::to_string(n));
    mercer_set_num_threads(n);
}

}  // namespace

NB_MODULE(_core, m) {
    nb::set_leak_warnings(false);  // objects that a traceback or a debugger holds at exit are no fault of ours
    // Py_IsFinalizing is not in the limited API, and nb::is_alive is true almost to the end: this runs just before a
    // thread that asks for the interpreter's lock would be ended.
    nb::module_::import_("atexit").attr("register")(nb::cpp_function(&Signals::stop_asking));
    m.doc() = "The loops of mercer: arrays in, arrays out.";
    m.def("levels", &levels, "Instruction sets usable here, fastest last.");
    m.def(
        "level", [] { return std::string(mercer::level().name); },
        "The instruction set in use; the environment variable MERCER_SIMD forces one.");
    m.def("get_num_threads", &mercer_get_num_threads, "Threads a call may use when the user named no number.");
    m.def("thread_limit", &mercer::thread_limit, "The limit that set_num_threads set, else 0.");
    m.def("set_num_threads", &set_num_threads, "n"_a, "Limit the threads of calls for which the user named no number.");
    m.attr("FEATURES_PER_RUN") = mercer::kRun;
    m.attr("GROUPS_PER_SUM") = mercer::kGroupsPerSum;
    m.attr("ROW_BLOCK_BYTES") = mercer::kRowBlockBytes;
    bind_active(m);
    bind_cholesky(m);
    bind_doubled(m);
    bind_dual_findings(m);
    bind_findings(m);
    bind_homotopy(m);
    bind_joint(m);
    bind_kept_values(m);
    bind_linear(m);
    bind_merging(m);
    bind_pegasos(m);
    bind_prepare(m);
    bind_row_entries(m);
    bind_row_hash(m);
    bind_row_passes(m);
    bind_votes(m);
    bind_samples(m);
    bind_shapley(m);
    bind_smo(m);
    bind_stop_flag(m);
    bind_stored(m);
    bind_text(m);
}
