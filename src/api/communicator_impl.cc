#include "api/communicator_impl.h"

#include <algorithm>
#include <optional>

#include "api/documented_types.h"
#include "api/pipeline.h"
#include "base/error.h"

namespace hmc {

namespace {

constexpr size_t kMostChannels = 16;

// "; a put of 4096 bytes takes about 0.43 us (typical), 0.30 us (measured)"
std::string figuresOf(const PathReport& path, size_t size) {
  std::string text;
  const auto add = [&](const std::optional<double>& time, const char* what) {
    if (!time) return;
    text += text.empty() ? fmt::format("; a put of {} bytes takes about ", size) : ", ";
    text += fmt::format("{:.2f} us ({})", *time / 1000, what);
  };
  add(path.predictedNs, "typical");
  add(path.measuredNs, "measured");
  add(path.extrapolatedNs, "extrapolated from smaller or larger ones that were measured");
  return text;
}

}  // namespace

Result<std::unique_ptr<Communicator::Impl>> Communicator::Impl::create(
    std::shared_ptr<ConnBuffer> buffer, size_t channels) {
  if (!buffer) return error(Code::invalidArgument, "a Communicator needs a ConnBuffer");
  if (channels < 1 || channels > kMostChannels) {
    return error(Code::invalidArgument, "num_chs is {}: it must be 1 to {}", channels,
                 kMostChannels);
  }
  HMC_ASSIGN(Settings settings, Settings::fromEnvironment());
  settings.node.channels = static_cast<int>(channels);
  auto sessions = std::make_shared<Sessions>();
  HMC_ASSIGN(auto node, NodeImpl::create(settings.node, makeTransports, sessions));
  HMC_ASSIGN(auto memory, node->registerMemory(kBufferRegion, regionOf(*buffer), Access::readWrite,
                                               /*owned=*/false));
  return std::unique_ptr<Impl>(new Impl(std::move(settings), std::move(sessions), std::move(node),
                                        std::move(buffer), std::move(memory)));
}

Communicator::Impl::Impl(Settings settings, std::shared_ptr<Sessions> sessions,
                         std::shared_ptr<NodeImpl> node, std::shared_ptr<ConnBuffer> buffer,
                         std::shared_ptr<LocalMemory> memory)
    : settings_(std::move(settings)),
      sessions_(std::move(sessions)),
      node_(std::move(node)),
      buffer_(std::move(buffer)),
      memory_(std::move(memory)),
      bulk_(node_, memory_),
      listeners_(node_),
      ranks_(node_, sessions_),
      connections_(node_, sessions_, settings_) {}

Communicator::Impl::~Impl() {
  close();
}

void Communicator::Impl::close() {
  if (fork_.inChild()) return;
  std::vector<std::weak_ptr<PeerState>> servers;
  {
    std::lock_guard lock(mutex_);
    servers.swap(dialledLegacy_);
  }
  for (const auto& server : servers) {
    if (auto peer = server.lock()) Sessions::stayWhileRead(*peer, settings_.transfer);
  }
  node_->close();
}

Status Communicator::Impl::finish(const std::shared_ptr<Connection>& connection, Status status) {
  const bool linkEnded = status.code() == Code::disconnected || status.code() == Code::cancelled ||
                         status.code() == Code::deadlineExceeded;
  if (linkEnded) [[unlikely]]
    connection->ended = true;
  return status;
}

Status Communicator::Impl::run(OpKind kind, const Target& target, const Block& block) {
  auto connection = connections_.findAgain(target);
  if (!connection) {
    HMC_ASSIGN(connection, connections_.find(target));
  }
  return finish(connection,
                connection->buffer->run(kind, *memory_, block.localOffset, block.remoteOffset,
                                        block.size, settings_.transfer));
}

bool Communicator::Impl::runAtOnce(OpKind kind, const Target& target, const Block& block) {
  auto connection = connections_.findAgain(target);
  return connection && connection->buffer->copyAtOnce(kind, *memory_, block.localOffset,
                                                      block.remoteOffset, block.size);
}

Result<std::shared_ptr<Connection>> Communicator::Impl::findLegacy(const std::string& ip,
                                                                   ConnType type) {
  auto found = connections_.find(ip, type);
  const bool yetToCome = found.status().code() == Code::notFound && listeners_.any() &&
                         connections_.peersAt(ip).empty();
  if (!yetToCome) return found;
  HMC_TRY(connections_.waitFor(ip, settings_.transfer));
  return connections_.find(ip, type);
}

Status Communicator::Impl::runLegacy(OpKind kind, const std::string& ip, size_t offset, size_t size,
                                     ConnType type) {
  std::optional<Sessions::Reading> reading;
  if (kind == OpKind::get) reading.emplace(*sessions_, ip);
  HMC_ASSIGN(auto connection, findLegacy(ip, type));
  HMC_TRY(finish(connection, connection->buffer->run(kind, *memory_, offset, offset, size,
                                                     settings_.transfer)));
  const bool client = connection->peer->channel().initiator();
  if (kind == OpKind::put && client && !connection->toldWrote.exchange(true))
    Sessions::tell(*connection->peer, ClientStage::wrote);
  return Status();
}

Status Communicator::Impl::start(OpKind kind, const Target& target, const Block& block,
                                 uint64_t* id) {
  if (!id) return error(Code::invalidArgument, "putNB and getNB: wr_id is null");
  *id = 0;
  HMC_ASSIGN(auto connection, connections_.find(target));
  auto started =
      RemoteMapping::start(connection->buffer, kind, memory_, std::vector<Block>{block}, {});
  HMC_TRY(finish(connection, started.status()));
  if (started->over()) return finish(connection, started->wait(Timeout(0)));
  std::lock_guard lock(mutex_);
  *id = ++lastPending_;
  pending_.emplace(*id, Pending{*std::move(started), std::move(connection)});
  return Status();
}

Status Communicator::Impl::runPipeline(OpKind kind, const Target& target, const Block& block,
                                       size_t chunk, size_t inflight) {
  HMC_ASSIGN(auto connection, connections_.find(target));
  return finish(connection, hmc::runPipeline(kind, memory_, connection->buffer, block,
                                             {chunk, inflight}, settings_.transfer));
}

Status Communicator::Impl::wait(uint64_t id, Deadline deadline) {
  if (id == 0) return Status();
  std::optional<Pending> pending;
  {
    std::lock_guard lock(mutex_);
    auto found = pending_.find(id);
    if (found == pending_.end())
      return error(Code::notFound,
                   "wait: there is no transfer {}; it was waited for before, or never started", id);
    pending = found->second;
  }
  Status status = pending->ticket.wait(deadline.left());
  if (!pending->ticket.over()) return status;
  {
    std::lock_guard lock(mutex_);
    pending_.erase(id);
  }
  return finish(pending->connection, status);
}

Result<Region> Communicator::Impl::userRegion(void* data, size_t size, MemoryType type) const {
  if (!data && size > 0)
    return error(Code::invalidArgument,
                 "sendDataTo and recvDataFrom: the buffer is null and its size is {}", size);
  HMC_ASSIGN(Device device, deviceFor(buffer_->device_id, type));
  return Region{data, size, device};
}

Status Communicator::Impl::sendData(Result<std::shared_ptr<Connection>> connection, void* data,
                                    size_t size, MemoryType type) {
  HMC_TRY(connection.status());
  HMC_ASSIGN(Region region, userRegion(data, size, type));
  return finish(*connection, bulk_.send(**connection, region, settings_.transfer));
}

Status Communicator::Impl::receiveData(Result<std::shared_ptr<Connection>> connection, void* data,
                                       size_t size, MemoryType type, size_t* received) {
  if (received) *received = 0;
  HMC_TRY(connection.status());
  HMC_ASSIGN(Region region, userRegion(data, size, type));
  auto count = bulk_.receive(**connection, region, settings_.transfer);
  HMC_TRY(finish(*connection, count.status()));
  if (received) *received = *count;
  return Status();
}

Status Communicator::Impl::checkType(ConnType type) const {
  return transportsFor(type, *node_, settings_).status();
}

Status Communicator::Impl::connectControl(CtrlId peer, CtrlId self, const CtrlLink& link,
                                          const std::string& fallback, Deadline deadline) {
  std::string address = fallback;
  if (link.transport == CtrlTransport::UDS) {
    if (link.uds_path.empty())
      return error(Code::invalidArgument, "the control link over UDS names no uds_path");
    address = unixAddress(link.uds_path, peer);
  } else if (link.port != 0) {
    address = tcpAddress(link.ip, link.port);
  }
  if (address.empty())
    return error(Code::invalidArgument, "the control link to rank {} names no port", peer);
  {
    std::lock_guard lock(mutex_);
    auto before = dialled_.find(peer);
    if (before != dialled_.end() && before->second == address && ranks_.connected(peer))
      return Status();
  }
  HMC_ASSIGN(auto found, node_->connectPatiently(address, self, deadline));
  ranks_.bind(peer, found);
  std::lock_guard lock(mutex_);
  dialled_[peer] = address;
  return Status();
}

Status Communicator::Impl::connect(CtrlId peer, CtrlId self, const Target& target,
                                   const CtrlLink& link, Deadline deadline) {
  HMC_TRY(checkType(target.type));
  HMC_TRY(connectControl(peer, self, link, tcpAddress(target.ip, target.port), deadline));
  auto found = ranks_.connected(peer);
  if (!found) return error(Code::disconnected, "rank {} went away while connecting", peer);
  HMC_TRY(checkDataPort(found, target, deadline));
  return connections_.open(found, target, deadline).status();
}

// The peer says which ports it listens on; one that it did not name may be a forwarded one, so dial
// it and see who answers.
Status Communicator::Impl::checkDataPort(const std::shared_ptr<PeerState>& peer,
                                         const Target& target, Deadline deadline) {
  for (const auto& listener : peer->attributes().listeners) {
    if (listener.port == target.port) return Status();
  }
  HMC_ASSIGN(auto other, node_->connectPatiently(tcpAddress(target.ip, target.port), {}, deadline));
  if (other == peer) return Status();
  return error(Code::invalidArgument, "data port {} of {} belongs to {}, the control link to {}",
               target.port, target.ip, other->title(), peer->title());
}

Status Communicator::Impl::connectLegacy(const Target& target, Deadline deadline) {
  HMC_TRY(checkType(target.type));
  HMC_ASSIGN(auto peer, node_->connectPatiently(tcpAddress(target.ip, target.port), {}, deadline));
  HMC_TRY(connections_.open(peer, target, deadline).status());
  connections_.remember(target.ip, target.port);
  Sessions::tell(*peer, ClientStage::connected);
  std::lock_guard lock(mutex_);
  dialledLegacy_.push_back(peer);
  return Status();
}

std::string Communicator::Impl::explain(const Target& target) {
  auto connection = connections_.find(target);
  if (!connection.ok()) return connection.status().message();
  std::string text;
  const Region local = memory_->region();
  for (const auto& path : node_->explain(*(*connection)->peer, local.device, local.size)) {
    const char* mark = path.preferred ? "used" : path.usable ? "could be used" : "not usable";
    text += fmt::format("{}: {}{}: {}{}\n", path.transport, mark,
                        path.used.empty() ? "" : " (" + path.used + ")", path.reason,
                        figuresOf(path, local.size));
  }
  return text;
}

}  // namespace hmc
