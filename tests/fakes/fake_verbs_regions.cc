#include "fakes/fake_verbs_regions.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

namespace hmc::test {

namespace {

constexpr uint64_t kPage = 4096;

bool isReadable(void* address) {
  char byte = 0;
  iovec here{&byte, 1};
  iovec there{address, 1};
  return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1;
}

}  // namespace

FakeRegions::Window::~Window() {
  munmap(start, size);
}

ibv_mr* FakeRegions::keep(ibv_pd* pd, void* address, size_t length, int access,
                          std::unique_ptr<Window> window, char* bytes) {
  ++registering.registered;
  registering.lastAccess = access;
  auto region = std::make_unique<FakeRegion>();
  const uint32_t lkey = next_++;
  const uint32_t rkey = next_++;
  region->base = {pd->context, pd, address, length, 0, lkey, rkey};
  region->access = access;
  region->window = std::move(window);
  region->bytes = bytes;
  return &(regions_[rkey] = std::move(region))->base;
}

ibv_mr* FakeRegions::add(ibv_pd* pd, void* address, size_t length, int access) {
  const bool readOnly = registering.hostReadOnly && (access & IBV_ACCESS_LOCAL_WRITE);
  const bool unreachable = readOnly || !(registering.peerMemory || isReadable(address));
  errno = unreachable ? EFAULT : registering.hostError;
  if (errno != 0 && length != 1) return nullptr;
  return keep(pd, address, length, access, nullptr, static_cast<char*>(address));
}

ibv_mr* FakeRegions::addDmabuf(ibv_pd* pd, uint64_t offset, size_t length, uint64_t iova, int fd,
                               int access) {
  registering.lastDmabuf = {fd, offset, length};
  errno = registering.dmabufError;
  if (errno != 0) return nullptr;
  struct stat file {};
  const off_t begin = lseek(fd, 0, SEEK_CUR);
  if (begin < 0 || fstat(fd, &file) != 0) return nullptr;
  const uint64_t first = static_cast<uint64_t>(begin) + offset;
  // The kernel wants the address and the offset at the same place within their pages.
  if (offset % kPage != iova % kPage || first + length > static_cast<uint64_t>(file.st_size)) {
    errno = EINVAL;
    return nullptr;
  }
  const size_t inPage = first % kPage;
  void* mapped = mmap(nullptr, inPage + length, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                      static_cast<off_t>(first - inPage));
  if (mapped == MAP_FAILED) return nullptr;
  auto window = std::make_unique<Window>(static_cast<char*>(mapped), inPage + length);
  char* bytes = window->start + inPage;
  return keep(pd, reinterpret_cast<void*>(iova), length, access, std::move(window), bytes);
}

void FakeRegions::remove(ibv_mr* region) {
  ++registering.deregistered;
  regions_.erase(region->rkey);
}

char* FakeRegions::at(const FakeRegion& region, uint64_t address) {
  return region.bytes + (address - reinterpret_cast<uint64_t>(region.base.addr));
}

char* FakeRegions::ours(const ibv_sge& piece) {
  auto found = regions_.find(piece.lkey + 1);
  if (found == regions_.end()) return reinterpret_cast<char*>(piece.addr);
  if (found->second->window) registering.dmabufBytes += piece.length;
  return at(*found->second, piece.addr);
}

char* FakeRegions::theirs(const ibv_send_wr& request, uint32_t bytes) {
  auto found = regions_.find(request.wr.rdma.rkey);
  if (found == regions_.end()) return nullptr;
  const FakeRegion& region = *found->second;
  const auto start = reinterpret_cast<uint64_t>(region.base.addr);
  const uint64_t from = request.wr.rdma.remote_addr;
  const int need =
      request.opcode == IBV_WR_RDMA_READ ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
  if (from < start || from + bytes > start + region.base.length || (region.access & need) == 0)
    return nullptr;
  if (region.window) registering.dmabufBytes += bytes;
  return at(region, from);
}

}  // namespace hmc::test
