// The browser's stand-in for src/core/threads/interrupt.hpp: one thread, no clock, and no interrupts.
//
// A call is bounded by its steps instead. The include path of page/core/CMakeLists.txt puts this file first.
#pragma once

namespace mercer {

class Poll {
public:
    void check() {}
    void stop() {}
    bool stopped() const { return false; }
};

class Stopwatch {
public:
    double seconds() const { return 0.0; }
};

}  // namespace mercer
