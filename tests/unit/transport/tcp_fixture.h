#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "fakes/link_options.h"
#include "transport/tcp/address.h"
#include "transport/tcp/socket.h"
#include "transport/tcp/tcp.h"
#include "transport/tcp/wire.h"

namespace hmc::tcp {

inline constexpr std::chrono::seconds kPatience{30};
inline constexpr size_t kPiece = TcpOptions::kUsualPiece;

// A peer made of a bare socket, which can say anything.
class RawPeer {
 public:
  explicit RawPeer(Fd fd) : fd_(std::move(fd)) {}
  static RawPeer dialTo(const std::string& linkAddress) {
    auto address = Address::decode(linkAddress);
    auto fd = dial("127.0.0.1", address->port);
    EXPECT_TRUE(fd.ok()) << fd.status().toString();
    return RawPeer(*std::move(fd));
  }

  int fd() const { return fd_.get(); }

  // All of the bytes, or false when the other side hung up or took none for too long.
  bool say(const std::string& bytes) {
    for (size_t done = 0; done < bytes.size();) {
      const ssize_t n = send(fd_.get(), bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
      if (n > 0) {
        done += static_cast<size_t>(n);
      } else if (errno != EAGAIN || !wait(POLLOUT)) {
        return false;
      }
    }
    return true;
  }
  // That many bytes; fewer when the other side hung up.
  std::string hear(size_t count) {
    std::string bytes;
    while (bytes.size() < count && wait(POLLIN)) {
      std::vector<char> piece(count - bytes.size());
      const ssize_t n = recv(fd_.get(), piece.data(), piece.size(), 0);
      if (n == 0 || (n < 0 && errno != EAGAIN)) break;
      if (n > 0) bytes.append(piece.data(), static_cast<size_t>(n));
    }
    return bytes;
  }
  // Without a word but a farewell.
  bool isHungUpOn() { return wait(POLLIN) && hear(kFarewellSize + 1).size() <= kFarewellSize; }

 private:
  bool wait(short what) {
    pollfd waiting{fd_.get(), what, 0};
    return poll(&waiting, 1, Deadline(kPatience).leftMs()) == 1;
  }
  Fd fd_;
};

inline std::string requestBytes(RequestKind kind, uint64_t id, uint64_t region, uint64_t offset,
                                uint64_t size) {
  std::string bytes(Request::kSize, '\0');
  Request{static_cast<uint64_t>(kind), id, region, offset, size}.pack(bytes.data());
  return bytes;
}

// A transport with memory, whose link waits to be dialled.
class TcpTarget : public testing::Test {
 protected:
  void SetUp() override { start({}); }

  void start(const TcpOptions& options) {
    link_.reset();
    registration_.reset();
    transport_ = *create(options);
    registration_ =
        *transport_->registerRegion({memory_.data(), memory_.size(), Device{}}, Access::readWrite);
    link_ = *transport_->openLink(options_);
  }
  uint64_t regionId() const { return Key::decode(registration_->key())->region; }
  std::string token() const { return Address::decode(link_->address())->token; }
  // What the peer says first on its next stream.
  std::string greeting(Role role = Role::forward) {
    return Greeting{static_cast<uint32_t>(role), nextStream_++, token()}.pack(options_.credentials);
  }
  // A bare socket that the target takes for its peer.
  RawPeer welcomePeer() {
    RawPeer peer = RawPeer::dialTo(link_->address());
    EXPECT_TRUE(peer.say(greeting()));
    return peer;
  }
  // One byte put and answered: the target serves this peer.
  void expectServed(RawPeer& peer, char byte = 'x') {
    EXPECT_TRUE(peer.say(requestBytes(RequestKind::put, 77, regionId(), 0, 1) + byte));
    const std::string bytes = peer.hear(Reply::kSize);
    ASSERT_EQ(bytes.size(), Reply::kSize) << "the target hung up";
    EXPECT_EQ(Reply::unpack(bytes.data()).kind, static_cast<uint32_t>(ReplyKind::done));
    EXPECT_EQ(Reply::unpack(bytes.data()).id, 77u);
    EXPECT_EQ(memory_[0], byte);
  }
  // The answer to the last request is a refusal with that code.
  void expectRefused(RawPeer& peer, Code code) {
    const std::string bytes = peer.hear(Reply::kSize);
    ASSERT_EQ(bytes.size(), Reply::kSize) << "the target hung up";
    const Reply reply = Reply::unpack(bytes.data());
    EXPECT_EQ(reply.kind, static_cast<uint32_t>(ReplyKind::refused));
    EXPECT_EQ(reply.code, static_cast<uint32_t>(code));
    EXPECT_EQ(peer.hear(reply.size).size(), reply.size);
  }

  const LinkOptions options_ = test::linkOptions(false);
  uint32_t nextStream_ = 0;
  std::string memory_ = std::string(size_t{4} << 20, '.');
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Registration> registration_;
  std::unique_ptr<Link> link_;
};

}  // namespace hmc::tcp
