#pragma once

#include <cstddef>
#include <string>

#include "bench/run.h"

// Numbers as people read them: three digits and the unit that fits.
namespace hmc::bench {

std::string timeText(double nanoseconds);  // "21.3 ns", "1.64 us", "12.0 ms"
std::string sizeText(size_t bytes);        // "8 B", "64 KiB", "1.5 MiB"
std::string speedText(double gigabytesPerSecond);
std::string valueText(double value, Unit unit);
std::string percentText(double percent);  // "43 %", and "18.4 x" from twice as much on
// "ns" or "GB/s", as in CSV and JSON.
const char* unitName(Unit unit);

}  // namespace hmc::bench
