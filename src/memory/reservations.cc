#include "memory/reservations.h"

#include <cstdio>
#include <fstream>
#include <string>

#include "memory/range_error.h"

namespace hmc {

namespace {

constexpr size_t kUnit = Reservations::kAlignment;
constexpr int kSetAside = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

class RangeReservation final : public Reservation {
 public:
  RangeReservation(const Device& device, std::shared_ptr<ReservedRange> range)
      : Reservation({range->first, range->size, device}, range->unit), range_(std::move(range)) {}

 private:
  const std::shared_ptr<ReservedRange> range_;
};

bool isFree(const ReservedRange& range, char* at, size_t size) {
  auto next = range.inUse.lower_bound(at);
  if (next != range.inUse.end() && next->first < at + size) return false;
  return next == range.inUse.begin() || std::prev(next)->first + std::prev(next)->second <= at;
}

Status noReservation(const void* at) {
  return error(Code::invalidArgument,
               "{} is not in a reservation: attach() places memory only there", at);
}

Result<Mapping> takeIn(const std::shared_ptr<ReservedRange>& range, char* at, size_t size) {
  const auto offset = static_cast<size_t>(at - range->first);
  if (offset % range->unit != 0) {
    return error(Code::invalidArgument,
                 "offset {} of a reservation is no place for memory: it must be a multiple of {}",
                 offset, range->unit);
  }
  if (!fits(offset, size, range->size)) {
    return rangeError("mapping", size, "reservation ", offset, range->size);
  }
  std::lock_guard lock(range->mutex);
  if (!isFree(*range, at, size)) {
    return error(Code::alreadyExists, "{} bytes at {} overlap memory that is attached there", size,
                 static_cast<void*>(at));
  }
  range->inUse.emplace(at, size);
  return Mapping(at, size, range);
}

// A unit more than `size` where the beginning is ours to align.
Result<Mapping> setAside(size_t size, void* at) {
  if (reinterpret_cast<uintptr_t>(at) % kUnit != 0) {
    return error(Code::invalidArgument,
                 "addresses cannot be reserved from {} on: not a multiple of {}", at, kUnit);
  }
  const size_t length = at ? size : size + kUnit;
  // A wish, which the kernel grants where nothing lies. MAP_FIXED_NOREPLACE would say so at once,
  // but under the thread sanitizer it maps elsewhere or ends the program.
  void* ptr = mmap(at, length, PROT_NONE, kSetAside, -1, 0);
  if (ptr == MAP_FAILED) return errnoStatus(fmt::format("reserve {} bytes of addresses", size));
  if (!at || ptr == at) return Mapping(ptr, length);
  munmap(ptr, length);  // first: a part of it may lie where we are about to look
  return addressesTaken(size, at);
}

}  // namespace

Status addressesTaken(size_t size, const void* at) {
  const auto first = reinterpret_cast<uintptr_t>(at);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) == 2 && end > first &&
        begin < first + size) {
      return error(Code::alreadyExists,
                   "{} bytes of addresses from {} on are taken: \"{}\" lies there", size, at, line);
    }
  }
  return error(Code::alreadyExists, "{} bytes of addresses from {} on cannot be had", size, at);
}

void Mapping::End::operator()(char* ptr) const {
  if (!within) {
    munmap(ptr, size);
    return;
  }
  if (within->setAside) within->setAside(ptr, size);
  std::lock_guard lock(within->mutex);
  within->inUse.erase(ptr);
}

Result<std::unique_ptr<Reservation>> Reservations::reserve(const Device& device, size_t size,
                                                           void* at) {
  if (size == 0 || size > SIZE_MAX / 2) {
    return error(Code::invalidArgument, "{} bytes of addresses cannot be reserved", size);
  }
  const size_t whole = (size + kUnit - 1) / kUnit * kUnit;
  HMC_ASSIGN(Mapping addresses, setAside(whole, at));
  char* const ptr = addresses.get();
  auto range = std::make_shared<ReservedRange>();
  range->addresses = std::make_shared<Mapping>(std::move(addresses));
  range->first = ptr + (-reinterpret_cast<uintptr_t>(ptr) % kUnit);
  range->size = whole;
  range->unit = kUnit;
  // Pages that can be touched: views of what was mapped here may outlive it, in Python say, and
  // reading one shall not end the process.
  range->setAside = [](char* place, size_t length) {
    (void)mmap(place, length, PROT_READ | PROT_WRITE, kSetAside | MAP_FIXED, -1, 0);
  };
  return add(device, std::move(range));
}

std::unique_ptr<Reservation> Reservations::add(const Device& device,
                                               std::shared_ptr<ReservedRange> range) {
  std::lock_guard lock(mutex_);
  std::erase_if(ranges_, [](const auto& known) { return known.expired(); });
  ranges_.push_back(range);
  return std::make_unique<RangeReservation>(device, std::move(range));
}

Result<Mapping> Reservations::take(void* at, size_t size) {
  auto* byte = static_cast<char*>(at);
  std::lock_guard lock(mutex_);
  for (const auto& known : ranges_) {
    auto range = known.lock();
    if (range && byte >= range->first && byte < range->first + range->size) {
      return takeIn(range, byte, size);
    }
  }
  return noReservation(at);
}

}  // namespace hmc
