#include <cstdint>
#include <string_view>

#include "fuzz/input.h"
#include "store/state.h"
#include "store/wire.h"

// Whatever arrives at a server or a client of the store. The first two bytes are the method, the
// rest the request; all of it is also tried as each of the answers.

namespace {

using hmc::store::Op;
using hmc::store::Request;
using hmc::store::State;
using hmc::test::check;

void carryOut(State& state, const Request& request) {
  const State::Time now{};
  switch (request.op) {
    case Op::set:
      (void)state.set(request.key, *request.value, request.leases.front());
      break;
    case Op::compareAndSet:
      (void)state.compareAndSet(request.key, request.expected, request.value,
                                request.leases.front());
      break;
    case Op::claim:
      (void)state.claim(request.key, *request.value, request.leases.front());
      break;
    case Op::add:
      (void)state.add(request.key, request.amount);
      break;
    case Op::append:
      (void)state.append(request.key, *request.value);
      break;
    case Op::removeAll:
      state.removeAll(request.key);
      break;
    case Op::grant:
      (void)state.grant(request.leases.front(), request.ttl, now);
      break;
    case Op::watch:
      state.watch(1, request.key);
      break;
    default:
      break;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  using namespace hmc::store;
  if (const auto page = decodePage(bytes); page.ok()) check(page->entries.size() <= size);
  if (const auto changes = decodeChanges(bytes); changes.ok()) check(changes->size() <= size);
  (void)decodeSwap(bytes);
  (void)decodeNumber(bytes);
  if (const auto ids = decodeIds(bytes); ids.ok()) check(encodeIds(*ids) == bytes);
  if (size < 2) return 0;
  const auto method = static_cast<uint16_t>(data[0] | data[1] << 8);
  const auto request = decodeRequest(method, bytes.substr(2));
  if (!request.ok()) return 0;
  check(encode(*request) == bytes.substr(2));
  State state;
  (void)state.set("n", "1");
  carryOut(state, *request);
  check(state.takeWoken().awaits.empty());
  return 0;
}
