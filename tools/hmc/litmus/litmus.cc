#include "litmus/litmus.h"

#include <array>
#include <cstdio>
#include <memory>
#include <optional>
#include <vector>

#include <fmt/core.h>

#include "hmc.h"
#include "hmc/version.h"
#include "litmus/rounds.h"
#include "peer_options.h"
#include "program.h"
#include "try.h"

namespace hmc::tool {

namespace {

using namespace litmus;

// The side that puts and signals, over one transport.
class LitmusClient {
 public:
  static Result<std::unique_ptr<LitmusClient>> connect(const std::string& address,
                                                       const std::string& transport);

  // Each answers how many rounds were stale.
  Result<uint64_t> notes(uint64_t rounds);
  Result<uint64_t> flags(uint64_t rounds);
  Result<uint64_t> gets(uint64_t rounds);
  Result<uint64_t> tags(uint64_t rounds);

 private:
  LitmusClient(Node node, LocalRegion local, Peer server, RemoteRegion remote)
      : node_(std::move(node)),
        local_(std::move(local)),
        server_(std::move(server)),
        remote_(std::move(remote)) {}

  Status begin(const char* what, uint64_t rounds);
  Result<uint64_t> end();
  Status hear(const std::string& expected);
  Status put(uint64_t round);
  Status awaitChecked(uint64_t rounds);
  Status openCommunicator();
  Status putAndTag(uint64_t round);
  char* memory() const { return static_cast<char*>(local_.data()); }

