#include "memory/cpu/shared_memory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "memory/range_error.h"
#include "memory/region.h"

namespace hmc {

namespace {

// log2 of the size in the upper bits, as memfd_create(2) says; glibc has no name for it.
constexpr unsigned kOfHugePages = MFD_HUGETLB | (21u << 26);
// SEAL as well, so that a peer that has the descriptor cannot forbid others to write.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

uint64_t roundDown(uint64_t value, uint64_t unit) {
  return value / unit * unit;
}

uint64_t roundUp(uint64_t value, uint64_t unit) {
  return roundDown(value + unit - 1, unit);
}

uint64_t memoryAndSwap() {
  struct sysinfo info {};
  if (sysinfo(&info) != 0) return std::numeric_limits<int64_t>::max();
  return (uint64_t{info.totalram} + info.totalswap) * info.mem_unit;
}

// As the descriptor was opened: an owner gives one for reading to who may only read.
void* mapShared(int fd, uint64_t offset, size_t size, void* at, int flags) {
  const bool writable = (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR;
  void* ptr = mmap(at, size, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED | flags, fd,
                   static_cast<off_t>(offset));
  return ptr == MAP_FAILED ? nullptr : ptr;
}

// An address where that many bytes were free a moment ago, as far into a huge page as the offset.
void* alignedPlace(uint64_t offset, size_t size) {
  const size_t length = size + kHugePage;
  void* whole =
      mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (whole == MAP_FAILED) return nullptr;
  munmap(whole, length);
  auto* first = static_cast<char*>(whole);
  return first + (offset - reinterpret_cast<uintptr_t>(first)) % kHugePage;
}

// The same where huge pages of the file can be mapped as such: their places in the file and in the
// address space must fit. That place is a wish. Nothing is held there and replaced: MAP_FIXED can
// fail when it has already unmapped what was there, and others then map into the hole.
void* mapAligned(int fd, uint64_t offset, size_t size) {
  return mapShared(fd, offset, size, size < kHugePage ? nullptr : alignedPlace(offset, size), 0);
}

// The whole pages of a file around some bytes of it.
struct Pages {
  uint64_t first;
  size_t size;
  size_t before;  // bytes in front of those that were asked for
};

Result<Pages> pagesAround(int fd, uint64_t offset, uint64_t size) {
  if (size == 0) return error(Code::invalidArgument, "a share of 0 bytes cannot be mapped");
  int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0) return errnoStatus("the shared descriptor is not sealed memory");
  if ((seals & F_SEAL_SHRINK) == 0) {
    return error(Code::permissionDenied,
                 "the shared descriptor is refused: its owner can still shrink it");
  }
  struct stat info {};
  if (fstat(fd, &info) != 0) return errnoStatus("look at the shared descriptor");
  auto capacity = static_cast<uint64_t>(info.st_size);
  if (!fits(offset, size, capacity)) {
    return rangeError("mapping", size, "file ", offset, capacity);
  }
  // The block of a file of huge pages is one of them, and its mappings start and end at such.
  auto unit = static_cast<uint64_t>(std::max<long>(info.st_blksize, sysconf(_SC_PAGESIZE)));
  uint64_t first = roundDown(offset, unit);
  uint64_t last = std::max(std::min(roundUp(offset + size, unit), capacity), offset + size);
  return Pages{first, last - first, offset - first};
}

// errno says why when it fails. `what` is the step that failed.
bool makeFile(unsigned flags, size_t size, SharedMemory& made, const char*& what) {
  what = "memfd_create";
  made.fd = Fd(memfd_create("hmc", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags));
  if (!made.fd) return false;
  what = "ftruncate";
  if (ftruncate(made.fd.get(), static_cast<off_t>(size)) != 0) return false;
  what = "mmap";
  void* ptr = mapAligned(made.fd.get(), 0, size);
  if (!ptr) return false;
  made.mapping = Mapping(ptr, size);
  what = "seal";
  return fcntl(made.fd.get(), F_ADD_SEALS, kSeals) == 0;
}

// A mapping of huge pages only reserves them, and a control group may still refuse one when it is
// touched, which would kill us: they are all taken here, or not at all.
bool tryHugePages(size_t size, SharedMemory& made) {
  if (size % kHugePage != 0) return false;
  SharedMemory attempt;
  const char* what = nullptr;
  if (!makeFile(kOfHugePages, size, attempt, what)) return false;
  if (fallocate(attempt.fd.get(), 0, 0, static_cast<off_t>(size)) != 0) return false;
  made = std::move(attempt);
  return true;
}

}  // namespace

Result<SharedMemory> createSharedMemory(size_t size) {
  if (size == 0) {
    return error(Code::invalidArgument,
                 "0 bytes of host memory were asked for; ask for at least 1");
  }
  // Pages are taken when touched, so the kernel would grant almost any size and kill us later.
  uint64_t have = memoryAndSwap();
  if (size > have) {
    return error(Code::exhausted,
                 "{} bytes of host memory were asked for; this machine has {} of memory and swap",
                 size, have);
  }
  SharedMemory made;
  if (tryHugePages(size, made)) return made;
  auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const char* what = nullptr;
  if (!makeFile(0, roundUp(size, page), made, what)) {
    return errnoStatus(fmt::format("{} for {} bytes of host memory", what, size));
  }
  // A hint: where the administrator allows it, ordinary pages are merged into huge ones.
  madvise(made.mapping.get(), made.mapping.size(), MADV_HUGEPAGE);
  return made;
}

Result<SharedMemory> adoptSharedMemory(int fd, size_t size) {
  SharedMemory made;
  made.fd = Fd(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!made.fd) return errnoStatus(fmt::format("use descriptor {} as memory", fd));
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0) return errnoStatus(fmt::format("descriptor {} is no memory file", fd));
  if ((seals & F_SEAL_SHRINK) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
    return error(Code::permissionDenied,
                 "descriptor {} cannot be used as memory: its file can shrink, which would kill "
                 "whoever has mapped it, and cannot be sealed against that ({}); make it with "
                 "memfd_create() and MFD_ALLOW_SEALING",
                 fd, std::strerror(errno));
  }
  HMC_ASSIGN(Window window, mapWindow(fd, 0, size));
  made.mapping = std::move(window.mapping);
  return made;
}

Result<Window> mapWindow(int fd, uint64_t offset, uint64_t size, void* at,
                         Reservations* reservations) {
  HMC_ASSIGN(Pages pages, pagesAround(fd, offset, size));
  Mapping mapping;
  if (at) {
    if (pages.before != 0) {
      return error(
          Code::invalidArgument,
          "shared bytes at offset {} cannot begin at {}: the offset is not at a page's start",
          offset, at);
    }
    HMC_ASSIGN(mapping, reservations->take(at, pages.size));
  }
  void* ptr = at ? mapShared(fd, pages.first, pages.size, at, MAP_FIXED)
                 : mapAligned(fd, pages.first, pages.size);
  if (!ptr) return errnoStatus(fmt::format("map {} shared bytes at offset {}", size, offset));
  if (!at) mapping = Mapping(ptr, pages.size);
  return Window{std::move(mapping), static_cast<char*>(ptr) + pages.before};
}

}  // namespace hmc
