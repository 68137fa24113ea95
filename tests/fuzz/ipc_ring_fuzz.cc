#include <algorithm>
#include <array>
#include <memory>

#include "fuzz/input.h"
#include "transport/ipc/service.h"

// The ring of an ipc link, whose origin writes into its slots what it likes: the target applies
// what fits its exported memory and touches nothing else.

namespace hmc::ipc {
namespace {

using test::check;
using test::Input;
using test::must;

constexpr size_t kServed = 4096;  // and as much in front of it and behind

// The target, and its ring as the origin has mapped it.
class Target {
 public:
  Target()
      : page_(must(SharedBlock<ServicePage>::create())),
        theirs_(must(SharedBlock<ServicePage>::create())),
        ring_(must(SharedBlock<Ring>::create())),
        service_(*page_, exports_) {
    region_ = exports_.add({memory_.data() + kServed, kServed, Device{}}, Access::readWrite);
    service_.addLink("link", std::make_shared<Lease>(std::chrono::hours(24)));
    service_.start();
    check(service_
              .acceptRing("link", must(SharedBlock<Ring>::attach(must(ring_.share()))),
                          must(SharedBlock<ServicePage>::attach(must(theirs_.share()))))
              .ok());
  }

  void post(Input& input, RingSlot& slot) {
    const auto bits = input.number<uint8_t>();
    slot.kind.store((bits & 1) != 0 ? input.number<uint32_t>() : (bits >> 1) & 1);
    slot.size.store(input.number<uint32_t>());
    slot.offset.store((bits & 4) != 0 ? input.number<uint64_t>() : input.number<uint16_t>());
    slot.region.store((bits & 8) != 0 ? input.number<uint64_t>() : region_);
    slot.state.store(RingSlot::posted);
  }
  void serve(Input input) {
    size_t posted = 0;
    while (!input.rest().empty() && posted < kSlots) post(input, ring_->slots[posted++]);
    page_->serve.ring();
    for (size_t i = 0; i < posted; ++i) await(ring_->slots[i]);
    const auto isOurs = [](char byte) { return byte == '.'; };
    check(std::all_of(memory_.begin(), memory_.begin() + kServed, isOurs));
    check(std::all_of(memory_.end() - kServed, memory_.end(), isOurs));
  }

 private:
  void await(RingSlot& slot) {
    const Deadline deadline(std::chrono::seconds(30));
    for (;;) {
      const uint32_t seen = theirs_->progress.count.load();
      if (slot.state.load() == RingSlot::done) break;
      check(!deadline.passed());
      theirs_->progress.sleep(seen, deadline);
    }
    slot.state.store(RingSlot::free);
  }
  static std::array<char, 3 * kServed> filled() {
    std::array<char, 3 * kServed> bytes{};
    bytes.fill('.');
    return bytes;
  }

  std::array<char, 3 * kServed> memory_ = filled();
  SharedBlock<ServicePage> page_;
  SharedBlock<ServicePage> theirs_;
  SharedBlock<Ring> ring_;
  Exports exports_;
  Service service_;
  uint64_t region_ = 0;
};

}  // namespace
}  // namespace hmc::ipc

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static hmc::ipc::Target target;
  target.serve(hmc::test::Input(data, size));
  return 0;
}
