#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

// Copies within the host.
namespace hmc {

// From here on the destination is written with non-temporal stores where the processor has them;
// smaller copies stay in the cache.
inline constexpr size_t kStreamingThreshold = size_t{4} << 20;

// Pieces of something large: non-temporal stores from some KiB on. One thread at a time.
class StreamedCopies {
 public:
  void copy(void* dst, const void* src, size_t size);
  // Before whatever tells others that the bytes are there: the stores are not ordered with it.
  void finish();

 private:
  bool pending_ = false;
};

// One such piece, finished.
inline void streamHost(void* dst, const void* src, size_t size) {
  StreamedCopies one;
  one.copy(dst, src, size);
  one.finish();
}

// As copyHost() where the two may overlap.
void moveHost(void* dst, const void* src, size_t size);

namespace host_copy {

template <class Word>
inline void copyEnds(char* dst, const char* src, size_t size) {
  Word first;
  Word last;
  std::memcpy(&first, src, sizeof(Word));
  std::memcpy(&last, src + size - sizeof(Word), sizeof(Word));
  std::memcpy(dst, &first, sizeof(Word));
  std::memcpy(dst + size - sizeof(Word), &last, sizeof(Word));
}

#if defined(__x86_64__)
// The processor's own copy: what memcpy uses for these sizes too, without the overlapping stores
// that it puts around it for the sake of destinations that are not aligned; those cost more than
// they gain when other instructions follow at once, and 4 KiB take half again as long.
inline constexpr size_t kStringCopyFrom = 2048;
// From here on, where the second-level cache may be full, memcpy knows what this processor is best
// at: on a Zen 3 that is not its own copy.
inline constexpr size_t kStringCopyBelow = size_t{256} << 10;
extern const bool kHasFastStringCopy;

// Where the destination begins a few bytes after the source, pages left aside, a Zen 3 copies byte
// by byte: 64 KiB take 21 us instead of 1.4. memcpy does not know that, and uses it for whatever
// fits into the second-level cache. Others than AMD's are not known for it.
inline constexpr size_t kLinesBelow = size_t{1} << 20;
extern const bool kStringCopyMayCrawl;
inline bool stringCopyCrawls(const char* dst, const char* src) {
  constexpr uintptr_t kPageSize = 4096;
  constexpr uintptr_t kClose = 32;
  const auto distance =
      (reinterpret_cast<uintptr_t>(dst) - reinterpret_cast<uintptr_t>(src)) % kPageSize;
  return distance - 1 < kClose - 1;
}
// At least kStringCopyFrom bytes.
void copyLines(char* dst, const char* src, size_t size);

// False, and nothing is done, where memcpy is the best choice.
inline bool copyBetter(char* dst, const char* src, size_t size) {
  if (size < kStringCopyFrom) return false;
  if (size < kLinesBelow && stringCopyCrawls(dst, src) && kStringCopyMayCrawl) {
    copyLines(dst, src, size);
    return true;
  }
  if (size >= kStringCopyBelow || reinterpret_cast<uintptr_t>(dst) % 64 != 0 || !kHasFastStringCopy)
    return false;
  asm volatile("rep movsb" : "+D"(dst), "+S"(src), "+c"(size) : : "memory");
  return true;
}
#else
inline bool copyBetter(char*, const char*, size_t) {
  return false;
}
#endif

// Bytes that stay in the cache.
inline void copyCached(char* dst, const char* src, size_t size) {
  if (!copyBetter(dst, src, size)) std::memcpy(dst, src, size);
}

// Non-temporal stores, one loop per width that this processor has, widest first. Takes a
// 64-byte-aligned destination and whole groups; the fence is left to the caller.
struct StreamingLoop {
  const char* name;
  void (*copy)(char* dst, const char* src, size_t groups);
};
inline constexpr size_t kStreamingGroup = size_t{16} << 10;
std::vector<StreamingLoop> streamingLoops();

}  // namespace host_copy

// No overlap. Without a call for the sizes of a flag or a counter, which arrive in one piece: a
// reader of an aligned word never sees half of it.
inline void copyHost(void* to, const void* from, size_t size) {
  auto* dst = static_cast<char*>(to);
  auto* src = static_cast<const char*>(from);
  if (size > 16) {
    size < kStreamingThreshold ? host_copy::copyCached(dst, src, size) : streamHost(dst, src, size);
  } else if (size >= 8) {
    host_copy::copyEnds<uint64_t>(dst, src, size);
  } else if (size >= 4) {
    host_copy::copyEnds<uint32_t>(dst, src, size);
  } else {
    for (size_t i = 0; i < size; ++i) dst[i] = src[i];
  }
}

// Asks memory for the beginning of what copyHost() copies next, so that it answers while the copy
// before that one goes on: blocks of a few KiB in no order cost a fifth less.
inline void prefetchCopy(const char* dst, const char* src, size_t size) {
  constexpr size_t kLine = 64;
  constexpr size_t kMost = 8 * kLine;  // from there on the processor prefetches by itself
  for (size_t at = 0; at < size && at < kMost; at += kLine) {
    __builtin_prefetch(src + at, 0);
    __builtin_prefetch(dst + at, 1);
  }
}

// Copies one piece after the other. Pieces whose destinations follow each other are something large
// that came in parts: from kStreamingThreshold on they are streamed, as copyHost() would have
// streamed the whole. One thread at a time.
class RowCopy {
 public:
  void copy(void* dst, const void* src, size_t size) {
    length_ = (dst == end_ ? length_ : 0) + size;
    end_ = static_cast<char*>(dst) + size;
    length_ < kStreamingThreshold ? copyHost(dst, src, size) : streamHost(dst, src, size);
  }

 private:
  const void* end_ = nullptr;  // of the last piece
  size_t length_ = 0;          // of the row that it belongs to
};

}  // namespace hmc
