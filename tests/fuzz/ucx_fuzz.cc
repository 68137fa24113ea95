#include <array>
#include <cstdlib>
#include <memory>
#include <string>

#include "fuzz/input.h"
#include "transport/ucx/path.h"

// What a peer may send to the worker that serves a link over UCX: messages with a request's header,
// whole or damaged, and any bytes behind it. Every whole one is answered once, and nothing is
// touched but what is served.

namespace hmc::ucx {
namespace {

using test::check;
using test::Input;
using test::must;

constexpr size_t kServed = 4096;  // and as much in front of it and behind

std::unique_ptr<Context> context(Context::Purpose purpose) {
  // Whatever devices there are.
  setenv("UCX_TLS", "tcp", 0);
  return must(
      Context::create(must(Api::load(must(findLibrary(Search::ofThisProcess())))), purpose));
}

class Stranger final : public Worker, private EndpointOwner {
 public:
  Stranger(Context& context, const std::string& target) : Worker(context) {
    check(open(kReplyMessage, *this).ok());
    endpoint_ = must(connect(target, *this));
  }
  ~Stranger() override { drop(endpoint_); }

  void say(std::string_view header, std::string_view bytes) {
    auto copy = std::make_unique<char[]>(bytes.size());
    bytes.copy(copy.get(), bytes.size());
    post(endpoint_, kRequestMessage, header, std::move(copy), bytes.size());
  }
  bool settled() const override { return true; }
  size_t takeAnswers() { return std::exchange(answers_, 0); }

 private:
  friend class Worker;
  void received(const Message& message) {
    check(message.header.size() == sizeof(Reply));
    const Reply reply = fromWire<Reply>(message.header);
    check(reply.code == 0 || message.size <= kLongestError);
    check(message.size <= kLargest);
    ++answers_;
  }
  void endpointFailed(ucs_status_t) override { check(false); }

  ucp_ep_h endpoint_ = nullptr;
  size_t answers_ = 0;
};

class Fuzzed {
 public:
  Fuzzed() {
    region_ = exports_.add({memory_.data() + kServed, kServed, Device{}}, Access::readWrite);
    target_ = must(Target::create(*serving_, exports_, lease_));
    stranger_ = std::make_unique<Stranger>(*asking_, target_->address());
  }

  void run(Input input) {
    size_t whole = 0;
    for (int i = 0; i < 16 && !input.rest().empty(); ++i) {
      const auto bits = input.number<uint8_t>();
      if ((bits & 1) != 0) {
        const std::string_view header = input.take(input.number<uint8_t>() % 64);
        whole += header.size() == sizeof(Request) ? 1 : 0;
        stranger_->say(header, input.take(input.number<uint8_t>()));
        continue;
      }
      ++whole;
      sayRequest(input, bits);
    }
    size_t answered = 0;
    for (const Deadline deadline = std::chrono::seconds(30); answered < whole;) {
      target_->progress();
      stranger_->progress();
      answered += stranger_->takeAnswers();
      check(!deadline.passed());
    }
    check(answered == whole);
    const auto isOurs = [](char byte) { return byte == '.'; };
    check(std::all_of(memory_.begin(), memory_.begin() + kServed, isOurs));
    check(std::all_of(memory_.end() - kServed, memory_.end(), isOurs));
  }

 private:
  void sayRequest(Input& input, uint8_t bits) {
    constexpr std::array kKinds{RequestKind::put, RequestKind::get, RequestKind::hello};
    Request request{};
    request.kind = (bits & 2) != 0 ? static_cast<RequestKind>(input.number<uint64_t>())
                                   : kKinds[(bits >> 6) % kKinds.size()];
    request.id = input.number<uint8_t>();
    request.region = (bits & 4) != 0 ? input.number<uint64_t>() : region_;
    request.offset = (bits & 8) != 0 ? input.number<uint64_t>() : input.number<uint16_t>();
    request.size = (bits & 16) != 0 ? input.number<uint64_t>() : input.number<uint16_t>();
    const Request wire = swapped(request);
    const bool honest = (bits & 32) != 0 && request.kind == RequestKind::put;
    const std::string bytes(
        honest ? std::min<uint64_t>(request.size, 2 * kServed) : input.number<uint8_t>(), 'x');
    stranger_->say({reinterpret_cast<const char*>(&wire), sizeof(wire)}, bytes);
  }
  static std::array<char, 3 * kServed> filled() {
    std::array<char, 3 * kServed> bytes{};
    bytes.fill('.');
    return bytes;
  }

  std::array<char, 3 * kServed> memory_ = filled();
  Exports exports_;
  uint64_t region_ = 0;
  const std::shared_ptr<Lease> lease_ = std::make_shared<Lease>(std::chrono::hours(24));
  const std::unique_ptr<Context> serving_ = context(Context::Purpose::serve);
  const std::unique_ptr<Context> asking_ = context(Context::Purpose::ask);
  std::unique_ptr<Target> target_;
  std::unique_ptr<Stranger> stranger_;
};

}  // namespace
}  // namespace hmc::ucx

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static hmc::ucx::Fuzzed fuzzed;
  fuzzed.run(hmc::test::Input(data, size));
  return 0;
}
