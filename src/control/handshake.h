#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "control/security.h"
#include "hmc/result.h"

namespace hmc::control {

// The two sides' handshake as functions of bytes, without sockets:
//
//   dialler  -> HELLO      magic, versions it speaks, a nonce, its lease
//   acceptor -> CHALLENGE  version chosen, a nonce, its id, whether it has a secret, its lease, its
//                          proof
//   dialler  -> IDENT      its proof, id, name, attributes, host
//   acceptor -> WELCOME | YIELD | REFUSED
//
// A proof covers all that was said before it and its own side's words, so that nothing can be
// replayed or altered. Neither side says anything about itself beyond a random id before it has
// seen the other's proof.

inline constexpr uint16_t kOldestVersion = 3;
inline constexpr uint16_t kNewestVersion = 3;
inline constexpr size_t kNonceSize = 16;
inline constexpr size_t kIdSize = 16;
inline constexpr std::chrono::milliseconds kDefaultLease{10000};

struct Ident {
  std::string id;
  bool again = false;  // the dialler has a channel with the acceptor already
  std::string name;
  std::string attributes;
  std::string hostId;
};

struct Welcome {
  std::string name;
  std::string attributes;
  // Where the ring for messages on one host can be fetched; empty when there is none.
  std::string exchange;
  std::string token;
};

std::string encodeWelcome(const Welcome& welcome);
Result<Welcome> decodeWelcome(std::string_view payload);

// A Status that travels, in REFUSED and BYE. Never ok when decoded: an unknown code becomes
// `failed`, and so do bytes that are no Status.
std::string encodeStatus(const Status& status);
Status decodeStatus(std::string_view payload);
Code decodeCode(uint8_t code);

// What both sides have said so far.
class Handshake {
 public:
  // First of all: proofs and credentials are worth something over this stream alone.
  void bind(std::string binding) { binding_ = std::move(binding); }
  // After IDENT: Channel::credentials().
  std::string credentials() const;
  // Both sides have proven that they know one.
  bool hasSecret() const { return !secret_.empty(); }
  // Once the other side has said its own: the shorter of the two. Both sides have the same one, so
  // that whoever applies the other's bytes has stopped when that one's wait is over; and none waits
  // longer than it was told to.
  std::chrono::milliseconds lease() const { return lease_; }

 protected:
  Handshake(Secret secret, std::chrono::milliseconds lease)
      : kind_(secret.kind), secret_(std::move(secret.bytes)), lease_(lease) {}
  static uint32_t encodeLease(std::chrono::milliseconds lease);
  Status takeLease(uint32_t theirs);

  const Secret::Kind kind_;
  const std::string secret_;
  std::chrono::milliseconds lease_;
  std::string binding_;  // ByteStream::binding()
  std::string hello_;
  std::string challenge_;  // what the acceptor's proof covers
  std::string ident_;
};

// Whether a dialler's first bytes are the HELLO of a version before 3, whose frames had no
// checksums, and the bytes that tell it so.
bool beginsOlderHello(std::string_view bytes);
std::string olderRefusal(const Status& why);

class DiallerHandshake : public Handshake {
 public:
  // `who` is the address that was dialled, for sentences.
  DiallerHandshake(Secret secret, std::string who, std::chrono::milliseconds lease = kDefaultLease);

  const std::string& hello() const { return hello_; }
  // Checks the acceptor's proof and answers its id.
  Result<std::string> takeChallenge(std::string_view payload);
  std::string ident(const Ident& ident);

 private:
  const std::string who_;
};

class AcceptorHandshake : public Handshake {
 public:
  AcceptorHandshake(Secret secret, std::string id, std::chrono::milliseconds lease = kDefaultLease)
      : Handshake(std::move(secret), lease), id_(std::move(id)) {}

  // Answers CHALLENGE's payload. Code::unsupported is worth telling the dialler; any other error
  // means that the dialler does not speak this protocol.
  Result<std::string> takeHello(std::string_view payload);
  Result<Ident> takeIdent(std::string_view payload);

 private:
  const std::string id_;
};

}  // namespace hmc::control
