#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "store_load/give_up.h"

namespace hmc::store {

// Asks an etcd on loopback in its first language, gRPC, as cheaply as can be: requests are bytes
// that were put together before, and of the answers only their frames are looked at.
class GrpcConnection {
 public:
  GrpcConnection() = default;
  ~GrpcConnection() {
    if (fd_ >= 0) close(fd_);
  }
  GrpcConnection(const GrpcConnection&) = delete;
  GrpcConnection& operator=(const GrpcConnection&) = delete;

  void dial(int port) {
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0)
      giveUp("etcd does not listen");
    // No settings of ours, and room for all answers.
    say("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(kSettings, 0, 0, "") +
        frame(kWindowUpdate, 0, 0, big32(0x7fffffff - 65535)));
  }
  int fd() const { return fd_; }

  void prepareSet(const std::string& key, const std::string& value) {
    prepare("/etcdserverpb.KV/Put", field(1, key) + field(2, value));
  }
  void prepareGet(const std::string& key) { prepare("/etcdserverpb.KV/Range", field(1, key)); }

  void send() {
    stream_ += 2;
    answered_ = false;
    say(frame(kHeaders, kEndHeaders, stream_, headers_) + frame(kData, kEndStream, stream_, body_));
  }
  // How many answers came.
  size_t receive() {
    char bytes[4096];
    const ssize_t got = recv(fd_, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (got <= 0) giveUp("etcd has closed the connection");
    heard_.append(bytes, static_cast<size_t>(got));
    size_t answers = 0;
    size_t at = 0;
    while (heard_.size() - at >= kFrameHeader) {
      const size_t size = number(at, 3);
      if (heard_.size() - at < kFrameHeader + size) break;
      answers += take(heard_[at + 3], heard_[at + 4], heard_.substr(at + kFrameHeader, size));
      at += kFrameHeader + size;
    }
    heard_.erase(0, at);
    return answers;
  }

 private:
  static constexpr size_t kFrameHeader = 9;
  static constexpr char kData = 0, kHeaders = 1, kReset = 3, kSettings = 4, kPing = 6, kGoAway = 7,
                        kWindowUpdate = 8;
  static constexpr char kEndStream = 1, kAck = 1, kEndHeaders = 4;

  static std::string big32(uint32_t value) {
    const uint32_t big = htonl(value);
    return std::string(reinterpret_cast<const char*>(&big), sizeof(big));
  }
  static std::string frame(char type, char flags, uint32_t stream, const std::string& payload) {
    return big32(static_cast<uint32_t>(payload.size())).substr(1) + type + flags + big32(stream) +
           payload;
  }
  // Of HPACK: without its table or its code.
  static std::string text(std::string_view value) {
    return static_cast<char>(value.size()) + std::string(value);
  }
  // Of protobuf.
  static std::string field(int number, const std::string& bytes) {
    std::string all(1, static_cast<char>(number << 3 | 2));
    size_t size = bytes.size();
    for (; size >= 128; size >>= 7) all += static_cast<char>(size | 128);
    return all + static_cast<char>(size) + bytes;
  }
  void prepare(const std::string& path, const std::string& message) {
    headers_ = std::string("\x83\x86\x04") + text(path) + "\x01" + text("etcd") + "\x0f\x10" +
               text("application/grpc") + std::string(1, '\0') + text("te") + text("trailers");
    body_ = std::string(1, '\0') + big32(static_cast<uint32_t>(message.size())) + message;
  }
  void say(const std::string& bytes) const {
    if (::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(bytes.size())) {
      giveUp("etcd does not read");
    }
  }
  size_t number(size_t at, size_t bytes) const {
    size_t value = 0;
    for (size_t i = 0; i < bytes; ++i) value = value << 8 | static_cast<uint8_t>(heard_[at + i]);
    return value;
  }
  size_t take(char type, char flags, const std::string& payload) {
    if (type == kSettings && (flags & kAck) == 0) say(frame(kSettings, kAck, 0, ""));
    if (type == kPing && (flags & kAck) == 0) say(frame(kPing, kAck, 0, payload));
    if (type == kReset || type == kGoAway) giveUp("etcd has ended the call");
    // A refusal has no data.
    if (type == kData) answered_ = true;
    if (type != kHeaders || (flags & kEndStream) == 0) return 0;
    if (!answered_) giveUp("etcd has refused the call");
    return 1;
  }

  int fd_ = -1;
  uint32_t stream_ = static_cast<uint32_t>(-1);
  bool answered_ = false;
  std::string headers_;
  std::string body_;
  std::string heard_;
};

}  // namespace hmc::store
