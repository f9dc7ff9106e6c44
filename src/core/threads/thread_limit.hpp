// The process-wide number of threads a call may use when the user named none.
#pragma once

#if defined(_WIN32)
#define MERCER_EXPORT __declspec(dllexport)
#else
#define MERCER_EXPORT __attribute__((visibility("default")))
#endif

namespace mercer {
int thread_limit();  // 0 without one; asking for the processors instead reads files
}

// C symbols, because threadpoolctl finds and limits libraries by them.
extern "C" {
MERCER_EXPORT int mercer_get_num_threads(void);
MERCER_EXPORT void mercer_set_num_threads(int n);  // n < 1 lifts the limit
}
