#pragma once

#include "hmc/memory.h"  // IWYU pragma: export
