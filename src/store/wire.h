#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hmc/result.h"
#include "store/state.h"
#include "store/store.h"

namespace hmc::store {

// What a client and a server of ours say to each other; docs/wire-format.md lists it. An error is
// the control channel's business: it carries code and sentence. No input makes a decoder throw,
// read past the end or allocate more than the input is long.

// Both sides have this as their attributes: who dials something else by mistake hears so.
inline constexpr std::string_view kProtocol = "hmc-store/1";

// A call's method.
enum class Op : uint16_t {
  get = 1,
  await,   // answered when the key is there
  forget,  // gives up the await of that id
  list,
  more,  // the next part of a list
  set,
  compareAndSet,
  claim,
  add,
  append,
  remove,
  removeAll,
  grant,
  keepAlive,
  revoke,
  watch,      // answered with the first changes
  watchNext,  // answered when there are changes
  unwatch,
};

// Each op uses some of these: see fieldsOf() in wire.cc.
struct Request {
  Op op = Op::get;
  uint64_t id = 0;  // the client's, of an await or a watch; the server's, of a list
  std::string key;  // or prefix
  std::optional<std::string> expected;
  std::optional<std::string> value;
  int64_t amount = 0;
  std::vector<uint64_t> leases;  // one for all but keepAlive; 0: none
  std::chrono::milliseconds ttl{0};
};

std::string encode(const Request& request);
Result<Request> decodeRequest(uint16_t op, std::string_view bytes);

// The answers. Those to get and await are the value, those to set, remove and their like are empty.

// A list, or a part of it: with a cursor that is not 0, Op::more gives the next.
struct Page {
  uint64_t cursor = 0;
  std::vector<Entry> entries;
};
// As many of the records as fit into one answer; tells in `taken` how many.
std::string encodePage(const std::vector<Record>& records, size_t from, uint64_t cursor,
                       size_t& taken);
Result<Page> decodePage(std::string_view bytes);

std::string encodeSwap(const Swap& swap);
Result<Swap> decodeSwap(std::string_view bytes);

std::string encodeNumber(uint64_t number);
Result<uint64_t> decodeNumber(std::string_view bytes);

// Leases that the server does not know.
std::string encodeIds(const std::vector<uint64_t>& ids);
Result<std::vector<uint64_t>> decodeIds(std::string_view bytes);

// Bytes of changes after which an answer takes no more.
inline constexpr size_t kPartSize = size_t{4} << 20;
std::string encodeChanges(const std::vector<State::Event>& events);
Result<std::vector<Change>> decodeChanges(std::string_view bytes);

}  // namespace hmc::store
