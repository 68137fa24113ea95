#pragma once

#include <memory>
#include <utility>

#include "without_gil.h"

namespace hmc::python {

// Changes in the child of a fork.
int forkCount();
[[noreturn]] void refuseForked();

// Lets go what a Handle held: without the GIL, since that may wait for a peer, and in the child of
// a fork not at all, since the threads that would have to end are not there.
void letGo(int madeAtFork, void (*destroy)(void*), void* value);

// Shared ownership of a class of hmc/node.h. Copy and drop it with the GIL held.
template <class T>
class Handle {
 public:
  explicit Handle(T made) : fork_(forkCount()) {
    auto drop = [fork = fork_](T* value) {
      letGo(
          fork, [](void* what) { delete static_cast<T*>(what); }, value);
    };
    value_ = std::shared_ptr<T>(new T(std::move(made)), drop);
  }

  T& operator*() const {
    if (fork_ != forkCount()) refuseForked();
    return *value_;
  }
  T* operator->() const { return &**this; }

 private:
  int fork_;
  std::shared_ptr<T> value_;
};

// Keeps a Python object alive for memory that HMC uses. The last to drop it may be a thread of
// HMC's that must not wait for the GIL; then the object goes soon after, in a thread that has it.
std::shared_ptr<const void> ownedBy(pybind11::object object);

}  // namespace hmc::python
