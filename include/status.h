#pragma once

#include "hmc/status.h"  // IWYU pragma: export
