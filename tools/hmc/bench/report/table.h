#pragma once

#include <string>

#include "bench/run.h"

// A Run for a terminal: the header, a table per section, the targets, the notes.
namespace hmc::bench {

// Whether what is written to `fd` may be coloured: it is a terminal, and NO_COLOR is not set.
bool wantsColour(int fd);

std::string tableText(const Run& run, bool colour);

}  // namespace hmc::bench
