#include "store/wire.h"

#include "base/codec.h"
#include "base/error.h"

namespace hmc::store {

namespace {

enum Field : unsigned {
  kId = 1,
  kKey = 2,
  kExpected = 4,
  kValue = 8,
  kAmount = 16,
  kLease = 32,
  kLeases = 64,
  kTtl = 128,
};

// What a request of that kind carries, in the order above; none for a kind that is not known.
std::optional<unsigned> fieldsOf(uint16_t op) {
  switch (static_cast<Op>(op)) {
    case Op::get:
    case Op::list:
    case Op::remove:
    case Op::removeAll:
      return kKey;
    case Op::await:
    case Op::watch:
      return kId | kKey;
    case Op::forget:
    case Op::more:
    case Op::watchNext:
    case Op::unwatch:
      return kId;
    case Op::set:
    case Op::claim:
      return kKey | kValue | kLease;
    case Op::compareAndSet:
      return kKey | kExpected | kValue | kLease;
    case Op::add:
      return kKey | kAmount;
    case Op::append:
      return kKey | kValue;
    case Op::grant:
      return kLease | kTtl;
    case Op::revoke:
      return kLease;
    case Op::keepAlive:
      return kLeases;
  }
  return std::nullopt;
}

constexpr size_t kMostLeases = size_t{1} << 16;
// A u32 length each.
constexpr size_t kSmallestEntry = 8;
constexpr size_t kSmallestChange = 9;

void write(Writer& writer, const std::optional<std::string>& text) {
  writer.u8(text ? 1 : 0);
  if (text) writer.string(*text);
}

void write(Writer& writer, const std::vector<uint64_t>& numbers) {
  writer.u32(static_cast<uint32_t>(numbers.size()));
  for (uint64_t number : numbers) writer.u64(number);
}

Status malformed(std::string_view what, std::string_view field, uint64_t value, uint64_t limit) {
  return error(Code::invalidArgument, "{} has {} of {}, and {} is the most", what, field, value,
               limit);
}

Result<std::optional<std::string>> readOptional(Reader& reader, std::string_view what) {
  const uint8_t there = reader.u8();
  if (there > 1) return malformed(what, "a presence byte", there, 1);
  if (there == 0) return std::optional<std::string>();
  return std::optional<std::string>(reader.string());
}

Result<std::vector<uint64_t>> readNumbers(Reader& reader, std::string_view what) {
  const uint32_t count = reader.u32();
  if (count > kMostLeases) return malformed(what, "a number of leases", count, kMostLeases);
  if (count > reader.left() / sizeof(uint64_t)) {
    return malformed(what, "a number of leases", count, reader.left() / sizeof(uint64_t));
  }
  std::vector<uint64_t> numbers(count);
  for (uint64_t& number : numbers) number = reader.u64();
  return numbers;
}

// How many there can be at most is known from the bytes that are left.
Result<uint32_t> readCount(Reader& reader, size_t smallest, std::string_view what) {
  const uint32_t count = reader.u32();
  if (count <= reader.left() / smallest) return count;
  return malformed(what, "a number of entries", count, reader.left() / smallest);
}

}  // namespace

std::string encode(const Request& request) {
  const unsigned fields = fieldsOf(static_cast<uint16_t>(request.op)).value_or(0);
  Writer writer;
  if ((fields & kId) != 0) writer.u64(request.id);
  if ((fields & kKey) != 0) writer.string(request.key);
  if ((fields & kExpected) != 0) write(writer, request.expected);
  if ((fields & kValue) != 0) write(writer, request.value);
  if ((fields & kAmount) != 0) writer.u64(static_cast<uint64_t>(request.amount));
  if ((fields & kLease) != 0) writer.u64(request.leases.empty() ? 0 : request.leases.front());
  if ((fields & kLeases) != 0) write(writer, request.leases);
  if ((fields & kTtl) != 0) writer.u64(static_cast<uint64_t>(request.ttl.count()));
  return writer.take();
}

Result<Request> decodeRequest(uint16_t op, std::string_view bytes) {
  const auto fields = fieldsOf(op);
  if (!fields) return error(Code::unsupported, "the store knows no request of kind {}", op);
  constexpr std::string_view kWhat = "a request to the store";
  Request request{.op = static_cast<Op>(op)};
  Reader reader(bytes);
  if ((*fields & kId) != 0) request.id = reader.u64();
  if ((*fields & kKey) != 0) request.key = reader.string();
  if ((*fields & kExpected) != 0) {
    HMC_ASSIGN(request.expected, readOptional(reader, kWhat));
  }
  if ((*fields & kValue) != 0) {
    HMC_ASSIGN(request.value, readOptional(reader, kWhat));
  }
  if ((*fields & kAmount) != 0) request.amount = static_cast<int64_t>(reader.u64());
  if ((*fields & kLease) != 0) request.leases = {reader.u64()};
  if ((*fields & kLeases) != 0) {
    HMC_ASSIGN(request.leases, readNumbers(reader, kWhat));
  }
  if ((*fields & kTtl) != 0) {
    request.ttl = std::chrono::milliseconds(static_cast<int64_t>(reader.u64()));
  }
  HMC_TRY(reader.finish(kWhat));
  if (!request.value && request.op != Op::compareAndSet && (*fields & kValue) != 0) {
    return error(Code::invalidArgument, "{} of kind {} has no value", kWhat, op);
  }
  HMC_TRY(checkPrefix(request.key));
  if (request.expected) HMC_TRY(checkValue(*request.expected));
  if (request.value) HMC_TRY(checkValue(*request.value));
  return request;
}

std::string encodePage(const std::vector<Record>& records, size_t from, uint64_t cursor,
                       size_t& taken) {
  size_t size = 0;
  taken = 0;
  while (from + taken < records.size() && size < kPartSize) {
    const Record& record = records[from + taken++];
    size += record.key.size() + record.value->size() + kSmallestEntry;
  }
  Writer writer;
  writer.u64(from + taken < records.size() ? cursor : 0).u32(static_cast<uint32_t>(taken));
  for (size_t i = from; i < from + taken; ++i) {
    writer.string(records[i].key).string(*records[i].value);
  }
  return writer.take();
}

Result<Page> decodePage(std::string_view bytes) {
  constexpr std::string_view kWhat = "a list of the store";
  Reader reader(bytes);
  Page page;
  page.cursor = reader.u64();
  HMC_ASSIGN(const uint32_t count, readCount(reader, kSmallestEntry, kWhat));
  page.entries.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    std::string key = reader.string();
    page.entries.push_back({std::move(key), reader.string()});
  }
  HMC_TRY(reader.finish(kWhat));
  return page;
}

