#include "handle.h"

#include <pthread.h>

#include <mutex>
#include <utility>
#include <vector>

#include "errors.h"

namespace hmc::python {

namespace py = pybind11;

namespace {

int forks = 0;
thread_local bool releasesSoon = false;  // this thread calls releaseDropped() in a moment

// Objects that are no longer needed. Never destroyed: HMC's threads may outlive static objects.
struct Dropped {
  std::mutex mutex;
  std::vector<PyObject*> objects;  // guarded by mutex
};
Dropped& dropped() {
  static auto* one = new Dropped;
  return *one;
}

// Needs the GIL.
int releaseDropped(void* /*unused*/) {
  std::vector<PyObject*> objects;
  {
    std::lock_guard lock(dropped().mutex);
    objects.swap(dropped().objects);
  }
  for (PyObject* object : objects) Py_DECREF(object);
  return 0;
}

void drop(PyObject* object) {
  {
    std::lock_guard lock(dropped().mutex);
    dropped().objects.push_back(object);
  }
  // If the queue is full, the next call releases this one, too.
  if (!releasesSoon && Py_IsInitialized()) Py_AddPendingCall(releaseDropped, nullptr);
}

}  // namespace

int forkCount() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { ++forks; });
  static_cast<void>(registered);
  return forks;
}

void refuseForked() {
  raise(Code::invalidArgument,
        "this process was forked from the one that made this object: make a new Node or Pool here");
}

void destroyValue(int madeAtFork, void (*destroy)(void*), void* value) {
  if (madeAtFork != forkCount()) return;
  if (!holdsGil()) return destroy(value);
  const bool outer = std::exchange(releasesSoon, true);
  withoutGil([&] { destroy(value); });
  releasesSoon = outer;
  releaseDropped(nullptr);
}

std::shared_ptr<const void> ownedBy(py::object object) {
  return {object.release().ptr(), drop};
}

}  // namespace hmc::python
