#include "hmc/device.h"

#include <fmt/format.h>

#include <charconv>

#include "base/error.h"

namespace hmc {

namespace {

constexpr const char* kNames[] = {
#define HMC_ROW(kind, product, type, library) #kind,
    HMC_DEVICE_KINDS(HMC_ROW)
#undef HMC_ROW
};

bool readIndex(const char* first, const char* last, int& index) {
  auto [stop, problem] = std::from_chars(first, last, index);
  return problem == std::errc() && stop == last && index >= 0;
}

}  // namespace

const char* deviceKindName(DeviceKind kind) {
  const auto row = static_cast<int>(kind);
  return row < kDeviceKindCount ? kNames[row] : "unknown";
}

const DeviceKind* findDeviceKind(const std::string& name) {
  for (int i = 0; i < kDeviceKindCount; ++i) {
    if (name == kNames[i]) return &kDeviceKinds[i];
  }
  return nullptr;
}

Status parseDevice(const std::string& text, Device& device) {
  const size_t colon = text.find(':');
  const DeviceKind* kind = findDeviceKind(text.substr(0, colon));
  if (!kind) {
    return error(Code::invalidArgument,
                 "device \"{}\": the kinds are {}, with a number as in \"cuda:1\"", text,
                 fmt::join(kNames, ", "));
  }
  int index = 0;
  if (colon != std::string::npos &&
      !readIndex(text.data() + colon + 1, text.data() + text.size(), index)) {
    return error(Code::invalidArgument,
                 "device \"{}\": after the colon comes its number, as in \"cuda:1\"", text);
  }
  device = {*kind, index};
  return Status();
}

std::string Device::toString() const {
  return isHost() ? "cpu" : std::string(deviceKindName(kind)) + ":" + std::to_string(index);
}

}  // namespace hmc
