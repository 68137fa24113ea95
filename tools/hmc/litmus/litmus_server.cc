#include <sched.h>

#include <atomic>
#include <cstdio>
#include <memory>

#include <fmt/core.h>

#include "hmc.h"
#include "litmus/litmus.h"
#include "litmus/rounds.h"
#include "peer_options.h"
#include "program.h"
#include "try.h"

namespace hmc::tool {

namespace {

using namespace litmus;

// Serves one client at a time.
class LitmusServer {
 public:
  LitmusServer(Node node, LocalRegion region)
      : node_(std::move(node)), region_(std::move(region)) {}

  Status openCommunicator(const std::string& host);
  Result<std::string> listen(const std::string& address) { return node_.listen(address); }
  void serve();

 private:
  Result<std::string> answer(const Note& request);
  // Each looks at `rounds` rounds.
  Status hearNotes(const Peer& client, uint64_t rounds);
  Status watchFlags(uint64_t rounds);
  Status writeForGets(const Peer& client, uint64_t rounds);
  Status hearTags(uint64_t rounds);
  void look(const char* memory, uint64_t round) { stale_ += isFresh(memory, round) ? 0 : 1; }
  char* memory() const { return static_cast<char*>(region_.data()); }

  Node node_;
  LocalRegion region_;
  std::shared_ptr<ConnBuffer> buffer_;
  std::unique_ptr<Communicator> communicator_;
  uint16_t communicatorPort_ = 0;
  uint64_t stale_ = 0;
};

Status LitmusServer::openCommunicator(const std::string& host) {
  buffer_ = std::make_shared<ConnBuffer>(0, kBytes, MemoryType::CPU);
  communicator_ = std::make_unique<Communicator>(buffer_);
  if (communicator_->initServer(host, &communicatorPort_) == status_t::SUCCESS) return Status();
  return Status(Code::failed, lastError());
}

Status LitmusServer::hearNotes(const Peer& client, uint64_t rounds) {
  for (uint64_t round = 0; round < rounds; ++round) {
    TOOL_ASSIGN(const Note note, node_.nextNote(kPatience));
    if (note.bytes != std::to_string(round))
      return Status(Code::failed,
                    "note " + note.bytes + " came in place of " + std::to_string(round));
    look(memory(), round);
    if (round % kBatch == kBatch - 1) TOOL_TRY(client.notify("checked"));
  }
  return Status();
}

Status LitmusServer::watchFlags(uint64_t rounds) {
  const std::atomic_ref<uint64_t> checked(*reinterpret_cast<uint64_t*>(memory() + kChecked));
  checked.store(0);
  for (uint64_t round = 0; round < rounds; ++round) {
    const std::atomic_ref<uint64_t> flag(
        *reinterpret_cast<uint64_t*>(memory() + flagOffset(round)));
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (flag.load(std::memory_order_acquire) != round + 1) {
      if (std::chrono::steady_clock::now() > end)
        return Status(Code::deadlineExceeded, "a flag did not come in 60 s");
      sched_yield();
    }
    look(memory(), round);
    checked.store(round + 1, std::memory_order_release);
  }
  return Status();
}

Status LitmusServer::writeForGets(const Peer& client, uint64_t rounds) {
  for (uint64_t round = 0; round < rounds; round += kBatch) {
    TOOL_TRY(node_.nextNote(kPatience).status());
    for (uint64_t one = round; one < round + kBatch; ++one) fill(memory(), one);
    TOOL_TRY(client.notify("written"));
  }
  return Status();
}

Status LitmusServer::hearTags(uint64_t rounds) {
  for (uint64_t round = 0; round < rounds; ++round) {
    uint64_t tag = 0;
    if (communicator_->ctrlRecv(kClientRank, &tag, kPatience) != status_t::SUCCESS)
      return Status(Code::failed, lastError());
    if (tag != round)
      return Status(Code::failed, fmt::format("tag {} came in place of {}", tag, round));
    look(static_cast<const char*>(buffer_->ptr), round);
    if (round % kBatch == kBatch - 1 &&
        communicator_->ctrlSend(kClientRank, round) != status_t::SUCCESS)
      return Status(Code::failed, lastError());
  }
  return Status();
}

Result<std::string> LitmusServer::answer(const Note& request) {
  char what[8] = {};
  unsigned long long rounds = 0;
  if (request.bytes == "hello") return std::to_string(communicatorPort_);
  if (std::sscanf(request.bytes.c_str(), "%7s %llu", what, &rounds) != 2)
    return Status(Code::invalidArgument, "\"" + request.bytes + "\" is no request");
  stale_ = 0;
  // What an earlier client has left is not this one's.
  std::memset(memory(), 0, kBytes);
  std::memset(buffer_->ptr, 0, kBytes);
  TOOL_TRY(request.from.notify("ready"));
  const std::string name = what;
  Status status(Code::invalidArgument, "there is no promise \"" + name + "\"");
  if (name == "note") status = hearNotes(request.from, rounds);
  if (name == "flag") status = watchFlags(rounds);
  if (name == "get") status = writeForGets(request.from, rounds);
  if (name == "tag") status = hearTags(rounds);
  TOOL_TRY(status);
  return std::to_string(stale_);
}

void LitmusServer::serve() {
  for (;;) {
    const auto request = node_.nextNote(std::chrono::hours(24 * 365));
    if (!request.ok()) return;
    const auto answered = answer(*request);
    (void)request->from.notify(answered.ok() ? *answered
                                             : "failed: " + answered.status().message());
  }
}

// Those that work here, each by its name: one that changes the process serves only then.
std::vector<std::string> usableTransports(const NodeOptions& options) {
  std::vector<std::string> names;
  auto node = Node::create(options);
  if (!node.ok()) return names;
  for (const PathReport& one : node->transports()) {
    if (one.usable) names.push_back(one.transport);
  }
  return names;
}

Result<std::unique_ptr<LitmusServer>> makeServer(const std::string& address) {
  NodeOptions options = optionsFromEnvironment("hmc litmus");
  options.transports = usableTransports(options);
  std::string list;
  for (const auto& name : options.transports) list += (list.empty() ? "" : ",") + name;
  setenv("HMC_TRANSPORTS", list.c_str(), 1);  // the documented classes take them from here
  TOOL_ASSIGN(Node node, Node::create(options));
  TOOL_ASSIGN(LocalRegion region, node.allocate(kRegion, kBytes));
  auto server = std::make_unique<LitmusServer>(std::move(node), std::move(region));
  TOOL_TRY(server->openCommunicator(hostOf(address)));
  return server;
}

}  // namespace

int serveLitmus(const std::string& address) {
  auto server = makeServer(address);
  if (!tellParent(server.ok() ? (*server)->listen(address) : Result<std::string>(server.status())))
    return 1;
  (*server)->serve();
  return 0;
}

}  // namespace hmc::tool
