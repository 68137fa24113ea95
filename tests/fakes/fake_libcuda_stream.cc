// The fake driver's streams: threads that run copies a moment later than they were asked for.
#include <fcntl.h>
#include <sys/mman.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <thread>

#include "fakes/fake_libcuda_state.h"

namespace {
using Clock = std::chrono::steady_clock;
// A caller that does not wait for a copy sees old bytes.
constexpr std::chrono::microseconds kDelay{200};
// How often a stream looks at the word that it waits for.
constexpr std::chrono::microseconds kLook{20};
}  // namespace

// What is pushed runs in order on a thread of its own, at once when somebody waits for it. Nothing
// more runs once the context is broken. Safe from any thread.
struct CUstream_st {
  using Work = hmc::cuda::fake::Work;

  explicit CUstream_st(CUctx_st& of) : context(of) {}

  uint64_t push(Work work) {
    std::lock_guard lock(mutex);
    if (pushed == 0) std::thread([this] { run(); }).detach();
    entries.push_back({std::move(work), Clock::now() + kDelay});
    changed.notify_all();
    return ++pushed;
  }
  bool isIdle() {
    std::lock_guard lock(mutex);
    return done == pushed;
  }
  uint64_t last() {
    std::lock_guard lock(mutex);
    return pushed;
  }
  void waitFor(uint64_t number) {
    std::unique_lock lock(mutex);
    wanted = std::max(wanted, number);
    changed.notify_all();
    changed.wait(lock, [&] { return done >= number; });
  }
  // For entries that look at memory now and then.
  void pause() {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, kLook);
  }

  CUctx_st& context;

 private:
  struct Entry {
    Work work;
    Clock::time_point due;
  };

  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return !entries.empty(); });
      while (wanted <= done && Clock::now() < entries.front().due) {
        changed.wait_until(lock, entries.front().due);
      }
      Entry entry = std::move(entries.front());
      entries.pop_front();
      lock.unlock();
      if (context.failure.load() == hmc::cuda::kSuccess) {
        if (const hmc::cuda::CuResult failed = entry.work(context)) context.failure.store(failed);
      }
      lock.lock();
      ++done;
      changed.notify_all();
    }
  }

  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  std::deque<Entry> entries;
  uint64_t pushed = 0;
  uint64_t done = 0;
  uint64_t wanted = 0;  // entries that somebody waits for
};

