#pragma once

namespace hmc::python {

enum class Direction { put, get };

}  // namespace hmc::python
