#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/environment.h"
#include "hmc/communicator.h"
#include "hmc/ctrl_socket_manager.h"
#include "hmc/info.h"
#include "hmc/node.h"
#include "hmc/pool.h"
#include "hmc/store.h"
#include "scoped_variable.h"

// Walks through the public API with transports, devices and settings of the machine switched off
// one by one or misspelt: every call answers, and none lets an exception out.

namespace hmc {
namespace {

constexpr std::chrono::milliseconds kSoon{20};
constexpr auto kHuge = std::numeric_limits<size_t>::max();
const std::vector<std::string> kOddWords = {"", " ", ",", "\xff\n", "tcp", std::string(5000, 'x')};
const std::vector<std::string> kOddAddresses = {"",           " ",
                                                "tcp://",     "tcp://[",
                                                "[",          "]:5",
                                                "tcp://[]:1", "tcp://",
                                                "://",        "unix://",
                                                "tcp://:",    ":",
                                                "tcp://a:b",  "tcp://127.0.0.1",
                                                "[::1",       "ftp://",
                                                "\xff",       "tcp://0.0.0.0:-1",
                                                "unix:///",   "tcp://x:99999999999"};

class Walk {
 public:
  explicit Walk(std::string title) : title_(std::move(title)) {}

  template <class Call>
  auto operator()(const char* what, Call call) const -> std::optional<decltype(call())> {
    try {
      return call();
    } catch (const std::exception& problem) {
      ADD_FAILURE() << what << " with " << title_ << " threw: " << problem.what();
      return std::nullopt;
    }
  }