std::string encodeSwap(const Swap& swap) {
  Writer writer;
  writer.u8(swap.done ? 1 : 0);
  write(writer, swap.found);
  return writer.take();
}

Result<Swap> decodeSwap(std::string_view bytes) {
  constexpr std::string_view kWhat = "an answer of the store to compare and set";
  Reader reader(bytes);
  Swap swap;
  swap.done = reader.u8() != 0;
  HMC_ASSIGN(swap.found, readOptional(reader, kWhat));
  HMC_TRY(reader.finish(kWhat));
  return swap;
}

std::string encodeNumber(uint64_t number) {
  return Writer().u64(number).take();
}

Result<uint64_t> decodeNumber(std::string_view bytes) {
  Reader reader(bytes);
  const uint64_t number = reader.u64();
  HMC_TRY(reader.finish("a number of the store"));
  return number;
}

std::string encodeIds(const std::vector<uint64_t>& ids) {
  Writer writer;
  write(writer, ids);
  return writer.take();
}

Result<std::vector<uint64_t>> decodeIds(std::string_view bytes) {
  constexpr std::string_view kWhat = "a list of leases";
  Reader reader(bytes);
  HMC_ASSIGN(auto ids, readNumbers(reader, kWhat));
  HMC_TRY(reader.finish(kWhat));
  return ids;
}

std::string encodeChanges(const std::vector<State::Event>& events) {
  Writer writer;
  writer.u32(static_cast<uint32_t>(events.size()));
  for (const State::Event& event : events) {
    writer.u8(static_cast<uint8_t>(event.kind)).string(event.key);
    writer.string(event.value ? std::string_view(*event.value) : std::string_view());
  }
  return writer.take();
}

Result<std::vector<Change>> decodeChanges(std::string_view bytes) {
  constexpr std::string_view kWhat = "a list of changes";
  constexpr auto kLast = static_cast<uint8_t>(Change::Kind::current);
  Reader reader(bytes);
  HMC_ASSIGN(const uint32_t count, readCount(reader, kSmallestChange, kWhat));
  std::vector<Change> changes(count);
  for (Change& change : changes) {
    const uint8_t kind = reader.u8();
    if (kind > kLast) return malformed(kWhat, "a kind", kind, kLast);
    change.kind = static_cast<Change::Kind>(kind);
    change.entry.key = reader.string();
    change.entry.value = reader.string();
  }
  HMC_TRY(reader.finish(kWhat));
  return changes;
}

}  // namespace hmc::store
