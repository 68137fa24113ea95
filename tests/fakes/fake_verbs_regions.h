#pragma once

#include <infiniband/verbs.h>

#include <map>
#include <memory>

#include "fakes/fake_libibverbs.h"

namespace hmc::test {

// The memory that tests/fakes/fake_libibverbs.cc has registered. Guarded by its mutex.
class FakeRegions {
 public:
  // These answer null and set errno.
  ibv_mr* add(ibv_pd* pd, void* address, size_t length, int access);
  // Reads and writes what the descriptor holds, whatever lies at `iova`. The position of the
  // descriptor says where in its file the dma-buf begins.
  ibv_mr* addDmabuf(ibv_pd* pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access);
  void remove(ibv_mr* region);

  // Where our own bytes of a request lie.
  char* ours(const ibv_sge& piece);
  // The same of the peer's; null when the key does not allow it.
  char* theirs(const ibv_send_wr& request, uint32_t bytes);

  FakeRegistering registering;

 private:
  // Bytes that were mapped from a dma-buf.
  struct Window {
    Window(char* at, size_t bytes) : start(at), size(bytes) {}
    ~Window();
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;
    char* const start;
    const size_t size;
  };
  struct FakeRegion {
    ibv_mr base{};
    int access = 0;
    std::unique_ptr<Window> window;  // of a dma-buf
    char* bytes = nullptr;           // of base.addr
  };
  static char* at(const FakeRegion& region, uint64_t address);
  ibv_mr* keep(ibv_pd* pd, void* address, size_t length, int access, std::unique_ptr<Window> window,
               char* bytes);

  uint32_t next_ = 1000;
  std::map<uint32_t, std::unique_ptr<FakeRegion>> regions_;  // by rkey; the lkey is one less
};

}  // namespace hmc::test
