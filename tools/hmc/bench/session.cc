#include "bench/session.h"

#include <cstdlib>
#include <optional>

#include <fmt/core.h>

#include "peer_options.h"
#include "try.h"

namespace hmc::bench {

namespace {

constexpr std::chrono::seconds kServerTimeout{60};

}  // namespace

Result<std::unique_ptr<Session>> Session::open(const SessionOptions& options) {
  std::unique_ptr<Session> session(new Session(options));
  session->address_ = options.connect;
  TOOL_ASSIGN(SharedMemory shared, SharedMemory::create(options.bytes));
  session->shared_ = std::make_unique<SharedMemory>(std::move(shared));
  if (options.connect.empty()) {
    TOOL_ASSIGN(session->server_,
                tool::startOtherProcess({"bench-server", "--bytes", std::to_string(options.bytes),
                                         "--shared", session->shared_->path()}));
    session->address_ = session->server_.address;
  }
  session->host_ = tool::hostOf(session->address_);

  TOOL_ASSIGN(Node node, Node::create(tool::optionsFromEnvironment("bench")));
  session->node_ = std::make_unique<Node>(std::move(node));
  TOOL_ASSIGN(Peer peer, session->node_->connectOnce(session->address_, kServerTimeout));
  session->peer_ = std::make_unique<Peer>(std::move(peer));
  TOOL_ASSIGN(const PeerFacts facts, session->peer_->probe(kServerTimeout));
  session->away_ = facts.away;
  TOOL_ASSIGN(std::string hello, session->request("hello"));
  TOOL_ASSIGN(session->hello_, Hello::decode(hello));
  TOOL_ASSIGN(RawSocket socket, RawSocket::connect(session->host_, session->hello_.rawPort));
  session->socket_ = std::make_unique<RawSocket>(std::move(socket));
  if (session->onDevice()) TOOL_TRY(session->prepareDevices());
  return session;
}

Status Session::prepareDevices() {
  const auto& [connect, bytes, ours, theirs] = options_;
  // A device that is missing fails now, not in the middle of the measurements.
  TOOL_TRY(node_->allocate("", 1, ours).status());
  if (!theirs.isHost()) {
    region_ = "bench." + theirs.toString();
    TOOL_TRY(makeRegion(region_, hello_.bytes, theirs));
  }
  const Device device = ours.isHost() ? theirs : ours;
  if (device.kind != DeviceKind::cuda) {
    noBareCuda_ = Status(Code::unsupported, "it is known for cuda alone, not for " +
                                                std::string(deviceKindName(device.kind)));
  } else if (!ours.isHost() && !theirs.isHost() && ours != theirs) {
    noBareCuda_ = Status(Code::unsupported, "it is known for one device, not between two");
  } else if (auto opened = BareCuda::open(device.index, hello_.bytes); opened.ok()) {
    bareCuda_ = *std::move(opened);
  } else {
    noBareCuda_ = opened.status();
  }
  return Status();
}

Result<BareCuda*> Session::bareCuda() const {
  if (bareCuda_) return bareCuda_.get();
  return noBareCuda_;
}

Result<Path*> Session::hostPath(const std::string& transport) {
  auto& made = hostPaths_[transport];
  if (!made) {
    TOOL_ASSIGN(made, path(transport, kRegion, Device{}));
  }
  return made.get();
}

Status Session::makeRegion(const std::string& name, size_t bytes, Device device) {
  return request(fmt::format("region {} {} {}", name, bytes, device.toString())).status();
}

Result<std::string> Session::answer() {
  TOOL_ASSIGN(Note note, node_->nextNote(kServerTimeout));
  if (note.bytes.rfind("error ", 0) == 0)
    return Status(Code::failed, "the bench server: " + note.bytes.substr(6));
  return note.bytes.rfind("ok ", 0) == 0 ? note.bytes.substr(3) : note.bytes;
}

Result<std::string> Session::request(const std::string& what) {
  TOOL_TRY(peer_->notify(what, kServerTimeout));
  return answer();
}

Result<std::unique_ptr<Path>> Session::path(const std::vector<std::string>& transports,
                                            const std::string& region,
                                            std::optional<Device> memory) const {
  std::string name = "bench";
  for (const auto& transport : transports) name += " " + transport;
  NodeOptions nodeOptions = tool::optionsFromEnvironment(name);
  nodeOptions.transports = transports;
  TOOL_ASSIGN(Node node, Node::create(nodeOptions));
  TOOL_ASSIGN(LocalRegion local,
              node.allocate("source", hello_.bytes, memory.value_or(options_.memory)));
  TOOL_ASSIGN(Peer peer, node.connect(address_, kServerTimeout));
  TOOL_ASSIGN(RemoteRegion remote, peer.open(region.empty() ? region_ : region, kServerTimeout));
  return std::make_unique<Path>(
      Path{std::move(node), std::move(peer), std::move(local), std::move(remote)});
}

Result<std::unique_ptr<Communicator>> Session::communicator(uint32_t rank,
                                                            const std::string& transports) const {
  return communicator(rank, transports, hello_.communicatorPort,
                      std::make_shared<ConnBuffer>(0, size_t{1} << 20, MemoryType::CPU));
}

Result<std::unique_ptr<Communicator>> Session::communicator(
    uint32_t rank, const std::string& transports, uint16_t port,
    std::shared_ptr<ConnBuffer> buffer) const {
  // The documented classes take these from the environment only.
  const char* before = std::getenv("HMC_TRANSPORTS");
  const std::optional<std::string> wanted =
      before ? std::optional<std::string>(before) : std::nullopt;
  setenv("HMC_TRANSPORTS", transports.c_str(), 1);
  setenv("HMC_RECV_TIMEOUT_MS", "30000", 0);
  auto made = std::make_unique<Communicator>(std::move(buffer));
  wanted ? setenv("HMC_TRANSPORTS", wanted->c_str(), 1) : unsetenv("HMC_TRANSPORTS");
  Communicator::CtrlLink link;
  link.ip = host_;
  link.port = port;
  if (made->connectTo(kServerRank, rank, host_, port, link, ConnType::AUTO) != status_t::SUCCESS) {
    return Status(Code::failed, lastError());
  }
  return made;
}

}  // namespace hmc::bench
