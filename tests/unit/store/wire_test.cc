#include "store/wire.h"

#include <gtest/gtest.h>

#include <random>

#include "base/codec.h"
#include "fakes/must.h"

namespace hmc::store {
namespace {

using test::must;

std::vector<Request> oneOfEach() {
  const std::string key = "a key";
  return {
      {.op = Op::get, .key = key},
      {.op = Op::await, .id = 7, .key = key},
      {.op = Op::forget, .id = 7},
      {.op = Op::list, .key = ""},
      {.op = Op::more, .id = 1},
      {.op = Op::set, .key = key, .value = "v", .leases = {9}},
      {.op = Op::compareAndSet, .key = key, .expected = "", .leases = {0}},
      {.op = Op::claim, .key = key, .value = "v", .leases = {9}},
      {.op = Op::add, .key = key, .amount = -5},
      {.op = Op::append, .key = key, .value = ""},
      {.op = Op::remove, .key = key},
      {.op = Op::removeAll, .key = key},
      {.op = Op::grant, .leases = {9}, .ttl = std::chrono::milliseconds(5)},
      {.op = Op::keepAlive, .leases = {1, 2, 3}},
      {.op = Op::revoke, .leases = {9}},
      {.op = Op::watch, .id = 8, .key = key},
      {.op = Op::watchNext, .id = 8},
      {.op = Op::unwatch, .id = 8},
  };
}

Result<Request> decode(const Request& request, std::string_view bytes) {
  return decodeRequest(static_cast<uint16_t>(request.op), bytes);
}

TEST(StoreWire, EveryRequestArrivesAsItWasSent) {
  for (const Request& sent : oneOfEach()) {
    const Request got = must(decode(sent, encode(sent)));
    EXPECT_EQ(got.op, sent.op);
    EXPECT_EQ(got.id, sent.id);
    EXPECT_EQ(got.key, sent.key);
    EXPECT_EQ(got.expected, sent.expected);
    EXPECT_EQ(got.value, sent.value);
    EXPECT_EQ(got.amount, sent.amount);
    EXPECT_EQ(got.leases, sent.leases);
    EXPECT_EQ(got.ttl, sent.ttl);
  }
}

TEST(StoreWire, ARequestThatIsCutOrHasMoreIsRefused) {
  for (const Request& sent : oneOfEach()) {
    const std::string bytes = encode(sent);
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(decode(sent, std::string_view(bytes).substr(0, size)).ok())
          << static_cast<int>(sent.op) << " cut at " << size;
    }
    EXPECT_FALSE(decode(sent, bytes + "x").ok());
  }
}

TEST(StoreWire, AnUnknownRequestIsRefused) {
  EXPECT_EQ(decodeRequest(0, "").status().code(), Code::unsupported);
  EXPECT_EQ(decodeRequest(19, "").status().code(), Code::unsupported);
  EXPECT_EQ(decodeRequest(65535, "").status().code(), Code::unsupported);
}

TEST(StoreWire, SizesBeyondTheLimitsAreRefused) {
  const Request longKey{.op = Op::get, .key = std::string(kLargestKey + 1, 'k')};
  EXPECT_EQ(decode(longKey, encode(longKey)).status().code(), Code::invalidArgument);
  const Request longValue{
      .op = Op::append, .key = "k", .value = std::string(kLargestValue + 1, 'v')};
  EXPECT_EQ(decode(longValue, encode(longValue)).status().code(), Code::invalidArgument);
  const Request noValue{.op = Op::set, .key = "k", .leases = {0}};
  EXPECT_EQ(decode(noValue, encode(noValue)).status().code(), Code::invalidArgument);
}

TEST(StoreWire, ACountThatTheBytesCannotHoldIsRefused) {
  const std::string leases = Writer().u32(0xffffffff).u64(1).take();
  EXPECT_FALSE(decodeRequest(static_cast<uint16_t>(Op::keepAlive), leases).ok());
  EXPECT_FALSE(decodeIds(leases).ok());
  EXPECT_FALSE(decodeChanges(Writer().u32(0xffffffff).take()).ok());
  EXPECT_FALSE(decodePage(Writer().u64(0).u32(0xffffffff).u64(0).take()).ok());
}

TEST(StoreWire, AnswersArriveAsTheyWereSent) {
  for (const Swap& sent : {Swap{true, std::nullopt}, Swap{false, "x"}, Swap{true, ""}}) {
    const Swap got = must(decodeSwap(encodeSwap(sent)));
    EXPECT_EQ(got.done, sent.done);
    EXPECT_EQ(got.found, sent.found);
  }
  EXPECT_EQ(must(decodeNumber(encodeNumber(UINT64_MAX))), UINT64_MAX);
  const std::vector<uint64_t> ids{1, UINT64_MAX};
  EXPECT_EQ(must(decodeIds(encodeIds(ids))), ids);
  const auto value = std::make_shared<const std::string>("v");
  const auto changes = must(decodeChanges(encodeChanges({{Change::Kind::set, "k", value},
                                                         {Change::Kind::removed, "k", nullptr},
                                                         {Change::Kind::current, "", nullptr}})));
  ASSERT_EQ(changes.size(), 3u);
  EXPECT_EQ(changes[0].entry.value, "v");
  EXPECT_EQ(changes[1].kind, Change::Kind::removed);
  EXPECT_EQ(changes[2].kind, Change::Kind::current);
}

TEST(StoreWire, APageHoldsWhatFitsAndTheNextGoesOn) {
  const auto big = std::make_shared<const std::string>(kPartSize / 2 + 1, 'v');
  const std::vector<Record> records{{"a", big}, {"b", big}, {"c", big}};
  size_t taken = 0;
  Page page = must(decodePage(encodePage(records, 0, 5, taken)));
  EXPECT_EQ(taken, 2u);
  EXPECT_EQ(page.cursor, 5u);
  page = must(decodePage(encodePage(records, 2, 5, taken)));
  EXPECT_EQ(taken, 1u);
  EXPECT_EQ(page.cursor, 0u);
  EXPECT_EQ(page.entries.at(0).key, "c");
}

TEST(StoreWire, NoBytesMakeADecoderFail) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 20000; ++round) {
    std::string bytes(random() % 64, '\0');
    for (char& byte : bytes) byte = random() % 3 == 0 ? static_cast<char>(random()) : '\0';
    (void)decodeRequest(random() % 20, bytes);
    (void)decodePage(bytes);
    (void)decodeSwap(bytes);
    (void)decodeNumber(bytes);
    (void)decodeIds(bytes);
    (void)decodeChanges(bytes);
  }
}

}  // namespace
}  // namespace hmc::store
