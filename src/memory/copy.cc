#include "memory/copy.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <thread>

#include "base/error.h"
#include "base/futex.h"
#include "memory/backends.h"
#include "memory/host_copy.h"
#include "memory/staging_buffer.h"

namespace hmc {

namespace {

// Overlapping pieces closer than this go through the host: copies on the device would be too many.
constexpr size_t kShortestStep = size_t{64} << 10;
constexpr int kSpins = 200;
constexpr int kYields = 200;
constexpr std::chrono::microseconds kPollEvery{50};

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

const Device& deviceAmong(const Region& dst, const Region& src) {
  return dst.device.isHost() ? src.device : dst.device;
}

bool betweenVendors(const Region& dst, const Region& src) {
  return !dst.device.isHost() && !src.device.isHost() && dst.device.kind != src.device.kind;
}

// Copies on one queue of a device, one after the other, and the event that comes after them.
class QueuedCopies {
 public:
  static Result<QueuedCopies> on(Backend& backend, const Device& device) {
    HMC_ASSIGN(auto event, backend.event(device.index));
    return QueuedCopies(backend, device, std::move(event));
  }
  Status add(const Region& dst, const Region& src) {
    const CopyPiece piece{dst.ptr, src.ptr, src.size};
    return backend_->copy({dst.device, src.device, {&piece, 1}}, queue_);
  }
  Status record() { return event_->record(queue_); }
  // `sofar` is what add() said. Waits after an error, too: the memory is the caller's again only
  // when nothing runs any more.
  Status finish(const Status& sofar, Deadline deadline) {
    Status status = record();
    if (status.ok()) status = waitFor(*event_, deadline);
    return sofar.ok() ? status : sofar;
  }
  std::unique_ptr<DeviceEvent> takeEvent() { return std::move(event_); }

 private:
  QueuedCopies(Backend& backend, const Device& device, std::unique_ptr<DeviceEvent> event)
      : backend_(&backend), queue_{device}, event_(std::move(event)) {}

  Backend* backend_;
  DeviceQueue queue_;
  std::unique_ptr<DeviceEvent> event_;
};

Status copyBy(Backend& backend, const Region& dst, const Region& src, Deadline deadline) {
  HMC_ASSIGN(auto copies, QueuedCopies::on(backend, deviceAmong(dst, src)));
  return copies.finish(copies.add(dst, src), deadline);
}

// A copy that goes through the host, piece by piece, of memories that may overlap.
class Bounce {
 public:
  static Result<Bounce> between(const Region& dst, const Region& src, Deadline deadline) {
    HMC_ASSIGN(Backend * to, findBackend(dst.device));
    HMC_ASSIGN(Backend * from, findBackend(src.device));
    HMC_ASSIGN(auto buffer, BorrowedBuffer::take());
    buffer->pinFor(*to);
    buffer->pinFor(*from);
    return Bounce(*to, *from, std::move(buffer), deadline);
  }

  // In the order in which no piece overwrites what is still to be read.
  Status run(const Region& dst, const Region& src, bool downwards) {
    for (size_t done = 0; done < src.size;) {
      const size_t piece = std::min(buffer_->size(), src.size - done);
      const size_t at = downwards ? src.size - done - piece : done;
      Status status = copyPiece(dst.slice(at, piece), src.slice(at, piece));
      if (!status.ok()) {
        buffer_.abandon();
        return status;
      }
      done += piece;
    }
    return Status();
  }

 private:
  Bounce(Backend& to, Backend& from, BorrowedBuffer buffer, Deadline deadline)
      : to_(to), from_(from), buffer_(std::move(buffer)), deadline_(deadline) {}

  Status copyPiece(const Region& dst, const Region& src) {
    const Region middle = buffer_->region(src.size);
    HMC_TRY(copyBy(from_, middle, src, deadline_));
    return copyBy(to_, dst, middle, deadline_);
  }

  Backend& to_;
  Backend& from_;
  BorrowedBuffer buffer_;
  const Deadline deadline_;
};

bool overlap(const Region& dst, const Region& src) {
  std::less<const char*> before;
  return dst.device.kind == src.device.kind && before(dst.at(0), src.at(src.size)) &&
         before(src.at(0), dst.at(src.size));
}

// Upwards when the destination lies below the source, downwards when above. Pieces no longer than
// the distance do not overlap; where that is too short, each is read to the host before it is
// written.
Status moveOnDevice(const Region& dst, const Region& src, Deadline deadline) {
  const bool downwards = std::less<const char*>()(src.at(0), dst.at(0));
  const auto step = static_cast<size_t>(std::abs(dst.at(0) - src.at(0)));
  if (step < kShortestStep) {
    HMC_ASSIGN(auto bounce, Bounce::between(dst, src, deadline));
    return bounce.run(dst, src, downwards);
  }
  HMC_ASSIGN(Backend * backend, findBackend(dst.device));
  HMC_ASSIGN(auto copies, QueuedCopies::on(*backend, dst.device));
  Status status;
  for (size_t done = 0; done < src.size && status.ok(); done += step) {
    const size_t piece = std::min(step, src.size - done);
    const size_t at = downwards ? src.size - done - piece : done;
    status = copies.add(dst.slice(at, piece), src.slice(at, piece));
  }
  return copies.finish(status, deadline);
}

}  // namespace

Status waitFor(DeviceEvent& event, Deadline deadline) {
  const std::atomic<uint32_t> never{0};
  for (int polls = 0;; ++polls) {
    HMC_ASSIGN(const bool passed, event.passed());
    if (passed) return Status();
    if (polls < kSpins) continue;
    if (deadline.passed()) {
      return error(Code::deadlineExceeded, "a device did not finish its copies in time");
    }
    // Nothing wakes us: vendors' calls that would, block without a deadline.
    if (polls < kSpins + kYields) {
      std::this_thread::yield();
    } else {
      futexWait(never, 0, earlier(deadline, kPollEvery));
    }
  }
}

Status copy(const Region& dst, const Region& src, std::chrono::milliseconds timeout) {
  HMC_TRY(check(dst, src));
  if (src.size == 0) return Status();
  if (dst.device.isHost() && src.device.isHost()) {
    moveHost(dst.ptr, src.ptr, src.size);
    return Status();
  }
  if (betweenVendors(dst, src)) {
    HMC_ASSIGN(auto bounce, Bounce::between(dst, src, timeout));
    return bounce.run(dst, src, /*downwards=*/false);
  }
  HMC_ASSIGN(Backend * backend, findBackend(deviceAmong(dst, src)));
  return copyBy(*backend, dst, src, timeout);
}

Status move(const Region& dst, const Region& src, std::chrono::milliseconds timeout) {
  HMC_TRY(check(dst, src));
  if (dst.ptr == src.ptr && dst.device == src.device) return Status();
  if (dst.device.isHost() || !overlap(dst, src)) return copy(dst, src, timeout);
  return moveOnDevice(dst, src, timeout);
}

Result<std::unique_ptr<DeviceEvent>> startCopy(const Region& dst, const Region& src) {
  HMC_TRY(check(dst, src));
  if (betweenVendors(dst, src)) {
    return error(Code::unsupported, "no queue copies from {} to {} by itself",
                 src.device.toString(), dst.device.toString());
  }
  const Device& device = deviceAmong(dst, src);
  HMC_ASSIGN(Backend * backend, findBackend(device));
  HMC_ASSIGN(auto copies, QueuedCopies::on(*backend, device));
  HMC_TRY(copies.add(dst, src));
  HMC_TRY(copies.record());
  return copies.takeEvent();
}

}  // namespace hmc
