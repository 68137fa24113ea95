#include "bench/server.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <thread>

#include <fmt/core.h>

#include "bench/bare_ucp.h"
#include "bench/raw_socket.h"
#include "bench/shared_memory.h"
#include "bench/stream_receiver.h"
#include "bench/timing.h"
#include "demo/demo.h"
#include "hmc.h"
#include "hmc/node.h"
#include "peer_options.h"
#include "program.h"
#include "try.h"

namespace hmc::bench {

namespace {

constexpr size_t kCommunicatorBytes = size_t{1} << 20;

// Where it listens on every interface, by the host's name, for somebody on another host.
std::string addressForOthers(const std::string& address) {
  const std::string host = tool::hostOf(address);
  if (host != "0.0.0.0" && host != "::") return address;
  char name[256] = "";
  if (gethostname(name, sizeof(name) - 1) != 0) return address;
  return fmt::format("tcp://{}{}", name, address.substr(address.rfind(':')));
}

struct Memory {
  explicit Memory(size_t size)
      : bytes(size),
        data(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
                  -1, 0)) {}
  ~Memory() { munmap(data, bytes); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  const size_t bytes;
  void* const data;
};

class Server {
 public:
  static Result<std::unique_ptr<Server>> create(const ServerOptions& options);
  ~Server() {
    raw_.stop();
    rawThread_.join();
  }

  const std::string& address() const { return address_; }
  // Answers requests until the Node fails, which it seldom does: somebody ends this process.
  void run();

 private:
  Server(Node node, LocalRegion region, RawSocketServer raw, size_t bytes)
      : node_(std::move(node)), region_(std::move(region)), raw_(std::move(raw)), user_(bytes) {}
  Result<std::string> answer(const std::string& request);
  Result<std::string> hello() const;
  Result<std::string> sendTagsBack(uint32_t rank, uint64_t rounds);
  Result<std::string> connectPeers(size_t count, const std::string& address);
  Result<std::string> usePeer(size_t count, const std::string& address);
  Result<std::string> makeRegions(size_t count, size_t bytes);
  Result<std::string> makeRegion(std::istringstream& words);
  Result<std::string> serveBareUcp();
  Result<std::string> openStream(std::istringstream& words);
  Result<std::string> receiveStream();
  Status openCommunicator(const std::string& host);

