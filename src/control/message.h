#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace hmc::control {

// What users send each other. Each kind has its own queue at the receiver, in the order sent.
// custom1 and custom2 are for whoever stands on the Node, who says what they carry. `note` comes
// last: it goes to the Node's queue and never through a ring.
enum class MessageKind : uint8_t { tag, integer, structure, custom1, custom2, note };
inline constexpr size_t kMessageKinds = 6;

// Some of the kinds; one kind is a set too.
class KindSet {
 public:
  constexpr KindSet(MessageKind kind)  // NOLINT(google-explicit-constructor)
      : bits_(1u << static_cast<unsigned>(kind)) {}
  constexpr KindSet(std::initializer_list<MessageKind> kinds) {
    for (MessageKind kind : kinds) bits_ |= KindSet(kind).bits_;
  }
  static constexpr KindSet all() { return KindSet((1u << kMessageKinds) - 1); }
  constexpr bool has(MessageKind kind) const { return (bits_ & KindSet(kind).bits_) != 0; }

 private:
  constexpr explicit KindSet(unsigned bits) : bits_(bits) {}
  unsigned bits_ = 0;
};

// The most bytes in one message or call. A frame that announces more ends its channel.
inline constexpr size_t kLargestMessage = size_t{16} << 20;

struct Message {
  MessageKind kind = MessageKind::note;
  uint16_t flags = 0;
  std::string payload;
};

}  // namespace hmc::control