 private:
  const std::string title_;
};

void useTicket(const Walk& walk, const Result<Ticket>& started) {
  if (!started.ok()) return;
  Ticket ticket = *started;
  walk("Ticket::done", [&] { return ticket.done(); });
  walk("Ticket::transport", [&] { return ticket.transport(); });
  walk("Ticket::path", [&] { return ticket.path(); });
  walk("Ticket::cancel", [&] { return ticket.cancel(); });
  walk("Ticket::wait", [&] { return ticket.wait(kSoon); });
}

void moveBytes(const Walk& walk, const LocalRegion& local, const RemoteRegion& remote) {
  for (const size_t size : {size_t{0}, size_t{8}, local.size(), local.size() + 1, kHuge}) {
    for (const size_t at : {size_t{0}, size_t{1}, kHuge}) {
      walk("put", [&] { return remote.put(local, at, at, size, kSoon); });
      walk("get", [&] { return remote.get(local, at, at, size, kSoon); });
      walk("startPut", [&] {
        auto ticket = remote.startPut(local, std::vector<Block>{{at, 0, size}, {0, at, size}});
        useTicket(walk, ticket);
        return ticket.ok();
      });
      walk("startGet", [&] {
        auto ticket = remote.startGet(local, Strided{at, size, at, size, size, at});
        useTicket(walk, ticket);
        return ticket.ok();
      });
    }
  }
  walk("startPut", [&] { return remote.startPut(local, std::vector<Block>{}).ok(); });
  const StreamOrder unknown{reinterpret_cast<void*>(1), nullptr};
  walk("startPut", [&] { return remote.startPut(local, {{0, 0, 8}}, unknown).ok(); });
  walk("waitsForNobody", [&] { return remote.waitsForNobody(local, unknown.after); });
  walk("RemoteRegion::path", [&] { return remote.path(); });
  walk("RemoteRegion::transport", [&] { return remote.transport(); });
}

void askPeer(const Walk& walk, Node& node, const Peer& peer) {
  walk("explain", [&] { return peer.explain().size(); });
  for (const Device device : {Device{}, Device{DeviceKind::cuda, 0}, Device{DeviceKind::cpu, 7},
                              Device{static_cast<DeviceKind>(99), -1}}) {
    walk("explain", [&] { return peer.explain(device, kHuge).size(); });
  }
  walk("probe", [&] { return peer.probe().ok(); });
  walk("notify", [&] { return peer.notify("", kSoon); });
  walk("call", [&] { return peer.call("nobody answers", "", Timeout(0)).ok(); });
  auto local = node.allocate("", 4096);
  for (const char* name : {"region", "", "no such region", "\xff"}) {
    auto remote = walk("open", [&] { return peer.open(name); });
    if (local.ok() && remote && remote->ok()) moveBytes(walk, *local, **remote);
  }
}

void makeMemory(const Walk& walk, Node& node) {
  static char bytes[64];
  for (const std::string& name : kOddWords) {
    walk("allocate", [&] { return node.allocate(name, 0).ok(); });
    walk("allocate", [&] { return node.allocate(name, kHuge).ok(); });
    walk("registerMemory", [&] { return node.registerMemory(name, nullptr, 8).ok(); });
    walk("registerMemory", [&] { return node.registerMemory(name, bytes, kHuge).ok(); });
    walk("registerMemory", [&] { return node.registerMemory(name, bytes, 0).ok(); });
  }
  for (const Device device : {Device{DeviceKind::cuda, 0}, Device{DeviceKind::acl, -1},
                              Device{DeviceKind::cpu, 7}, Device{static_cast<DeviceKind>(99), 0}}) {
    walk("allocate", [&] { return node.allocate("there", 64, device).ok(); });
    walk("registerMemory", [&] { return node.registerMemory("", bytes, 64, device).ok(); });
  }
}

void grantMemory(const Walk& walk, const LocalRegion& region, const Peer& peer) {
  for (const size_t size : {size_t{0}, size_t{8}, kHuge}) {
    GrantOptions options;
    options.offset = size;
    options.size = size;
    options.lifetime = std::chrono::nanoseconds::max();
    auto grant = walk("grant", [&] { return region.grant(options); });
    if (!grant || !grant->ok()) continue;
    walk("narrow", [&] { return (*grant)->narrow(options).ok(); });
    walk("expires", [&] { return (*grant)->expires().has_value(); });
    walk("open", [&] { return peer.open(**grant).ok(); });
    walk("revoke", [&] { return region.revoke(**grant, kSoon); });
  }
  for (const std::string& bytes : kOddWords)
    walk("Grant::fromBytes", [&] { return Grant::fromBytes(bytes).ok(); });
}

// Both Nodes have the same options. What cannot be made is refused; that is fine, too.
void walkNodes(const Walk& walk, const NodeOptions& options) {
  auto serving = walk("Node::create", [&] { return Node::create(options); });
  auto asking = walk("Node::create", [&] { return Node::create(options); });
  if (!serving || !serving->ok() || !asking || !asking->ok()) return;
  Node& a = **serving;
  Node& b = **asking;
  for (Node* node : {&a, &b}) {
    walk("transports", [&] { return node->transports().size(); });
    walk("counters", [&] { return node->counters().size(); });
    walk("nextNote", [&] { return node->nextNote(Timeout(0)).ok(); });
    walk("nextCall", [&] { return node->nextCall(Timeout(0)).ok(); });
    walk("nextPeerEvent", [&] { return node->nextPeerEvent(Timeout(0)).ok(); });
    walk("noteFd", [&] { return node->noteFd().ok(); });
    makeMemory(walk, *node);
  }
  auto region = walk("allocate", [&] { return a.allocate("region", 4096); });
  auto address = walk("listen", [&] { return a.listen("tcp://127.0.0.1:0"); });
  if (!address || !address->ok()) return;
  auto peer = walk("connect", [&] { return b.connect(**address); });
  if (!peer || !peer->ok()) return;
  askPeer(walk, b, **peer);
  if (region && region->ok()) grantMemory(walk, **region, **peer);
  walk("nextNote", [&] { return a.nextNote(kSoon).ok(); });
  a.close();
  askPeer(walk, b, **peer);
  makeMemory(walk, a);
  if (region && region->ok()) walk("revoke", [&] { return (*region)->revoke(kSoon); });
}

// Some settings name files, which are made: they go with the folder.
class NoExceptions : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_);
    std::filesystem::current_path(folder_);
  }
  void TearDown() override {
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(folder_);
  }

 private:
  const std::filesystem::path before_ = std::filesystem::current_path();
  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("hmc-no-exceptions-" + std::to_string(getpid()));
};

TEST_F(NoExceptions, ofNodesWithAnyTransports) {
  for (const std::vector<std::string>& transports :
       std::vector<std::vector<std::string>>{{"ipc"},
                                             {"tcp"},
                                             {"verbs"},
                                             {"ucx"},
                                             {"ipc", "ipc"},
                                             {"tcp", "verbs"},
                                             {"nonsense"},
                                             {""},
                                             {"tcp,ipc"},
                                             {"tcp", ""}}) {
    NodeOptions options;
    options.transports = transports;
    std::string title = "transports";
    for (const std::string& name : transports) title += " \"" + name + "\"";
    walkNodes(Walk(title), options);
    const tool::ScopedVariable setting("HMC_TRANSPORTS", transports.front());
    walkNodes(Walk("HMC_TRANSPORTS=" + transports.front()), {});
  }
}

