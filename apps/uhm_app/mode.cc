#include "mode.h"

#include <algorithm>

namespace hmc::uhm {

const std::vector<Mode>& modes() {
  // clang-format off
  static const std::vector<Mode> kModes = {
      {"uhm", How::stream, ConnType::RDMA, true,
       "sendDataTo, until all bytes are in the receiver's device memory; they pass through its ConnBuffer on the device"},
      {"rdma_cpu", How::put, ConnType::RDMA, false,
       "one put from host memory to host memory, until the bytes are visible there"},
      {"g2h2g", How::stream, ConnType::RDMA, false,
       "sendDataTo, until all bytes are in the receiver's device memory; they pass through its ConnBuffer on the host, in pieces that overlap"},
      {"serial", How::serial, ConnType::RDMA, false,
       "for each piece of half a ConnBuffer, one after the other: device to host, put, tag, host to device over there, tag back"},
      {"ucx", How::put, ConnType::UCX, false,
       "one put from host memory to host memory over UCX, until the bytes are visible there"},
      {"pipeline", How::pipeline, ConnType::RDMA, true,
       "one putPipeline from device memory to device memory, until the bytes are visible there"},
  };
  // clang-format on
  return kModes;
}

const Mode* findMode(const std::string& name) {
  auto found = std::find_if(modes().begin(), modes().end(),
                            [&](const Mode& one) { return one.name == name; });
  return found == modes().end() ? nullptr : &*found;
}

}  // namespace hmc::uhm
