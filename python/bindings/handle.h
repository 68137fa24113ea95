#pragma once

#include <memory>
#include <utility>

#include "without_gil.h"

namespace hmc::python {

// Changes in the child of a fork.
int forkCount();
[[noreturn]] void refuseForked();

// Destroys what a Handle held, without the GIL because that may wait for a peer. Does nothing in
// the child of a fork, which lacks the threads that would have to end.
void destroyValue(int madeAtFork, void (*destroy)(void*), void* value);

// Shared ownership of an object of hmc/node.h. Copy and destroy it with the GIL held.
template <class T>
class Handle {
 public:
  explicit Handle(T made) : fork_(forkCount()) {
    auto drop = [fork = fork_](T* value) {
      destroyValue(
          fork, [](void* what) { delete static_cast<T*>(what); }, value);
    };
    value_ = std::shared_ptr<T>(new T(std::move(made)), drop);
  }

  T& operator*() const {
    if (!usable()) refuseForked();
    return *value_;
  }
  T* operator->() const { return &**this; }
  // False in the child of a fork.
  bool usable() const { return fork_ == forkCount(); }

 private:
  int fork_;
  std::shared_ptr<T> value_;
};

// Keeps a Python object alive while HMC uses its memory. If one of HMC's threads, which must not
// wait for the GIL, drops the last reference, a thread with the GIL releases the object soon after.
std::shared_ptr<const void> ownedBy(pybind11::object object);

}  // namespace hmc::python
