// Objects that one call at a time may use.
#pragma once
#include <atomic>

#include "basics.hpp"

/// A T, and whether a call is at work on it.
///
/// Calls that let go of the GIL could meet others in the same object: where one of them moves its
/// arrays, the other would write to memory that is free. The second one is refused instead; to wait
/// for the first would hide that the result depends on which of them came first.
template <class T>
class Exclusive {
  public:
    /// `name` is what messages call it.
    Exclusive(T &&object, const char *name) : object_(std::move(object)), name_(name) {}
    Exclusive(Exclusive &&other) : object_(std::move(other.object_)), name_(other.name_) {}

    /// The object, for as long as this lives.
    class Use {
      public:
        explicit Use(Exclusive &owner) : owner_(owner) {
            if (owner.in_use_.exchange(true, std::memory_order_acquire))
                throw std::runtime_error(std::string("this ") + owner.name_
                                         + " is in use by another thread; "
                                         "give each thread one of its own, or a lock to all of them");
        }
        ~Use() { owner_.in_use_.store(false, std::memory_order_release); }
        Use(const Use &) = delete;
        Use &operator=(const Use &) = delete;

        T &operator*() const { return owner_.object_; }
        T *operator->() const { return &owner_.object_; }

      private:
        Exclusive &owner_;
    };
    Use use() { return Use(*this); }

  private:
    T object_;
    const char *name_;
    std::atomic<bool> in_use_{false};
};

/// A method as one of an object that one call at a time may use.
template <class T, class R, class... Args>
auto exclusive(R (T::*method)(Args...)) {
    return [method](Exclusive<T> &self, Args... args) -> std::decay_t<R> {
        return ((*self.use()).*method)(std::forward<Args>(args)...);
    };
}
template <class T, class R, class... Args>
auto exclusive(R (T::*method)(Args...) const) {
    return [method](Exclusive<T> &self, Args... args) -> std::decay_t<R> {
        return ((*self.use()).*method)(std::forward<Args>(args)...);
    };
}