TEST_F(NoExceptions, ofNodesWithAnySetting) {
  for (const Variable* variable : kVariables) {
    for (const std::string& value :
         {std::string(), std::string("-1"), std::string(","), std::string("\xff"),
          std::string("99999999999999999999"), std::string("/no/such/file")}) {
      const tool::ScopedVariable setting(variable->name, value);
      const Walk walk(std::string(variable->name) + "=" + value);
      NodeOptions options;
      options.transports = {"tcp"};
      auto node = walk("Node::create", [&] { return Node::create(options); });
      if (node && node->ok())
        walk("listen", [&] { return (*node)->listen("tcp://127.0.0.1:0").ok(); });
      walk("settingsReport", [] { return settingsReport().size(); });
      walk("securityReport", [] { return securityReport().problem; });
    }
  }
}

TEST_F(NoExceptions, ofNodesWithOddOptions) {
  for (const int number : {-1, 0, 17, std::numeric_limits<int>::max()}) {
    NodeOptions options;
    options.transports = {"tcp"};
    options.channels = number;
    options.heartbeat = options.lease = std::chrono::milliseconds(number);
    auto node = Walk("numbers")("Node::create", [&] { return Node::create(options).ok(); });
    EXPECT_TRUE(node.has_value());
  }
  for (const std::string& word : kOddWords) {
    NodeOptions options;
    options.transports = {"tcp"};
    options.name = options.secret = options.advertise = word;
    options.tls.ca = options.tls.certificate = options.tls.key = word;
    walkNodes(Walk("words \"" + word.substr(0, 10) + "\""), options);
  }
}

TEST_F(NoExceptions, ofOddAddresses) {
  NodeOptions options;
  options.transports = {"tcp"};
  auto node = Node::create(options);
  ASSERT_TRUE(node.ok());
  for (const std::string& address : kOddAddresses) {
    const Walk walk("\"" + address + "\"");
    walk("listen", [&] { return node->listen(address).ok(); });
    walk("connect", [&] { return node->connect(address, kSoon).ok(); });
    walk("connectOnce", [&] { return node->connectOnce(address, kSoon).ok(); });
    walk("peer", [&] { return node->peer(address, Timeout(0)).ok(); });
    walk("Pool::join", [&] { return Pool::join(address, {}, kSoon).ok(); });
    walk("StoreServer::start", [&] { return StoreServer::start(address).ok(); });
    GatheringOptions gathering;
    gathering.store = gathering.name = address;
    walk("Gathering::begin", [&] { return Gathering::begin(gathering).ok(); });
  }
}

TEST_F(NoExceptions, ofPools) {
  auto store = StoreServer::start();
  ASSERT_TRUE(store.ok());
  for (const char* transports : {"", "tcp", "nonsense"}) {
    const Walk walk(std::string("a pool over ") + transports);
    PoolOptions options;
    options.capacity = 2;
    options.hostSize = 4096;
    options.name = std::string("pool ") + transports;
    if (*transports) options.node.transports = {transports};
    auto joined = walk("Pool::join", [&] { return Pool::join(store->address(), options); });
    if (!joined || !joined->ok()) continue;
    Pool& pool = **joined;
    char bytes[64] = {};
    for (void* there : {pool.base(), static_cast<void*>(nullptr), static_cast<void*>(bytes)}) {
      for (const size_t size : {size_t{0}, size_t{64}, kHuge}) {
        if (there == bytes && size == kHuge) continue;  // memory of this process is not checked
        walk("copy", [&] { return pool.copy(pool.base(), there, size, kSoon); });
        walk("copy2d", [&] { return pool.copy2d(there, 1, pool.base(), 1, 1, size, kSoon); });
      }
      walk("slotOf", [&] { return pool.slotOf(there).ok(); });
      walk("registerMemory", [&] { return pool.registerMemory(there, kHuge); });
      walk("unregisterMemory", [&] { return pool.unregisterMemory(there); });
    }
    walk("startCopy", [&] { return pool.startCopy({}).ok(); });
    walk("startCopy", [&] { return pool.startCopy({{nullptr, bytes, 8}}).ok(); });
    for (const uint32_t rank : {0U, 1U, 99U, ~0U})
      walk("slot", [&] { return pool.slot(rank, PoolSpace::device).ok(); });
    walk("nextEvent", [&] { return pool.nextEvent(Timeout(0)).ok(); });
    walk("leave", [&] { return pool.leave(); });
    walk("copy", [&] { return pool.copy(bytes, pool.base(), 8, kSoon); });
    walk("slot", [&] { return pool.slot(0).ok(); });
  }
  for (const uint32_t number : {1U, ~0U}) {
    PoolOptions options;
    options.rank = number;
    options.capacity = number;
    options.hostStride = options.hostSize = number == 1 ? kHuge : 1;
    options.numaNode = -1;
    options.hostFile = -1;
    options.device = {static_cast<DeviceKind>(99), 0};
    auto pool = Walk("odd numbers")(
        "Pool::join", [&] { return Pool::join(store->address(), options, kSoon).ok(); });
    EXPECT_TRUE(pool.has_value());
  }
}

