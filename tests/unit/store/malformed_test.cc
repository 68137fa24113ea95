#include <gtest/gtest.h>

#include <random>

#include "raw_client.h"
#include "store/server.h"
#include "store/store.h"

// Bytes that no client of ours sends, at a server that others use meanwhile.

namespace hmc::store::test {
namespace {

using hmc::test::must;

class Malformed : public testing::Test {
 protected:
  ~Malformed() override {
    EXPECT_EQ(must(store->get("mine", kPatience)), "value") << "somebody else's client";
    EXPECT_TRUE(openStore(server->address(), {}, kPatience).ok()) << "a new client";
  }
  void SetUp() override { ASSERT_TRUE(store->set("mine", "value", kPatience).ok()); }

  void say(control::ByteStream& stream, std::string_view bytes) {
    // A server that has hung up is fine.
    (void)control::writeAll(stream, bytes, "raw", kPatience);
  }
  // The code of the answer to that call; skips heartbeats and answers to others.
  Code answerTo(control::ByteStream& stream, uint64_t number) {
    for (;;) {
      std::string header(control::kFrameHeader, '\0');
      if (!readAll(stream, header.data(), header.size(), "raw", kPatience).ok()) break;
      control::FrameReader reader(control::kLargestFrame);
      reader.feed(header);
      auto frame = must(reader.next());
      if (!frame) {
        std::string rest(reader.missing(), '\0');
        if (!readAll(stream, rest.data(), rest.size(), "raw", kPatience).ok()) break;
        reader.feed(rest);
        frame = must(reader.next());
      }
      if (frame->type != control::FrameType::answer) continue;
      Reader fields(frame->payload);
      if (fields.u64() == number) return static_cast<Code>(fields.u8());
    }
    ADD_FAILURE() << "the server hung up before it answered call " << number;
    return Code::failed;
  }
  // The server still answers on this connection.
  void expectServed(control::ByteStream& stream) {
    const Request get{.op = Op::get, .key = "mine"};
    say(stream, callFrame(kLast, static_cast<uint16_t>(Op::get), encode(get)));
    EXPECT_EQ(answerTo(stream, kLast), Code::ok);
  }

  static constexpr uint64_t kLast = UINT64_MAX;
  std::unique_ptr<Server> server = must(Server::start("tcp://127.0.0.1:0", {}));
  std::shared_ptr<Store> store = must(openStore(server->address(), {}, kPatience));
};

std::vector<Request> requests() {
  return {
      {.op = Op::await, .id = 7, .key = "k"},
      {.op = Op::set, .key = "k", .value = "v", .leases = {9}},
      {.op = Op::compareAndSet, .key = "k", .expected = "e", .value = "v", .leases = {0}},
      {.op = Op::append, .key = "k", .value = "v"},
      {.op = Op::keepAlive, .leases = {1, 2}},
      {.op = Op::grant, .leases = {9}, .ttl = std::chrono::milliseconds(5)},
      {.op = Op::watch, .id = 8, .key = "k"},
  };
}

TEST_F(Malformed, ARequestThatIsCutIsAnsweredWithAnError) {
  auto stream = dialRaw(server->address());
  uint64_t number = 0;
  for (const Request& request : requests()) {
    const std::string bytes = encode(request);
    for (size_t size = 0; size < bytes.size(); ++size) {
      say(*stream, callFrame(++number, static_cast<uint16_t>(request.op), bytes.substr(0, size)));
      EXPECT_EQ(answerTo(*stream, number), Code::invalidArgument);
    }
  }
  expectServed(*stream);
}

TEST_F(Malformed, ValuesThatCannotBeAreAnsweredWithAnError) {
  auto stream = dialRaw(server->address());
  const std::vector<Request> wrong{
      {.op = Op::get, .key = std::string(kLargestKey + 1, 'k')},
      {.op = Op::set, .key = "k", .value = std::string(kLargestValue + 1, 'v'), .leases = {0}},
      {.op = Op::set, .key = "", .value = "v", .leases = {0}},
      {.op = Op::set, .key = "k", .leases = {0}},
      {.op = Op::grant, .leases = {0}, .ttl = std::chrono::milliseconds(5)},
      {.op = Op::grant, .leases = {1}, .ttl = std::chrono::milliseconds(-5)},
      {.op = Op::grant, .leases = {1}, .ttl = std::chrono::milliseconds::max()},
  };
  uint64_t number = 0;
  for (const Request& request : wrong) {
    say(*stream, callFrame(++number, static_cast<uint16_t>(request.op), encode(request)));
    EXPECT_EQ(answerTo(*stream, number), Code::invalidArgument) << number;
  }
  for (uint16_t method : {0, 19, 65534}) {
    say(*stream, callFrame(++number, method, "x"));
    EXPECT_EQ(answerTo(*stream, number), Code::unsupported) << method;
  }
  for (Op op : {Op::more, Op::watchNext}) {
    say(*stream, callFrame(++number, static_cast<uint16_t>(op), encode({.op = op, .id = 99})));
    EXPECT_EQ(answerTo(*stream, number), Code::notFound);
  }
  expectServed(*stream);
}

TEST_F(Malformed, RequestsWithChangedBytesDoNoHarm) {
  auto stream = dialRaw(server->address());
  std::mt19937_64 random(2);
  const auto all = requests();
  for (uint64_t number = 1; number <= 3000; ++number) {
    const Request& request = all[random() % all.size()];
    std::string bytes = encode(request);
    for (uint64_t i = random() % 3; i > 0; --i) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    say(*stream, callFrame(number, static_cast<uint16_t>(random() % 20), bytes));
  }
  expectServed(*stream);
}

TEST_F(Malformed, AFrameThatAnnouncesTooMuchEndsTheConnection) {
  auto stream = dialRaw(server->address());
  say(*stream, Writer().u32(0xffffffff).u8(17).u8(0).u16(0).raw("xxxx").take());
  char byte = 0;
  while (readAll(*stream, &byte, 1, "raw", kPatience).ok()) {
  }
}

TEST_F(Malformed, GarbageEndsItsOwnConnectionOnly) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 50; ++round) {
    std::unique_ptr<control::ByteStream> stream;
    if (round % 2 == 0) {
      stream = dialRaw(server->address());
    } else {
      const control::Address address = must(control::parseAddress(server->address()));
      stream = control::socketStream(must(control::dial(address, kPatience)));
    }
    std::string bytes(random() % 4096, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    say(*stream, bytes);
  }
}

TEST_F(Malformed, AClientThatGoesInTheMiddleOfARequestLeavesNothing) {
  for (size_t size : {1, 8, 12, 20, 200}) {
    auto stream = dialRaw(server->address());
    const Request set{.op = Op::set, .key = "half", .value = std::string(1000, 'v'), .leases = {0}};
    say(*stream, callFrame(1, static_cast<uint16_t>(Op::set), encode(set)).substr(0, size));
  }
  EXPECT_EQ(store->get("half", kPatience).status().code(), Code::notFound);
}

}  // namespace
}  // namespace hmc::store::test
