#pragma once

#include "hmc/conn_buffer.h"
#include "node/facade.h"

namespace hmc {

// The buffer's memory, as the rest of the library sees it.
Region regionOf(const ConnBuffer& buffer);

}  // namespace hmc
