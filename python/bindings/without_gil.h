#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <utility>

namespace hmc::python {

// Takes the GIL back. Once the interpreter is ending, other threads never get it: such a thread
// stays in here, because returning would run destructors that need the GIL.
void takeGil(PyThreadState* state) noexcept;
[[noreturn]] void stayForever();

// PyGILState_Check() says yes to every thread once the interpreter has ended, also to those of ours
// that Python never knew.
inline bool holdsGil() {
  return PyGILState_GetThisThreadState() != nullptr && PyGILState_Check() != 0;
}

// Releases the GIL while it lives.
class ReleasedGil {
 public:
  ReleasedGil() : state_(PyEval_SaveThread()) {}
  ~ReleasedGil() { takeGil(state_); }
  ReleasedGil(const ReleasedGil&) = delete;
  ReleasedGil& operator=(const ReleasedGil&) = delete;

 private:
  PyThreadState* state_;
};

// Runs `work` without the GIL and returns its result.
template <class Work>
auto withoutGil(Work&& work) {
  ReleasedGil release;
  return std::forward<Work>(work)();
}

// What `call` returns, which runs code of Python's. If the interpreter ends meanwhile, the thread
// stays in here, for the reason that takeGil() gives.
template <class Call>
PyObject* inPython(Call&& call) {
  try {
    return std::forward<Call>(call)();
  } catch (...) {  // no C++ exception comes out of Python: this ends the thread
    stayForever();
  }
}

// Calls a Python function with up to two arguments.
pybind11::object callPython(pybind11::handle function, pybind11::handle first = {},
                            pybind11::handle second = {});

// Destroys without the GIL, because saying goodbye to peers takes a moment.
template <class T>
std::shared_ptr<T> sharedWithoutGil(T* made) {
  return std::shared_ptr<T>(made, [](T* gone) {
    if (!holdsGil()) {
      delete gone;
      return;
    }
    ReleasedGil release;
    delete gone;
  });
}

}  // namespace hmc::python