TEST_F(NoExceptions, ofTheDocumentedClasses) {
  for (const char* transports : {"", "tcp", "verbs", "nonsense", ","}) {
    const tool::ScopedVariable setting("HMC_TRANSPORTS", transports);
    const tool::ScopedVariable connecting("HMC_CONNECT_TIMEOUT_MS", "5");
    const tool::ScopedVariable moving("HMC_TIMEOUT_MS", "5");
    const tool::ScopedVariable receiving("HMC_RECV_TIMEOUT_MS", "5");
    const Walk walk(std::string("HMC_TRANSPORTS=") + transports);
    auto buffer = std::make_shared<ConnBuffer>(0, 4096, MemoryType::CPU);
    walk("ConnBuffer", [&] { return buffer->writeFromCpu(nullptr, kHuge, kHuge); });
    walk("ConnBuffer", [&] { return buffer->copyWithin(kHuge, 1, kHuge); });
    for (const auto& made : {buffer, std::shared_ptr<ConnBuffer>()}) {
      Communicator communicator(made, made ? 1 : 99);
      for (const ConnType type : {ConnType::RDMA, ConnType::UCX, static_cast<ConnType>(99)}) {
        for (const char* ip : {"", "127.0.0.1", "999.1.1.1", "[", "\xff"}) {
          uint64_t id = 0;
          size_t flag = 0;
          walk("initServer", [&] { return communicator.initServer(ip, 0, 0, "", type); });
          walk("initServer", [&] { return communicator.initServer(ip, 0, type); });
          walk("connectTo", [&] { return communicator.connectTo(1, 2, ip, 1, {}, type, kSoon); });
          walk("connectTo", [&] { return communicator.connectTo(ip, 1, type, kSoon); });
          walk("put", [&] { return communicator.put(ip, 1, kHuge, kHuge, kHuge, type); });
          walk("putNB", [&] { return communicator.putNB(ip, 1, 0, 0, 8, &id, type); });
          walk("getPipeline", [&] { return communicator.getPipeline(ip, 1, 0, 0, 8, 0, 0, type); });
          walk("sendDataTo", [&] {
            return communicator.sendDataTo(ip, 1, nullptr, 8, MemoryType::DEFAULT, type);
          });
          walk("recvDataFrom", [&] {
            return communicator.recvDataFrom(ip, 1, nullptr, 8, MemoryType::CPU, &flag, type);
          });
          walk("checkConn", [&] { return communicator.checkConn(ip, 1, type); });
          walk("disConnect", [&] { return communicator.disConnect(ip, 1, type); });
          walk("path", [&] { return communicator.path(ip, 1, type); });
        }
      }
      walk("explain", [&] { return communicator.explain("127.0.0.1", 1); });
      walk("wait", [&] { return communicator.wait(99, kSoon); });
      walk("ctrlSend", [&] { return communicator.ctrlSend(99, 1); });
      walk("closeCtrl", [&] { return communicator.closeCtrl(); });
      walk("closeServer", [&] { return communicator.closeServer(); });
    }
    CtrlSocketManager sockets;
    int number = 0;
    walk("start", [&] { return static_cast<bool>(sockets.start("\xff", 0)); });
    walk("connectTcp", [&] { return static_cast<bool>(sockets.connectTcp(1, "[", 1, 2)); });
    walk("recvInt", [&] { return static_cast<bool>(sockets.recvInt(1, number)); });
  }
}

}  // namespace
}  // namespace hmc