  Node node_;
  LocalRegion local_;
  Peer server_;
  RemoteRegion remote_;
  // Puts that nobody has waited for yet, by slot.
  std::array<std::optional<Ticket>, kSlots> tickets_;
  std::string host_;
  std::string transport_;
  uint16_t communicatorPort_ = 0;
  std::shared_ptr<ConnBuffer> buffer_;
  std::unique_ptr<Communicator> communicator_;
};

Result<std::unique_ptr<LitmusClient>> LitmusClient::connect(const std::string& address,
                                                            const std::string& transport) {
  NodeOptions options = optionsFromEnvironment("hmc litmus client");
  options.transports = {transport};
  TOOL_ASSIGN(Node node, Node::create(options));
  TOOL_ASSIGN(LocalRegion local, node.allocate("local", kBytes));
  TOOL_ASSIGN(Peer server, node.connectOnce(address, kPatience));
  TOOL_ASSIGN(RemoteRegion remote, server.open(kRegion, kPatience));
  std::unique_ptr<LitmusClient> client(
      new LitmusClient(std::move(node), std::move(local), std::move(server), std::move(remote)));
  TOOL_TRY(client->server_.notify("hello"));
  TOOL_ASSIGN(const Note port, client->node_.nextNote(kPatience));
  client->communicatorPort_ = static_cast<uint16_t>(std::strtoul(port.bytes.c_str(), nullptr, 10));
  client->host_ = hostOf(address);
  client->transport_ = transport;
  return client;
}

Status LitmusClient::begin(const char* what, uint64_t rounds) {
  tickets_ = {};
  TOOL_TRY(server_.notify(fmt::format("{} {}", what, rounds)));
  return hear("ready");
}

Status LitmusClient::hear(const std::string& expected) {
  TOOL_ASSIGN(const Note note, node_.nextNote(kPatience));
  if (note.bytes == expected) return Status();
  return Status(Code::failed, "the other process said \"" + note.bytes + "\"");
}

Result<uint64_t> LitmusClient::end() {
  for (auto& ticket : tickets_) {
    if (ticket) TOOL_TRY(ticket->wait(kPatience));
  }
  TOOL_ASSIGN(const Note note, node_.nextNote(kPatience));
  unsigned long long stale = 0;
  if (std::sscanf(note.bytes.c_str(), "%llu", &stale) == 1) return uint64_t{stale};
  return Status(Code::failed, "the other process said \"" + note.bytes + "\"");
}

// Every other one is not waited for: a signal follows the puts that were started, too.
Status LitmusClient::put(uint64_t round) {
  auto& ticket = tickets_[round % kSlots];
  if (ticket) TOOL_TRY(ticket->wait(kPatience));
  ticket.reset();
  fill(memory(), round);
  const size_t at = slotOffset(round);
  if (round % 2 == 0) return remote_.put(local_, at, at, sizeOf(round), kPatience);
  TOOL_ASSIGN(ticket, remote_.startPut(local_, {{at, at, sizeOf(round)}}));
  return Status();
}

Result<uint64_t> LitmusClient::notes(uint64_t rounds) {
  TOOL_TRY(begin("note", rounds));
  uint64_t unheard = rounds / kBatch;
  for (uint64_t round = 0; round < rounds; ++round) {
    if (round >= kSlots && round % kBatch == 0) {
      TOOL_TRY(hear("checked"));
      --unheard;
    }
    TOOL_TRY(put(round));
    TOOL_TRY(server_.notify(std::to_string(round), kPatience));
  }
  for (; unheard > 0; --unheard) TOOL_TRY(hear("checked"));
  return end();
}

Status LitmusClient::awaitChecked(uint64_t rounds) {
  const Deadline deadline(kPatience);
  uint64_t checked = 0;
  while (checked < rounds) {
    if (deadline.passed()) return Status(Code::deadlineExceeded, "the other process does not look");
    TOOL_TRY(remote_.get(local_, kChecked, kChecked, sizeof(checked), kPatience));
    std::memcpy(&checked, memory() + kChecked, sizeof(checked));
  }
  return Status();
}

// The flag is a put like any other, so the first one has to be done before.
Result<uint64_t> LitmusClient::flags(uint64_t rounds) {
  TOOL_TRY(begin("flag", rounds));
  for (uint64_t round = 0; round < rounds; ++round) {
    if (round >= kSlots && round % kBatch == 0) TOOL_TRY(awaitChecked(round - kBatch));
    TOOL_TRY(put(round));
    auto& ticket = tickets_[round % kSlots];
    if (ticket) TOOL_TRY(ticket->wait(kPatience));
    const uint64_t flag = round + 1;
    std::memcpy(memory() + flagOffset(round), &flag, sizeof(flag));
    TOOL_TRY(remote_.put(local_, flagOffset(round), flagOffset(round), sizeof(flag), kPatience));
  }
  return end();
}

Result<uint64_t> LitmusClient::gets(uint64_t rounds) {
  TOOL_TRY(begin("get", rounds));
  uint64_t stale = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    if (round % kBatch == 0) {
      TOOL_TRY(server_.notify("write", kPatience));
      TOOL_TRY(hear("written"));
    }
    const size_t at = slotOffset(round);
    TOOL_TRY(remote_.get(local_, at, at, sizeOf(round), kPatience));
    stale += isFresh(memory(), round) ? 0 : 1;
  }
  TOOL_TRY(end().status());
  return stale;
}

Status LitmusClient::openCommunicator() {
  setenv("HMC_TRANSPORTS", transport_.c_str(), 1);  // the documented classes take it from here
  buffer_ = std::make_shared<ConnBuffer>(0, kBytes, MemoryType::CPU);
  communicator_ = std::make_unique<Communicator>(buffer_);
  Communicator::CtrlLink link;
  link.ip = host_;
  link.port = communicatorPort_;
  if (communicator_->connectTo(kServerRank, kClientRank, host_, communicatorPort_, link,
                               ConnType::AUTO, kPatience) == status_t::SUCCESS)
    return Status();
  return Status(Code::failed, lastError());
}

Status LitmusClient::putAndTag(uint64_t round) {
  fill(static_cast<char*>(buffer_->ptr), round);
  const size_t at = slotOffset(round);
  uint64_t id = 0;
  if (communicator_->putNB(host_, communicatorPort_, at, at, sizeOf(round), &id, ConnType::AUTO) !=
          status_t::SUCCESS ||
      (round % 2 == 0 && communicator_->wait(id, kPatience) != status_t::SUCCESS) ||
      communicator_->ctrlSend(kServerRank, round) != status_t::SUCCESS ||
      (round % 2 == 1 && communicator_->wait(id, kPatience) != status_t::SUCCESS))
    return Status(Code::failed, lastError());
  return Status();
}

Result<uint64_t> LitmusClient::tags(uint64_t rounds) {
  TOOL_TRY(openCommunicator());
  TOOL_TRY(begin("tag", rounds));
  for (uint64_t round = 0; round < rounds; ++round) {
    uint64_t tag = 0;
    if (round >= kSlots && round % kBatch == 0 &&
        communicator_->ctrlRecv(kServerRank, &tag, kPatience) != status_t::SUCCESS)
      return Status(Code::failed, lastError());
    TOOL_TRY(putAndTag(round));
  }
  return end();
}

struct Promise {
  const char* what;
  Result<uint64_t> (LitmusClient::*run)(uint64_t rounds);
};
constexpr Promise kPromises[] = {
    {"a put, then a note", &LitmusClient::notes},
    {"a put, then a flag by put", &LitmusClient::flags},
    {"a note, then a get", &LitmusClient::gets},
    {"a put, then a tag", &LitmusClient::tags},
};

// Whether it was kept.
bool tryPromise(const std::string& address, const std::string& transport, const Promise& promise,
                uint64_t rounds) {
  auto client = LitmusClient::connect(address, transport);
  const Result<uint64_t> stale =
      client.ok() ? ((**client).*promise.run)(rounds) : Result<uint64_t>(client.status());
  if (!stale.ok()) {
    fmt::print("{:<10} {:<26} {:>10} {:>7}   FAILED: {}\n", transport, promise.what, rounds, "-",
               stale.status().message());
  } else {
    fmt::print("{:<10} {:<26} {:>10} {:>7}   {}\n", transport, promise.what, rounds, *stale,
               *stale == 0 ? "kept" : "BROKEN");
  }
  std::fflush(stdout);
  return stale.ok() && *stale == 0;
}

struct Tally {
  int kept = 0;
  int broken = 0;
};

Status tryAll(const LitmusOptions& options, Tally& tally) {
  std::optional<OtherProcess> other;
  std::string address = withScheme(options.connect);
  if (options.connect.empty()) {
    TOOL_ASSIGN(OtherProcess started, startOtherProcess({"litmus-server"}));
    address = started.address;
    other.emplace(std::move(started));
  }
  TOOL_ASSIGN(const Node node, Node::create(optionsFromEnvironment("hmc litmus")));
  bool named = options.transport.empty();
  for (const PathReport& transport : node.transports()) {
    if (!options.transport.empty() && options.transport != transport.transport) continue;
    named = true;
    if (!transport.usable) {
      fmt::print("{:<10} {:<26} {:>10} {:>7}   not here: {}\n", transport.transport, "-", "-", "-",
                 transport.reason);
      continue;
    }
    for (const Promise& promise : kPromises) {
      tryPromise(address, transport.transport, promise, options.rounds) ? ++tally.kept
                                                                        : ++tally.broken;
    }
  }
  if (named) return Status();
  return Status(Code::invalidArgument,
                "there is no transport \"" + options.transport + "\": `hmc info` lists them");
}

}  // namespace

int runLitmus(const LitmusOptions& options) {
  fmt::print("HMC {}: two processes, bytes that must be there when their signal is\n\n", kVersion);
  fmt::print("{:<10} {:<26} {:>10} {:>7}   {}\n", "transport", "promise", "rounds", "stale",
             "result");
  Tally tally;
  const Status status = tryAll(options, tally);
  if (!status.ok()) {
    fmt::print(stderr, "hmc litmus: {}\n", status.message());
    return status.code() == Code::invalidArgument ? 2 : 1;
  }
  fmt::print("\n{} kept, {} broken or failed\n", tally.kept, tally.broken);
  return tally.kept > 0 && tally.broken == 0 ? 0 : 1;
}

}  // namespace hmc::tool
