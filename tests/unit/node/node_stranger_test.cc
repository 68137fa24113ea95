#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/codec.h"
#include "base/error.h"
#include "control/control.h"
#include "control/security.h"
#include "node/descriptions.h"
#include "node/node_impl.h"
#include "transport/ipc/ipc.h"
#include "unit/node/node_pair.h"

// A peer that is a stranger says that it is on our host, and gives us our own words as its own. It
// can do so from another host: it never touches anything of ours but the control connection.

namespace hmc {
namespace {

using testing::HasSubstr;

class Stranger : public control::ControlEvents {
 public:
  Stranger() {
    auto fds = must(FdExchange::create());
    Attributes claims;
    claims.transports.push_back({"ipc", must(ipc::create(*fds))->facts().domain});
    control::ControlOptions options;
    options.name = "stranger";
    // It knows the cookie: what it does must not work even then.
    EXPECT_TRUE(control::addDefaults(options, {}).ok());
    control_ = must(control::Control::create(options, *this));
    control_->setAttributes(claims.encode());
    listener = must(control_->listen("tcp://127.0.0.1:0"));
  }

  Status joined(const std::shared_ptr<control::Channel>&) override { return Status(); }
  Status joinedAgain(const std::shared_ptr<control::Channel>&, const std::string&) override {
    return Status();
  }
  void left(const std::shared_ptr<control::Channel>&, const Status&) override {}
  void note(const std::shared_ptr<control::Channel>&, std::string) override {}
  void answer(const std::shared_ptr<control::Channel>& channel, uint16_t method,
              std::string_view request, control::Channel::Answered reply) override {
    if (method == kOpenRegion) {
      channel->ask(kOpenRegion, Writer().string("mine").u32(1).string("ipc").take(),
                   std::move(reply));
    } else if (method == kOpenLink) {
      openLink(*channel, request, std::move(reply));
    } else if (method == kRevokeRegion) {
      reply(std::string(kReleased));
    } else {
      reply(error(Code::unsupported, "the stranger does not know request {}", method));
    }
  }

  // Does it ask the victim for a second link, so that the victim's two links know each other?
  bool reflects = false;
  std::string listener;

 private:
  void openLink(control::Channel& channel, std::string_view request,
                control::Channel::Answered reply) const {
    Reader in(request);
    (void)in.string();
    const std::string theirs = in.string();
    if (!reflects) return reply(theirs);
    channel.ask(kOpenLink, Writer().string("ipc").string(theirs).take(), std::move(reply));
  }

  std::unique_ptr<control::Control> control_;
};

// How the victim's own memory would be reached: mapped, or through the kernel.
class NodeStranger : public testing::TestWithParam<std::tuple<bool, bool>> {
 protected:
  static constexpr size_t kSize = 4096;
  LocalRegion mine() {
    if (std::get<0>(GetParam())) return must(victim_.allocate("mine", kSize));
    return must(victim_.registerMemory("mine", heap_.data(), kSize));
  }

  std::vector<char> heap_ = std::vector<char>(kSize);
  Stranger stranger_;
  Node victim_ = must(Node::create(named("victim", {"ipc"})));
};

TEST_P(NodeStranger, cannotMakeAPeerWriteIntoItself) {
  stranger_.reflects = std::get<1>(GetParam());
  const LocalRegion memory = mine();
  fill(memory, 1);
  const std::string before = text(memory, 0, kSize);
  const LocalRegion source = must(victim_.allocate("source", kSize));
  const Peer peer = must(victim_.connect(stranger_.listener));
  const auto bait = peer.open("bait");
  if (bait.ok()) {
    ADD_FAILURE() << "opened over " << bait->path();
    (void)bait->put(source, 0, 0, kSize);
  }
  EXPECT_TRUE(text(memory, 0, kSize) == before);
  const auto report = peer.explain();
  ASSERT_FALSE(report.empty());
  EXPECT_THAT(report[0].reason, HasSubstr("is not the peer"));
}

INSTANTIATE_TEST_SUITE_P(Ways, NodeStranger, testing::Combine(testing::Bool(), testing::Bool()));

}  // namespace
}  // namespace hmc
