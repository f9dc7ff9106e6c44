// How a long call can be abandoned: work loops ask a Poll now and then whether to go on.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

namespace mercer {

// Thrown by check() after another thread of the call has failed; the caller sees that thread's exception.
struct Abandoned {};

// One Poll belongs to one call. Only the thread that made it runs `callback` (which may throw, and then the call
// unwinds); the other threads of that call see stopped() and leave. The core knows no Python: the callback is how it
// gets there.
class Poll {
public:
    using Callback = void (*)(void*);
    using Clock = std::chrono::steady_clock;

    explicit Poll(Callback callback = nullptr, void* context = nullptr)
        : callback_(callback), context_(context), owner_(std::this_thread::get_id()), next_(Clock::now() + kInterval) {}

    Poll(const Poll&) = delete;
    Poll& operator=(const Poll&) = delete;

    // Costs a clock read, so ask about once per millisecond of work.
    void check() {
        if (stopped()) throw Abandoned{};
        if (callback_ == nullptr || std::this_thread::get_id() != owner_) return;
        const auto now = Clock::now();
        if (now < next_) return;
        next_ = now + kInterval;
        callback_(context_);
    }

    void stop() { stop_.store(true, std::memory_order_relaxed); }
    bool stopped() const { return stop_.load(std::memory_order_relaxed); }

    // Rarely enough that taking Python's lock costs nothing, often enough that Ctrl-C feels immediate.
    static constexpr std::chrono::milliseconds kInterval{30};

private:
    Callback callback_;
    void* context_;
    std::thread::id owner_;
    Clock::time_point next_;
    std::atomic<bool> stop_{false};
};

// Seconds since it was made.
class Stopwatch {
public:
    double seconds() const { return std::chrono::duration<double>(Poll::Clock::now() - begun_).count(); }

private:
    const Poll::Clock::time_point begun_ = Poll::Clock::now();
};

}  // namespace mercer
