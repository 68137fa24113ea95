#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/proof.h"
#include "hmc/result.h"

namespace hmc::tcp {

// What one Link tells the other. The side that waits to be dialled says at which port, and the
// token that a connection must present; the side that dials has nothing to say but that. It knows
// the host, where its control connection went: the peer may know itself by another address.
struct Address {
  uint16_t port = 0;  // 0: this side dials
  std::string token;
  std::string exchange;  // an FdExchange of this side's process; empty: it has none
  bool checks = false;   // this side wants checksums; both use them where one does

  bool dials() const { return port == 0; }
  std::string encode() const;
  static Result<Address> decode(std::string_view bytes);
};

// What a Registration tells a Link.
struct Key {
  uint64_t region = 0;
  uint64_t size = 0;
  bool writable = false;

  std::string encode() const;
  static Result<Key> decode(std::string_view bytes);
};

inline constexpr size_t kTokenSize = 16;

enum class Role : uint32_t {
  forward = 1,  // the side that dialled asks
  reverse = 2,  // the side that was dialled asks
};

// The first bytes of a stream: which link it belongs to, and proof that the dialling side knows the
// link's credentials. Each stream of a link has a number, so that a proof that was overheard does
// not open another one.
struct Greeting {
  static constexpr size_t kProven = 12 + kTokenSize;
  static constexpr size_t kSize = kProven + kProofSize;

  uint32_t role = 0;
  uint32_t stream = 0;
  std::string token;
  bool checked = false;  // headers and bytes have checksums (wire.h)

  std::string pack(const std::string& credentials) const;
  // What kSize bytes say, whoever sent them; no role when they are no greeting.
  static Greeting unpack(const char* bytes);
  // Whether whoever packed these kSize bytes knew the credentials.
  static bool isProven(const char* bytes, const std::string& credentials);
};

// The last bytes that the target of a stream sends, once it will apply nothing more: who finds them
// at the end of a stream knows that, which a bare end or a reset does not prove. Of the stream that
// was opened with that Greeting, kSize bytes.
inline constexpr size_t kFarewellSize = kProofSize;
std::string farewell(std::string_view greeting, const std::string& credentials);

}  // namespace hmc::tcp
