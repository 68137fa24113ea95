#include "capi/copy_type.h"

#include <array>

#include "base/error.h"

namespace hmc::capi {

namespace {

enum class Side : uint8_t { local, host, global, globalHost, any };

struct TypeRow {
  const char* name;
  Side from;
  Side to;
};
// By value.
constexpr std::array<TypeRow, 10> kTypes = {{
    {"L2G", Side::local, Side::global},
    {"G2L", Side::global, Side::local},
    {"G2H", Side::global, Side::host},
    {"H2G", Side::host, Side::global},
    {"L2GH", Side::local, Side::globalHost},
    {"GH2L", Side::globalHost, Side::local},
    {"GH2H", Side::globalHost, Side::host},
    {"H2GH", Side::host, Side::globalHost},
    {"G2G", Side::global, Side::global},
    {"AUTO", Side::any, Side::any},
}};

const char* nameOf(Side side) {
  switch (side) {
    case Side::local:
      return "device memory of this process";
    case Side::host:
      return "host memory of this process";
    case Side::global:
      return "a slot";
    case Side::globalHost:
      return "a host slot";
    case Side::any:
      break;
  }
  return "any memory";
}

bool isSide(const pool::Endpoint& end, Side side, const Caller& caller) {
  const bool ours = !end.place || end.place->rank == caller.rank;
  const bool hostSlot = end.place && end.place->space == PoolSpace::host;
  const bool deviceSlot = end.place && end.place->space == PoolSpace::device;
  const bool onHost = end.place ? hostSlot || caller.device.isHost() : end.device.isHost();
  switch (side) {
    case Side::local:
      return ours && (deviceSlot || caller.device.isHost() || !onHost);
    case Side::host:
      return ours && onHost;
    case Side::global:
      return end.place.has_value();
    case Side::globalHost:
      return hostSlot;
    case Side::any:
      break;
  }
  return true;
}

}  // namespace

Status checkCopyType(const pool::Endpoint& from, const pool::Endpoint& to, uint32_t type,
                     const Caller& caller) {
  if (type >= kTypes.size()) {
    return error(Code::invalidArgument, "{} is no type of a copy: they are 0 to {}", type,
                 kTypes.size() - 1);
  }
  const TypeRow& row = kTypes[type];
  if (isSide(from, row.from, caller) && isSide(to, row.to, caller)) [[likely]]
    return Status();
  return error(Code::invalidArgument,
               "SMEMB_COPY_{} copies from {} to {}, but the source {}, and the destination {}",
               row.name, nameOf(row.from), nameOf(row.to), from.toString(), to.toString());
}

}  // namespace hmc::capi
