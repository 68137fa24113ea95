#include "without_gil.h"

#include <unistd.h>

namespace hmc::python {

void takeGil(PyThreadState* state) noexcept {
  try {
    PyEval_RestoreThread(state);
  } catch (...) {  // Python ends the thread, which unwinds it
    for (;;) pause();
  }
}

}  // namespace hmc::python
