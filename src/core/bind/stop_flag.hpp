// What ends the calls that several threads make for one fit: a flag that one thread raises and the others poll.
#pragma once

#include <atomic>
#include <exception>
#include <memory>

// Thrown by a call in a thread whose flag is raised.
struct Cancelled : std::exception {
    const char* what() const noexcept override { return "another thread of the same fit was interrupted or failed"; }
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
