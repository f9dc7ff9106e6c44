// What ends the calls of a fit from outside: a flag that one of its threads raises and the others poll, and a clock.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>

// Thrown by a call in a thread whose flag is raised.
struct Cancelled : std::exception {
    const char* what() const noexcept override { return "another thread of the same fit was interrupted or failed"; }
};

// Thrown by a call in a thread whose time limit has passed.
struct OutOfTime : std::exception {
    const char* what() const noexcept override { return "the time limit has passed"; }
};

// Ends every call that this thread makes between begin() and end(), once `seconds` have passed since begin(). Of nested
// limits, the first to pass counts.
class TimeLimit {
public:
    explicit TimeLimit(double seconds) : seconds_(seconds) {}

    void begin() {
        before_ = ends_;
        // Beyond a year a limit is none, and the sum would overflow.
        if (seconds_ > 3e7) return;
        ends_ = std::min(ends_, Clock::now() + std::chrono::duration_cast<Clock::duration>(Seconds(seconds_)));
    }
    void end() const { ends_ = before_; }

    static void check() {
        if (ends_ != Clock::time_point::max() && Clock::now() >= ends_) throw OutOfTime();
    }

private:
    using Clock = std::chrono::steady_clock;
    using Seconds = std::chrono::duration<double>;
    double seconds_;
    Clock::time_point before_ = Clock::time_point::max();
    inline static thread_local Clock::time_point ends_ = Clock::time_point::max();
};

// Every thread watches at most one flag, so that fits in several threads, or one inside another, do not meet.
class StopFlag {
public:
    void raise() { raised_->store(true, std::memory_order_relaxed); }

    // From now on every call in this thread ends soon after raise().
    void watch() const { watched_ = raised_; }

    static bool watching() { return watched_ != nullptr; }
    static void check() {
        if (watched_ && watched_->load(std::memory_order_relaxed)) throw Cancelled();
    }

private:
    using Flag = std::atomic<bool>;
    std::shared_ptr<Flag> raised_ = std::make_shared<Flag>(false);
    inline static thread_local std::shared_ptr<const Flag> watched_;
};

inline void check_stop() {
    StopFlag::check();
    TimeLimit::check();
}