  Node node_;
  LocalRegion region_;
  RawSocketServer raw_;
  Memory user_;
  std::vector<LocalRegion> more_;
  std::string address_;
  std::unique_ptr<SharedMemory> shared_;
  std::unique_ptr<Communicator> communicator_;
  uint16_t communicatorPort_ = 0;
  std::vector<Node> peers_;
  std::unique_ptr<BareUcpTarget> bareUcp_;
  std::string host_;
  std::unique_ptr<StreamReceiver> stream_;
  std::thread rawThread_;
};

Result<std::unique_ptr<Server>> Server::create(const ServerOptions& options) {
  const std::string host = tool::hostOf(options.address);
  TOOL_ASSIGN(Node node, Node::create(tool::optionsFromEnvironment("bench server")));
  TOOL_ASSIGN(LocalRegion region, node.allocate(kRegion, options.bytes));
  TOOL_ASSIGN(RawSocketServer raw, RawSocketServer::listen(host));
  std::unique_ptr<Server> server(
      new Server(std::move(node), std::move(region), std::move(raw), options.bytes));
  server->host_ = host;
  server->rawThread_ = std::thread([raw = &server->raw_] {
    while (raw->serve()) {
    }
  });
  TOOL_ASSIGN(LocalRegion user,
              server->node_.registerMemory(kUserRegion, server->user_.data, options.bytes));
  server->more_.push_back(std::move(user));
  if (!options.shared.empty()) {
    TOOL_ASSIGN(SharedMemory shared, SharedMemory::open(options.shared, options.bytes));
    server->shared_ = std::make_unique<SharedMemory>(std::move(shared));
  }
  TOOL_TRY(server->openCommunicator(host));
  TOOL_ASSIGN(server->address_, server->node_.listen(options.address));
  return server;
}

Status Server::openCommunicator(const std::string& host) {
  communicator_ = std::make_unique<Communicator>(
      std::make_shared<ConnBuffer>(0, kCommunicatorBytes, MemoryType::CPU));
  TOOL_ASSIGN(communicatorPort_, listenSomewhere(*communicator_, host));
  return Status();
}

Result<std::string> Server::hello() const {
  Hello hello;
  hello.rawPort = raw_.port();
  hello.communicatorPort = communicatorPort_;
  hello.pid = getpid();
  hello.userAddress = reinterpret_cast<uintptr_t>(user_.data);
  hello.bytes = region_.size();
  return hello.encode();
}

Result<std::string> Server::sendTagsBack(uint32_t rank, uint64_t rounds) {
  for (uint64_t i = 0; i < rounds; ++i) {
    uint64_t tag = 0;
    if (communicator_->ctrlRecv(rank, &tag) != status_t::SUCCESS ||
        communicator_->ctrlSend(rank, tag) != status_t::SUCCESS) {
      return Status(Code::failed, lastError());
    }
  }
  return std::string();
}

Result<std::string> Server::connectPeers(size_t count, const std::string& address) {
  peers_.clear();
  for (size_t i = 0; i < count; ++i) {
    TOOL_ASSIGN(Node node, Node::create(tool::optionsFromEnvironment(fmt::format("peer {}", i))));
    TOOL_TRY(node.allocate("idle", 4096).status());
    TOOL_TRY(node.connect(address).status());
    peers_.push_back(std::move(node));
  }
  return std::string();
}

// Each of them opens a region of that Node over tcp and writes to it. Answers how long the median
// of them took to get there, in nanoseconds.
Result<std::string> Server::usePeer(size_t count, const std::string& address) {
  peers_.clear();
  Samples times;
  for (size_t i = 0; i < count; ++i) {
    NodeOptions options = tool::optionsFromEnvironment(fmt::format("peer {}", i));
    options.transports = {"tcp"};
    TOOL_ASSIGN(Node node, Node::create(options));
    TOOL_ASSIGN(LocalRegion own, node.allocate("own", 4096));
    const auto start = Clock::now();
    TOOL_ASSIGN(Peer peer, node.connect(address));
    TOOL_ASSIGN(RemoteRegion remote, peer.open(kRegion));
    times.push_back(nanosecondsSince(start));
    TOOL_TRY(remote.put(own, 0, 0, 8));
    peers_.push_back(std::move(node));
  }
  return fmt::format("{}", times.empty() ? 0.0 : median(times));
}

Result<std::string> Server::makeRegions(size_t count, size_t bytes) {
  for (size_t i = 0; i < count; ++i) {
    TOOL_ASSIGN(LocalRegion region, node_.allocate(fmt::format("region {}", i), bytes));
    more_.push_back(std::move(region));
  }
  return std::string();
}

Result<std::string> Server::makeRegion(std::istringstream& words) {
  std::string name;
  std::string where;
  size_t bytes = 0;
  words >> name >> bytes >> where;
  for (const LocalRegion& region : more_) {
    if (region.name() == name) return std::string();
  }
  Device device;
  TOOL_TRY(parseDevice(where, device));
  TOOL_ASSIGN(LocalRegion region, node_.allocate(name, bytes, device));
  more_.push_back(std::move(region));
  return std::string();
}

Result<std::string> Server::serveBareUcp() {
  if (!bareUcp_) {
    TOOL_ASSIGN(bareUcp_, BareUcpTarget::start(region_.data(), region_.size()));
  }
  return bareUcp_->address();
}

Result<std::string> Server::openStream(std::istringstream& words) {
  size_t bytes = 0;
  std::string where;
  words >> bytes >> where;
  Device device;
  TOOL_TRY(parseDevice(where, device));
  TOOL_ASSIGN(stream_, StreamReceiver::open(host_, bytes, device));
  return std::to_string(stream_->port());
}

Result<std::string> Server::receiveStream() {
  if (!stream_) return Status(Code::invalidArgument, "\"receive\" comes after \"stream\"");
  TOOL_TRY(stream_->run());
  stream_.reset();
  return std::string();
}

Result<std::string> Server::answer(const std::string& request) {
  std::istringstream words(request);
  std::string word;
  uint64_t number = 0;
  words >> word;
  if (word == "hello") return hello();
  if (word == "ucp") return serveBareUcp();
  if (word == "region") return makeRegion(words);
  if (word == "stream") return openStream(words);
  if (word == "receive") return receiveStream();
  if (word == "sum") return std::to_string(tool::checksum(region_.data(), region_.size()));
  words >> number;
  if (word == "fill") {
    tool::fillPattern(region_.data(), region_.size(), number);
    return std::to_string(tool::checksum(region_.data(), region_.size()));
  }
  std::string rest;
  words >> rest;
  if (word == "peers") return connectPeers(number, rest);
  if (word == "use") return usePeer(number, rest);
  const uint64_t count = std::strtoull(rest.c_str(), nullptr, 10);
  if (word == "regions") return makeRegions(number, count);
  if (word == "flags" && (!shared_ || !shared_->pong(count)))
    return Status(Code::deadlineExceeded, "the other side did not ping in time");
  if (word == "flags" || word == "tags") return sendTagsBack(static_cast<uint32_t>(number), count);
  return Status(Code::unsupported, "a bench server does not know \"" + request + "\"");
}

void Server::run() {
  for (;;) {
    auto note = node_.nextNote(std::chrono::hours(1));
    if (note.status().code() == Code::deadlineExceeded) continue;
    if (!note.ok()) return;
    // The other side takes part in these, and begins when it gets this.
    const std::string& request = note->bytes;
    const bool together =
        request.rfind("flags", 0) == 0 || request.rfind("tags", 0) == 0 || request == "receive";
    if (together) note->from.notify("ready");
    auto answer = this->answer(note->bytes);
    note->from.notify(answer.ok() ? "ok " + *answer : "error " + answer.status().message());
  }
}

}  // namespace

std::string Hello::encode() const {
  return fmt::format("{} {} {} {} {}", rawPort, communicatorPort, pid, userAddress, bytes);
}

Result<Hello> Hello::decode(const std::string& text) {
  Hello hello;
  std::istringstream in(text);
  in >> hello.rawPort >> hello.communicatorPort >> hello.pid >> hello.userAddress >> hello.bytes;
  if (!in) return Status(Code::failed, "the bench server said \"" + text + "\"");
  return hello;
}

int serveBench(const ServerOptions& options, bool forAPerson) {
  auto server = Server::create(options);
  if (!server.ok()) {
    if (!forAPerson) tool::tellParent(server.status());
    fmt::print(stderr, "hmc: {}\n", server.status().message());
    return 1;
  }
  if (forAPerson) {
    fmt::print(
        "Listening. On the other host run\n\n  hmc bench --connect {}\n\nCtrl-C ends this.\n",
        addressForOthers((*server)->address()));
    std::fflush(stdout);
  } else {
    tool::tellParent((*server)->address());
  }
  (*server)->run();
  return 0;
}

}  // namespace hmc::bench
