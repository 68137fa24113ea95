#pragma once

#include <endian.h>

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "hmc/access.h"
#include "hmc/result.h"

// The messages that carry an operation. All fields are little-endian. The first request is a hello,
// which is answered. A request goes to the target's worker, a put with its bytes. The reply comes
// back over the same connection: to a get with the bytes, a refusal with its error message.
namespace hmc::ucx {

inline constexpr unsigned kRequestMessage = 1;  // UCX's numbers of active messages
inline constexpr unsigned kReplyMessage = 2;
// Most bytes in one operation. The target receives such a message whole before it copies it, and it
// should stay in the cache meanwhile. With its headers it fills five packets of the loopback device
// (65,483 bytes each): a small sixth one would cost a third of the bandwidth.
inline constexpr size_t kLargest = size_t{316} << 10;
inline constexpr size_t kLongestError = 400;

inline constexpr uint64_t kHelloId = ~uint64_t{0};

enum class RequestKind : uint64_t { put = 0x7570, get = 0x7467, hello = 0x6968 };

struct Request {
  RequestKind kind;
  uint64_t id;
  uint64_t region;  // number in Exports
  uint64_t offset;
  uint64_t size;
};

struct Reply {
  uint64_t id;
  uint64_t code;  // 0: done
};

// A Request or Reply as it travels, and back.
template <class Message>
Message swapped(const Message& message) {
  auto fields = std::bit_cast<std::array<uint64_t, sizeof(Message) / sizeof(uint64_t)>>(message);
  for (uint64_t& field : fields) field = htole64(field);
  return std::bit_cast<Message>(fields);
}

template <class Message>
Message fromWire(std::string_view bytes) {
  Message message;
  std::memcpy(&message, bytes.data(), sizeof(message));
  return swapped(message);
}

// What services say to each other. A hello brings up the connection that tells when the peer dies;
// its number is the sender's for that peer, and so is its answer's. An announcement has our number
// of the link, which the answer brings back as its link.
enum class ServiceKind : uint8_t {
  hello = 1,
  helloAnswer = 2,
  goodbye = 3,
  announcement = 4,
  expected = 5,
};

struct ServiceMessage {
  ServiceKind kind;
  uint64_t number;
  uint64_t link;  // the receiver's number of it, or 0

  std::string encode() const;
  static Result<ServiceMessage> decode(std::string_view bytes);
};

// UCX does not check its addresses and keys and crashes on damaged ones, so ours carry a checksum
// over all bytes.

// What one Link tells the other.
struct Address {
  uint64_t link = 0;    // our service's number of this link; unguessable
  std::string target;   // address of the worker that serves the peer's operations
  std::string control;  // address of the worker for control messages
  std::string version;  // of our UCX, for error messages

  std::string encode() const;
  static Result<Address> decode(std::string_view bytes);
};

// What a Registration tells a Link.
struct Key {
  uint64_t region = 0;   // for messages
  uint64_t address = 0;  // for hardware
  uint64_t size = 0;
  Access access = Access::read;
  std::string hardware;   // UCX's own key; empty where hardware must not or cannot reach the memory
  std::string hindrance;  // why it cannot, with the fix

  std::string encode() const;
  static Result<Key> decode(std::string_view bytes);
};

}  // namespace hmc::ucx
