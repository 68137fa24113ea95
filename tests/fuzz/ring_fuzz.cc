#include <memory>
#include <string>

#include "control/ring.h"
#include "fuzz/input.h"

// The message ring between two processes of one host, of which one writes there what it likes. The
// first byte says which words and lines the bytes go to.

namespace {

using namespace hmc::control;
using hmc::test::check;

constexpr size_t kStateSize = 256;  // of one direction's shared words

void readAll(const std::shared_ptr<RingMemory>& memory) {
  RingReader reader(memory, kAcceptorToDialler);
  RingRecord record;
  std::string payload;
  // Every record takes a line at least, so a ring that nobody adds to ends.
  for (size_t i = 0; i <= kRingLines; ++i) {
    payload.clear();
    (void)reader.readable();
    if (i % 2 == 1 && reader.readShort(record.kind, payload.data(), 0)) continue;
    if (reader.read(record, payload) != RingOutcome::done) return;
    check(payload.size() <= kLargestRecord);
    reader.release();
  }
  std::abort();
}

void writeSome(const std::shared_ptr<RingMemory>& memory) {
  RingWriter writer(memory, kAcceptorToDialler);
  const std::string payload(kLargestRecord, 'x');
  for (int i = 0; i < 8; ++i) {
    if (writer.write({}, payload) != RingOutcome::done) return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::shared_ptr<RingMemory> memory = RingMemory::create()->memory;
  hmc::test::Input input(data, size);
  const auto where = input.number<uint8_t>();
  char* const state = reinterpret_cast<char*>(&memory->state(kAcceptorToDialler));
  char* const lines = reinterpret_cast<char*>(memory->lines(kAcceptorToDialler));
  std::memset(state, 0, kStateSize);
  std::memset(lines, 0, kRingSize);
  if ((where & 1) != 0) {
    const std::string_view words = input.take(kStateSize);
    std::memcpy(state, words.data(), words.size());
  }
  const std::string_view bytes = input.take(kRingSize);
  std::memcpy(lines, bytes.data(), bytes.size());
  if ((where & 2) != 0) writeSome(memory);
  readAll(memory);
  return 0;
}
