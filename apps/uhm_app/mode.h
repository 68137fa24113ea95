#pragma once

#include <string>
#include <vector>

#include "hmc.h"

namespace hmc::uhm {

// How the bytes of a mode travel.
enum class How {
  stream,    // sendDataTo and recvDataFrom
  put,       // one put, buffer to buffer
  pipeline,  // one putPipeline, buffer to buffer
  serial,    // copy, put, tag, copy, tag: a piece at a time
};

struct Mode {
  const char* name;
  How how;
  ConnType type;
  bool bufferOnDevice;  // else the ConnBuffers are host memory
  const char* timed;    // what is inside the timer

  // The bytes begin and end in memory of their own, not in the ConnBuffers.
  bool hasOwnMemory() const { return how == How::stream || how == How::serial; }
};

const std::vector<Mode>& modes();
// Null when there is none of that name.
const Mode* findMode(const std::string& name);

}  // namespace hmc::uhm
