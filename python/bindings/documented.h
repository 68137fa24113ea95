#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "errors.h"
#include "hmc/communicator.h"
#include "hmc/memory.h"

// The documented classes: Memory, ConnBuffer, Communicator as they are, and SessionCore, what
// hmc.Session adds to. The enumerations are Python's (hmc/enums.py) and travel as integers.

namespace hmc::python {

using CtrlLink = Communicator::CtrlLink;

// A copy of up to this size on the host is done before another Python thread could have run.
constexpr size_t kShortCopy = size_t{64} << 10;

void bindMemory(pybind11::module_& module);
void bindCommunicator(pybind11::module_& module);
void bindSession(pybind11::module_& module);

// Raises the exception for a value other than SUCCESS.
void check(status_t status);
// The same where NOT_FOUND means that there is no such peer.
void checkPeer(status_t status);
[[noreturn]] void raiseLast();

// Converts arguments; errors name them. Integers may be of any type with __index__.
uint64_t numberArgument(pybind11::handle value, const char* name, uint64_t largest);
std::string textArgument(pybind11::handle value, const char* name);
inline size_t sizeArgument(pybind11::handle value, const char* name) {
  return numberArgument(value, name, SIZE_MAX);
}
inline uint16_t portArgument(pybind11::handle value, const char* name) {
  return static_cast<uint16_t>(numberArgument(value, name, UINT16_MAX));
}
inline uint32_t rankArgument(pybind11::handle value, const char* name) {
  return static_cast<uint32_t>(numberArgument(value, name, UINT32_MAX));
}
// A method with the arguments that all one-sided transfers share, and `more`.
template <class Class, class Method, class... More>
void defOneSided(Class& type, const char* name, Method method, const More&... more) {
  type.def(name, method, pybind11::arg("ip"), pybind11::arg("port"), pybind11::arg("local_off"),
           pybind11::arg("remote_off"), more...);
}
ConnType connArgument(pybind11::handle value);
// Seconds, or None for the usual one.
Communicator::Timeout timeoutArgument(pybind11::handle value);

// Memory that a caller passes: an address, a Buffer, or an object with the buffer protocol. Checks
// the size of the latter two. Lives as long as the call.
class Place {
 public:
  Place(pybind11::handle object, size_t size, bool written);
  ~Place();
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  void* pointer() const { return pointer_; }

 private:
  void* pointer_ = nullptr;
  Py_buffer view_{};
};

}  // namespace hmc::python

namespace pybind11::detail {

// An enumeration of hmc/enums.py.
template <class Enum>
struct PythonEnum {
  PYBIND11_TYPE_CASTER(Enum, const_name("int"));
  bool load(handle source, bool) {
    if (!PyLong_Check(source.ptr())) return false;
    const long number = PyLong_AsLong(source.ptr());
    if (number == -1 && PyErr_Occurred()) {
      PyErr_Clear();
      return false;
    }
    value = static_cast<Enum>(number);
    return true;
  }
  static handle make(const char* name, Enum value) {
    return module_::import("hmc.enums").attr(name)(static_cast<int>(value)).release();
  }
};

#define HMC_PYTHON_ENUM(type, name)                                                           \
  template <>                                                                                 \
  struct type_caster<type> : PythonEnum<type> {                                               \
    static handle cast(type value, return_value_policy, handle) { return make(name, value); } \
  };
HMC_PYTHON_ENUM(hmc::status_t, "Status")
HMC_PYTHON_ENUM(hmc::MemoryType, "MemoryType")
HMC_PYTHON_ENUM(hmc::ConnType, "ConnType")
HMC_PYTHON_ENUM(hmc::Communicator::CtrlTransport, "CtrlTransport")
#undef HMC_PYTHON_ENUM

}  // namespace pybind11::detail
