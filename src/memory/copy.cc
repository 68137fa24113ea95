#include "memory/copy.h"

#include <algorithm>
#include <functional>
#include <memory>

#include "base/error.h"
#include "memory/backends.h"

namespace hmc {

namespace {

constexpr size_t kBounceSize = size_t{4} << 20;
// Overlapping pieces closer than this go through the host: copies on the device would be too many.
constexpr size_t kShortestStep = size_t{64} << 10;

// Host memory that a copy between two devices goes through. `new` without a value: no zero-fill.
class Bounce {
 public:
  explicit Bounce(size_t wanted)
      : size_(std::min(wanted, kBounceSize)), bytes_(new char[std::min(wanted, kBounceSize)]) {}
  size_t size() const { return size_; }
  Region region(size_t size) const { return {bytes_.get(), size, Device{}}; }

 private:
  size_t size_;
  std::unique_ptr<char[]> bytes_;
};

Status check(const Region& dst, const Region& src) {
  if (dst.size < src.size) {
    return error(Code::outOfRange, "{} bytes cannot be copied into {} bytes", src.size, dst.size);
  }
  if (src.size > 0 && (!dst.ptr || !src.ptr)) {
    return error(Code::invalidArgument, "a copy of {} bytes from {} to {} has a null pointer",
                 src.size, src.device.toString(), dst.device.toString());
  }
  return Status();
}

// One piece of a copy that goes through the host.
Status copyThrough(const Bounce& bounce, Backend& to, const Region& dst, Backend& from,
                   const Region& src) {
  Region middle = bounce.region(src.size);
  HMC_TRY(from.copy(middle, src, nullptr));
  return to.copy(dst, middle, nullptr);
}

Status copyBetweenVendors(const Region& dst, const Region& src) {
  HMC_ASSIGN(Backend * to, findBackend(dst.device));
  HMC_ASSIGN(Backend * from, findBackend(src.device));
  Bounce bounce(src.size);
  for (size_t done = 0; done < src.size; done += bounce.size()) {
    size_t piece = std::min(bounce.size(), src.size - done);
    HMC_TRY(copyThrough(bounce, *to, dst.slice(done, piece), *from, src.slice(done, piece)));
  }
  return Status();
}

bool overlap(const Region& dst, const Region& src) {
  std::less<const char*> before;
  return dst.device.kind == src.device.kind && before(dst.at(0), src.at(src.size)) &&
         before(src.at(0), dst.at(src.size));
}

// Pieces go in the order in which none overwrites what is still to be read: upwards when the
// destination lies below the source, downwards when above. Pieces no longer than the distance do
// not overlap; where that is too short, each is read to the host before it is written.
Status moveOnDevice(const Region& dst, const Region& src) {
  HMC_ASSIGN(Backend * backend, findBackend(dst.device));
  bool downwards = std::less<const char*>()(src.at(0), dst.at(0));
  auto distance = static_cast<size_t>(downwards ? dst.at(0) - src.at(0) : src.at(0) - dst.at(0));
  bool direct = distance >= kShortestStep;
  Bounce bounce(direct ? 0 : src.size);
  size_t step = direct ? distance : bounce.size();
  for (size_t done = 0; done < src.size; done += step) {
    size_t piece = std::min(step, src.size - done);
    size_t at = downwards ? src.size - done - piece : done;
    if (direct) {
      HMC_TRY(backend->copy(dst.slice(at, piece), src.slice(at, piece), nullptr));
    } else {
      HMC_TRY(copyThrough(bounce, *backend, dst.slice(at, piece), *backend, src.slice(at, piece)));
    }
  }
  return Status();
}

}  // namespace

Status copy(const Region& dst, const Region& src) {
  HMC_TRY(check(dst, src));
  if (src.size == 0) return Status();
  if (dst.device.isHost() && src.device.isHost()) return hostBackend().copy(dst, src, nullptr);
  if (!dst.device.isHost() && !src.device.isHost() && dst.device.kind != src.device.kind) {
    return copyBetweenVendors(dst, src);
  }
  HMC_ASSIGN(Backend * backend, findBackend(dst.device.isHost() ? src.device : dst.device));
  return backend->copy(dst, src, nullptr);
}

Status move(const Region& dst, const Region& src) {
  HMC_TRY(check(dst, src));
  if (dst.ptr == src.ptr && dst.device == src.device) return Status();
  if (dst.device.isHost() || !overlap(dst, src)) return copy(dst, src);
  return moveOnDevice(dst, src);
}

}  // namespace hmc
