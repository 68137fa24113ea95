#include <gmock/gmock.h>

#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "node_pair.h"
#include "process/altering_proxy.h"
#include "unit/node/divert_data.h"

// Nodes that want checksums over what tcp moves.
namespace hmc {
namespace {

using test::AlteringProxy;
using test::BitFlip;
using test::divertData;
using testing::HasSubstr;
using Way = AlteringProxy::Way;

uint64_t alteredAt(const Node& node) {
  for (const TransportCounts& counts : node.counters()) {
    if (counts.transport == "tcp") return counts.altered;
  }
  return 0;
}

NodeOptions checking(const std::string& name, std::optional<bool> integrity) {
  NodeOptions options = named(name, {"tcp"});
  options.integrity = integrity;
  return options;
}

// Control connections pass through one proxy, which sends the data connections, whose port the
// acceptor tells there, through another.
class OnTheWay {
 public:
  explicit OnTheWay(uint16_t listener)
      : control_(listener, [this](Way way, uint64_t, std::span<char> bytes) {
          if (way == Way::toDialler)
            divertData(bytes, [this](uint16_t port) { return divert(port); });
        }) {}

  std::string address() const { return fmt::format("tcp://127.0.0.1:{}", control_.port()); }
  BitFlip flip;

 private:
  uint16_t divert(uint16_t port) {
    data_ = std::make_unique<AlteringProxy>(
        port,
        [this](Way way, uint64_t offset, std::span<char> moved) { flip(way, offset, moved); });
    return data_->port();
  }

  std::unique_ptr<AlteringProxy> data_;
  AlteringProxy control_;
};

TEST(NodeIntegrity, aBitThatFlipsOnTheWayFailsTheTransferAndIsCounted) {
  Node a = must(Node::create(checking("a", true)));
  Node b = must(Node::create(checking("b", {})));
  const std::string listener = must(a.listen("tcp://127.0.0.1:0"));
  OnTheWay way(static_cast<uint16_t>(std::stoi(listener.substr(listener.rfind(':') + 1))));
  Peer toA = must(b.connect(way.address()));
  LocalRegion target = must(a.allocate("target", 1000000));
  LocalRegion source = must(b.allocate("source", 1000000));
  fill(source, 3);
  RemoteRegion remote = must(toA.open("target"));
  EXPECT_EQ(remote.path(), "tcp (checked, 2 streams)");
  ASSERT_TRUE(remote.put(source, 0, 0, source.size()).ok());
  EXPECT_TRUE(text(target, 0, target.size()) == text(source, 0, source.size()));
  const std::string before = text(target, 0, target.size());
  std::memset(source.data(), 'x', 2000);

  // In the middle of the second of those that follow, wherever the streams are.
  way.flip.arm(Way::toListener, 2000000, 3);
  Status status;
  for (int i = 0; i < 50 && status.ok(); ++i) status = remote.put(source, 0, 0, source.size());
  ASSERT_TRUE(way.flip.done());
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr("altered on the way"));
  EXPECT_GE(alteredAt(a) + alteredAt(b), 1u);
}

TEST(NodeIntegrity, ucxHasNoChecksumsAndIsNotThere) {
  NodeOptions options = named("a");
  options.integrity = true;
  Node node = must(Node::create(options));
  for (const PathReport& path : node.transports()) {
    if (path.transport == "ucx") {
      EXPECT_FALSE(path.usable);
      EXPECT_THAT(path.reason, HasSubstr("no checksum"));
    }
  }
}

TEST(NodeIntegrity, theEnvironmentIsTheDefault) {
  for (const char* value : {"true", "false"}) {
    setenv("HMC_INTEGRITY", value, 1);
    Node a = must(Node::create(checking("a", {})));
    Node b = must(Node::create(checking("b", false)));
    unsetenv("HMC_INTEGRITY");
    Peer toA = must(b.connect(must(a.listen("tcp://127.0.0.1:0"))));
    LocalRegion target = must(a.allocate("target", 4096));
    EXPECT_EQ(must(toA.open("target")).path(),
              std::string(value) == "true" ? "tcp (checked, 2 streams)" : "tcp (2 streams)");
  }
  setenv("HMC_INTEGRITY", "1", 1);
  EXPECT_EQ(Node::create(named("a")).status().code(), Code::invalidArgument);
  unsetenv("HMC_INTEGRITY");
}

}  // namespace
}  // namespace hmc
