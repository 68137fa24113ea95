#pragma once

#include <pybind11/pybind11.h>

#include <optional>

#include "hmc/device.h"

// torch's tensors and streams, asked from C++: the functions of hmc/arrays.py that do the same take
// longer than a small put. torch is never imported here, only found where the program has done so.
// Where there is no answer, hmc.arrays has one, or the error to raise.
namespace hmc::python::torch {

// The memory of a tensor that is dense and not empty.
struct Tensor {
  void* data;
  size_t size;
  Device device;
};
std::optional<Tensor> describe(pybind11::handle object);

// torch's current stream of a device.
std::optional<void*> currentStream(const Device& device);

}  // namespace hmc::python::torch
