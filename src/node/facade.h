#pragma once

// What a facade needs of memory: devices, allocation, and copies between any two regions.
#include "memory/backends.h"
#include "memory/copy.h"
#include "memory/device_of.h"
#include "memory/device_pins.h"
#include "memory/pending_copy.h"
#include "memory/range_error.h"
