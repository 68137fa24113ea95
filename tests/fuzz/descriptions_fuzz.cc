#include <string>

#include "agent/record.h"
#include "fuzz/input.h"
#include "node/atomic_change.h"
#include "node/descriptions.h"
#include "node/grant_token.h"
#include "node/measurements.h"
#include "node/staging.h"
#include "pool/address_space.h"
#include "pool/record.h"
#include "transport/ipc/key.h"
#include "transport/tcp/address.h"
#ifdef HMC_FUZZ_ETCD
#include "store/etcd/messages.h"
#endif
#ifdef HMC_FUZZ_UCX
#include "transport/ucx/wire.h"
#endif
#ifdef HMC_FUZZ_VERBS
#include "transport/verbs/address.h"
#include "transport/verbs/memory.h"
#endif

// The descriptions, addresses, keys and small messages that peers and stores send. The first byte
// says which one the rest is taken for. Where they are understood, what was understood is written
// back, and that must be understood again and give the same bytes.

namespace {

using hmc::test::check;

template <class Described>
void decoded(std::string_view bytes) {
  const auto first = Described::decode(bytes);
  if (!first.ok()) return;
  const std::string written = first->encode();
  const auto second = Described::decode(written);
  check(second.ok() && second->encode() == written);
}

template <class Described>
void ipcDecoded(std::string_view bytes, hmc::Result<Described> (*decode)(std::string_view)) {
  const auto first = decode(bytes);
  if (!first.ok()) return;
  const std::string written = encode(*first);
  const auto second = decode(written);
  check(second.ok() && encode(*second) == written);
}

void agentMemory(std::string_view bytes) {
  const auto memory = hmc::agent::decodeMemory(bytes);
  if (memory.ok()) check(hmc::agent::decodeMemory(hmc::agent::encode(*memory)).ok());
}

void measurements(std::string_view bytes) {
  const auto read = hmc::Measurements::parse(std::string(bytes));
  if (read.ok()) check(hmc::Measurements::parse(read->text()).ok());
}

// Bytes that pass are the owner's or narrower. Its own narrowing always passes.
void grants(std::string_view bytes) {
  static const std::string key(32, 'k');
  decoded<hmc::GrantToken>(bytes);
  const auto token = hmc::GrantToken::decode(bytes);
  if (!token.ok()) return;
  (void)token->checkUse("a peer", hmc::wallClock());
  const bool genuine = token->verify(key).ok();
  const auto whole = token->narrow({});
  if (whole.ok()) check(whole->verify(key).ok() == genuine);
  const auto& all = token->limits.front();
  const auto& allowed = token->allowed();
  if (!genuine) return;
  check(allowed.offset >= all.offset && allowed.access <= all.access && allowed.size > 0 &&
        hmc::fits(allowed.offset - all.offset, allowed.size, all.size));
}

void etcd([[maybe_unused]] std::string_view bytes) {
#ifdef HMC_FUZZ_ETCD
  using namespace hmc::store::etcd;
  (void)readRange(bytes);
  (void)readTxn(bytes);
  (void)readKeepAlive(bytes);
  (void)readWatch(bytes);
  (void)readToken(bytes);
  check(!readRefusal(500, bytes).status().ok());
#endif
}

void ucx([[maybe_unused]] std::string_view bytes) {
#ifdef HMC_FUZZ_UCX
  decoded<hmc::ucx::Address>(bytes);
  decoded<hmc::ucx::Key>(bytes);
  decoded<hmc::ucx::ServiceMessage>(bytes);
#endif
}

void verbs([[maybe_unused]] std::string_view bytes) {
#ifdef HMC_FUZZ_VERBS
  decoded<hmc::verbs::Address>(bytes);
  (void)hmc::verbs::VerbsRemote::decode(bytes, 2, {});
#endif
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hmc::test::Input input(data, size);
  const auto which = input.number<uint8_t>();
  const std::string_view bytes = input.rest();
  switch (which % 18) {
    case 0:
      decoded<hmc::Attributes>(bytes);
      break;
    case 1:
      decoded<hmc::RegionDescription>(bytes);
      break;
    case 2:
      decoded<hmc::StageOffer>(bytes);
      break;
    case 3:
      decoded<hmc::SlotCopy>(bytes);
      break;
    case 4:
      decoded<hmc::tcp::Address>(bytes);
      break;
    case 5:
      decoded<hmc::tcp::Key>(bytes);
      break;
    case 6:
      ipcDecoded(bytes, hmc::ipc::decodeKey);
      break;
    case 7:
      ipcDecoded(bytes, hmc::ipc::decodeDescription);
      break;
    case 8:
      ipcDecoded(bytes, hmc::ipc::decodeAddress);
      break;
    case 9:
      ucx(bytes);
      break;
    case 10:
      verbs(bytes);
      break;
    case 11:
      decoded<hmc::pool::Record>(bytes);
      break;
    case 12:
      decoded<hmc::pool::Layout>(bytes);
      break;
    case 13:
      decoded<hmc::agent::Record>(bytes);
      agentMemory(bytes);
      break;
    case 14:
      measurements(bytes);
      break;
    case 15:
      etcd(bytes);
      break;
    case 16:
      grants(bytes);
      break;
    default:
      decoded<hmc::AtomicRequest>(bytes);
      break;
  }
  return 0;
}
