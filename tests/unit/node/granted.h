#pragma once

#include <chrono>
#include <string>

#include "base/codec.h"
#include "base/random.h"
#include "node/node_impl.h"
#include "unit/node/node_pair.h"

// What a peer does that asks for memory by grants without our own checks.
namespace hmc {

inline std::string openGrantRequest(const Grant& by, uint64_t opening,
                                    const std::string& transport) {
  return Writer().string(by.bytes()).u64(opening).u32(1).string(transport).take();
}

inline Result<RegionDescription> askFor(control::Channel& owner, const Grant& by,
                                        const std::string& transport,
                                        uint64_t opening = randomU64()) {
  auto reply = owner.call(kOpenGrant, openGrantRequest(by, opening, transport), kDefaultTimeout);
  if (!reply.ok()) return reply.status();
  return RegionDescription::decode(*reply);
}

// What `open(lifetime)` opens by a grant that ends soon, but not before it was opened.
template <class Open>
auto openBriefly(Open open) {
  Timeout lifetime = std::chrono::milliseconds(200);
  for (; lifetime < std::chrono::seconds(60); lifetime = 2 * lifetime) {
    auto opened = open(lifetime);
    if (opened.ok()) return *std::move(opened);
  }
  return must(open(lifetime));
}

// That transport's key for what the grant opens.
inline std::string keyOf(PeerState& owner, const Grant& by, const std::string& transport) {
  const auto described = must(askFor(owner.channel(), by, transport));
  EXPECT_EQ(described.offers.size(), 1u);
  EXPECT_TRUE(described.offers.front().why.ok()) << described.offers.front().why.toString();
  return described.offers.front().key;
}

// Checks nothing but what the link does.
inline Status putTo(NodeImpl& node, Link& link, const RemoteMemory& remote,
                    const LocalMemory& source, uint64_t offset, size_t size) {
  const Route route{.link = &link,
                    .registration = source.through(0).registration.get(),
                    .local = source.region(),
                    .remote = &remote,
                    .lease = std::chrono::seconds(10)};
  return node.engines().front()->run(OpKind::put, route, 0, offset, size, kDefaultTimeout);
}

}  // namespace hmc
