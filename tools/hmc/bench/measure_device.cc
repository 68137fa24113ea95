#include "bench/measure.h"
#include "demo/demo.h"

namespace hmc::bench {

BareWay wayOf(const Path& path, bool put) {
  const Device from = put ? path.local.device() : path.remote.device();
  const Device to = put ? path.remote.device() : path.local.device();
  if (from.isHost()) return BareWay::hostToDevice;
  return to.isHost() ? BareWay::deviceToHost : BareWay::deviceToDevice;
}

Result<Compared> compareOnDevice(Session& session, const Path& path, const std::string& transport,
                                 const JobOn& jobOn, const BareJob& bare, Clock::duration time) {
  const Job ours = jobOn(path);
  if (transport != "ipc") {
    TOOL_ASSIGN(const Path* host, session.hostPath(transport));
    TOOL_ASSIGN(Compared compared, compare(ours, jobOn(*host), time));
    compared.against = transport + ", host memory";
    return compared;
  }
  auto cuda = session.bareCuda();
  if (!cuda.ok()) return alone(ours, time);
  TOOL_ASSIGN(Compared compared, compare(
                                     ours, [&] { return bare(**cuda); }, time));
  compared.against = kBareCopy;
  return compared;
}

Status verifyOnDevice(Path& path) {
  const size_t bytes = path.local.size();
  TOOL_ASSIGN(LocalRegion host, path.node.allocate("", bytes));
  auto fillPeer = [&](uint64_t seed) {
    tool::fillPattern(host.data(), bytes, seed);
    return path.remote.put(host, 0, 0, bytes);
  };
  TOOL_TRY(fillPeer(7));
  const uint64_t sent = tool::checksum(host.data(), bytes);
  TOOL_TRY(path.remote.get(path.local, 0, 0, bytes));
  TOOL_TRY(fillPeer(8));
  TOOL_TRY(path.remote.put(path.local, 0, 0, bytes));
  TOOL_TRY(path.remote.get(host, 0, 0, bytes));
  if (tool::checksum(host.data(), bytes) != sent)
    return Status(Code::failed, "what was got and put back differs from what was there before");
  return Status();
}

}  // namespace hmc::bench