namespace hmc::cuda {

namespace fake {

namespace {

CuStream addStream(CuContext context) {
  CuStream stream = new CUstream_st(*context);
  driver().streams.insert(stream);
  return stream;
}

// The stream behind a handle, which may be one of the current context's own.
CuResult streamOf(CuContext current, CuStream handle, CuStream& stream) {
  const auto number = reinterpret_cast<uintptr_t>(handle);
  if (number <= 2) {
    stream = number == 2 ? current->perThread : current->legacy;
    return kSuccess;
  }
  std::lock_guard lock(driver().mutex);
  if (driver().streams.count(handle) == 0) return kInvalidHandle;
  stream = handle;
  return kSuccess;
}

// As streamOf(), for calls that enqueue something.
CuResult enterStream(const char* function, CuStream handle, CuStream& stream) {
  CuContext context = nullptr;
  HMC_FAKE_CHECK(enter(function, context));
  HMC_FAKE_CHECK(streamOf(context, handle, stream));
  return &stream->context == context ? kSuccess : kInvalidHandle;
}

using Spans = std::vector<DriverState::Span>;

bool isDevice(CuPointer at) {
  auto range = rangeAround(driver(), at);
  return range != driver().ranges.end() && range->second.kind != AddressRange::Kind::managed;
}

bool isMapped(CuPointer at, size_t size) {
  const CuPointer first = at / kPage * kPage;
  std::vector<unsigned char> pages((at + size - first + kPage - 1) / kPage);
  return mincore(reinterpret_cast<void*>(first), at + size - first, pages.data()) == 0;  // NOLINT
}

// Where the bytes are, on a device or on the host. Empty when there is nothing at some of the
// addresses.
Spans bytesAt(CuPointer at, size_t size, const CUctx_st& context) {
  std::lock_guard lock(driver().mutex);
  if (isDevice(at)) return driver().spansOf(at, size, context.gpu.index);
  if (!isMapped(at, size)) return {};
  return {{reinterpret_cast<char*>(at), size, nullptr}};  // NOLINT
}

void clear(const DriverState::Span& span) {
  // Pages that nobody wrote to shall not become real memory.
  const size_t first = (kPage - reinterpret_cast<uintptr_t>(span.bytes) % kPage) % kPage;
  const size_t pages = span.size > first ? (span.size - first) / kPage * kPage : 0;
  const auto offset = span.bytes + first - span.memory->bytes;
  const int how = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  if (pages == 0 || fallocate(span.memory->fd, how, offset, static_cast<off_t>(pages)) != 0) {
    std::memset(span.bytes, 0, span.size);
    return;
  }
  std::memset(span.bytes, 0, first);
  std::memset(span.bytes + first + pages, 0, span.size - first - pages);
}

CuResult setNow(CuPointer at, unsigned char value, size_t size, const CUctx_st& context) {
  const Spans spans = bytesAt(at, size, context);
  if (spans.empty()) return kIllegalAddress;
  for (const DriverState::Span& span : spans) {
    if (value == 0 && span.memory) {
      clear(span);
    } else {
      std::memset(span.bytes, value, span.size);
    }
  }
  return kSuccess;
}

// May a copy of it run while the caller goes on?
bool isAsynchronous(CuPointer at, size_t size) {
  std::lock_guard lock(driver().mutex);
  return isDevice(at) || driver().isPinned(at, size);
}

uint32_t* wordAt(CuPointer at) {
  std::lock_guard lock(driver().mutex);
  const bool usable = at % sizeof(uint32_t) == 0 && driver().isPinned(at, sizeof(uint32_t));
  return usable ? reinterpret_cast<uint32_t*>(at) : nullptr;  // NOLINT
}

}  // namespace

CuResult copyNow(CuPointer dst, CuPointer src, size_t size, const CUctx_st& context) {
  const Spans to = bytesAt(dst, size, context);
  const Spans from = bytesAt(src, size, context);
  if (to.empty() || from.empty()) return kIllegalAddress;
  size_t into = 0;  // span, and the position in it
  size_t at = 0;
  for (const DriverState::Span& piece : from) {
    for (size_t copied = 0; copied < piece.size;) {
      const size_t some = std::min(piece.size - copied, to[into].size - at);
      std::memmove(to[into].bytes + at, piece.bytes + copied, some);
      copied += some;
      at += some;
      if (at < to[into].size) continue;
      ++into;
      at = 0;
    }
  }
  return kSuccess;
}

CuResult enqueue(const char* function, CuStream handle, Work work) {
  CuStream stream = nullptr;
  HMC_FAKE_CHECK(enterStream(function, handle, stream));
  stream->push(std::move(work));
  return kSuccess;
}

CuContext addContext(GpuState& gpu) {
  auto* made = new CUctx_st(gpu);
  made->legacy = addStream(made);
  made->perThread = addStream(made);
  driver().contexts.insert(made);
  return made;
}

CuResult synchronize(CuContext context) {
  std::vector<std::pair<CuStream, uint64_t>> streams;
  {
    std::lock_guard lock(driver().mutex);
    for (CuStream one : driver().streams) {
      if (&one->context == context) streams.emplace_back(one, one->last());
    }
  }
  for (auto& [stream, number] : streams) stream->waitFor(number);
  return context->failure.load();
}

}  // namespace fake

using namespace fake;  // NOLINT: what follows is the driver's interface

FAKE CuResult cuStreamCreateWithPriority(CuStream* stream, unsigned /*flags*/, int /*priority*/) {
  CuContext context = nullptr;
  HMC_FAKE_CHECK(enter(__func__, context));
  std::lock_guard lock(driver().mutex);
  *stream = addStream(context);
  return kSuccess;
}

FAKE CuResult cuStreamQuery(CuStream handle) {
  CuContext context = nullptr;
  HMC_FAKE_CHECK(enter(__func__, context));
  CuStream stream = nullptr;
  HMC_FAKE_CHECK(streamOf(context, handle, stream));
  HMC_FAKE_CHECK(stream->context.failure.load());
  return stream->isIdle() ? kSuccess : kNotReady;
}

FAKE CuResult cuStreamSynchronize(CuStream handle) {
  CuContext context = nullptr;
  HMC_FAKE_CHECK(enter(__func__, context));
  CuStream stream = nullptr;
  HMC_FAKE_CHECK(streamOf(context, handle, stream));
  stream->waitFor(stream->last());
  return stream->context.failure.load();
}

FAKE CuResult cuStreamGetCtx(CuStream handle, CuContext* context) {
  HMC_FAKE_CHECK(enter(__func__));
  // The default streams need a current context to belong to.
  if (reinterpret_cast<uintptr_t>(handle) <= 2) return enter(__func__, *context);
  CuStream stream = nullptr;
  HMC_FAKE_CHECK(streamOf(nullptr, handle, stream));
  *context = &stream->context;
  return kSuccess;
}

FAKE CuResult cuStreamWriteValue32_v2(CuStream handle, CuPointer at, uint32_t value,
                                      unsigned flags) {
  CuStream stream = nullptr;
  HMC_FAKE_CHECK(enterStream(__func__, handle, stream));
  uint32_t* word = wordAt(at);
  if (!word || flags != 0) return kInvalidValue;
  stream->push([word, value](const CUctx_st&) {
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
    return kSuccess;
  });
  return kSuccess;
}

FAKE CuResult cuStreamWaitValue32_v2(CuStream handle, CuPointer at, uint32_t value,
                                     unsigned flags) {
  CuStream stream = nullptr;
  HMC_FAKE_CHECK(enterStream(__func__, handle, stream));
  const uint32_t* word = wordAt(at);
  if (!word || flags != kWaitAtLeast) return kInvalidValue;
  stream->push([stream, word, value](const CUctx_st& context) {
    while (static_cast<int32_t>(__atomic_load_n(word, __ATOMIC_ACQUIRE) - value) < 0 &&
           context.failure.load() == kSuccess) {
      stream->pause();
    }
    return kSuccess;
  });
  return kSuccess;
}

FAKE CuResult cuMemcpyAsync(CuPointer dst, CuPointer src, size_t size, CuStream handle) {
  CuStream stream = nullptr;
  HMC_FAKE_CHECK(enterStream(__func__, handle, stream));
  if (size == 0) return kSuccess;
  if (dst == 0 || src == 0) return kInvalidValue;
  const bool waits = !isAsynchronous(dst, size) || !isAsynchronous(src, size);
  const uint64_t number =
      stream->push([=](const CUctx_st& context) { return copyNow(dst, src, size, context); });
  if (!waits) return kSuccess;
  stream->waitFor(number);
  return stream->context.failure.load();
}

FAKE CuResult cuMemsetD8Async(CuPointer at, unsigned char value, size_t size, CuStream handle) {
  if (at == 0) return kInvalidValue;
  if (size == 0) return kSuccess;
  return enqueue(__func__, handle,
                 [=](const CUctx_st& context) { return setNow(at, value, size, context); });
}

}  // namespace hmc::cuda
