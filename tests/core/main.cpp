// Runs the core's own tests, or those named on the command line.
#include <cstdio>
#include <cstring>

#include "check.hpp"

int main(int argc, char** argv) {
    const struct {
        const char* name;
        void (*run)();
    } tests[] = {{"dispatch", test_dispatch}, {"pool", test_pool},      {"row_hash", test_row_hash},
                 {"smo", test_smo},           {"blocks", test_blocks},  {"working_set", test_working_set},
                 {"joint", test_joint},       {"linear", test_linear},  {"array_checks", test_array_checks},
                 {"findings", test_findings}, {"merging", test_merging}, {"row_passes", test_row_passes},
                 {"shapley", test_shapley},   {"doubled", test_doubled}, {"homotopy", test_homotopy}};
    for (const auto& test : tests) {
        bool wanted = argc == 1;
        for (int i = 1; i < argc; ++i) wanted = wanted || std::strcmp(argv[i], test.name) == 0;
        if (!wanted) continue;
        const int before = failures;
        test.run();
        std::printf("%s: %s\n", test.name, failures == before ? "passed" : "FAILED");
    }
    return failures == 0 ? 0 : 1;
}
