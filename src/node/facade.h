#pragma once

// What a facade needs of memory when it has no Node: devices, allocation, and copies between any
// two regions.
#include "memory/backends.h"
#include "memory/copy.h"
#include "memory/device_of.h"
#include "memory/range_error.h"
