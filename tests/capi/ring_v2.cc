// The ring of examples/c/bm_ring.c with the later interface, in C++: host and device slots in one
// pool, a batch that goes in several directions, and asynchronous copies.

#define SMEM_API_LEVEL 2
#include <smem_bm.h>
#include <smem_shm.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr uint64_t kSlot = uint64_t{4} << 20;
constexpr size_t kPart = 5000;

void check(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "%s: %s\n", what, smem_get_last_err_msg());
  std::exit(1);
}

char* slotOf(smem_bm_t pool, smem_bm_mem_type type, uint32_t rank) {
  return static_cast<char*>(smem_bm_ptr_by_mem_type(pool, type, static_cast<uint16_t>(rank)));
}

// 12: upstream took the direction of a whole batch from its first element.
void writeBothSlots(smem_bm_t pool, uint32_t next, std::vector<char>& sent) {
  void* sources[] = {sent.data(), sent.data()};
  void* targets[] = {slotOf(pool, SMEM_MEM_TYPE_DEVICE, next),
                     slotOf(pool, SMEM_MEM_TYPE_HOST, next)};
  const uint64_t sizes[] = {kPart, kPart - 1};
  smem_batch_copy_params batch = {sources, targets, sizes, 2};
  check(smem_bm_copy_batch(pool, &batch, SMEMB_COPY_AUTO, ASYNC_COPY_FLAG) == 0, "batch");
  check(smem_bm_wait(pool) == 0, "wait");
}

// 10: upstream never carried out L2GH and GH2L.
void readBothSlots(smem_bm_t pool, uint32_t rank, const std::vector<char>& expected) {
  std::vector<char> got(kPart);
  smem_copy_params device = {slotOf(pool, SMEM_MEM_TYPE_LOCAL_DEVICE, rank), got.data(), kPart};
  check(smem_bm_copy(pool, &device, SMEMB_COPY_G2H, 0) == 0, "read the device slot");
  check(got == expected, "the device slot has other bytes");
  got.assign(kPart, 0);
  smem_copy_params host = {slotOf(pool, SMEM_MEM_TYPE_LOCAL_HOST, rank), got.data(), kPart - 1};
  check(smem_bm_copy(pool, &host, SMEMB_COPY_GH2L, 0) == 0, "read the host slot");
  check(std::memcmp(got.data(), expected.data(), kPart - 1) == 0, "the host slot has other bytes");
  char* const between = slotOf(pool, SMEM_MEM_TYPE_LOCAL_HOST, rank) + kSlot / 2;
  smem_copy_params down = {slotOf(pool, SMEM_MEM_TYPE_LOCAL_DEVICE, rank), between, kPart};
  check(smem_bm_copy(pool, &down, SMEMB_COPY_L2GH, 0) == 0, "from device to host slot");
  smem_copy_params back = {between, got.data(), kPart};
  check(smem_bm_copy(pool, &back, SMEMB_COPY_GH2H, 0) == 0, "read the host slot again");
  check(got == expected, "the copy in the host slot has other bytes");
}

int run(const char* url, uint32_t ranks) {
  smem_bm_config_t config;
  check(smem_init(0) == 0, "smem_init");
  check(smem_bm_config_init(&config) == 0, "smem_bm_config_init");
  check(smem_bm_init(url, ranks, 0, &config) == 0, "smem_bm_init");
  const uint32_t rank = smem_bm_get_rank_id();
  smem_bm_create_option_t option = {};
  option.maxDramSize = option.maxHbmSize = kSlot;
  option.localDRAMSize = option.localHBMSize = kSlot;
  const smem_bm_t pool = smem_bm_create2(7, &option);
  check(pool != nullptr, "smem_bm_create2");
  check(smem_bm_join(pool, 0) == 0, "smem_bm_join");

  smem_shm_config_t shm;
  void* base = nullptr;
  check(smem_shm_config_init(&shm) == 0, "smem_shm_config_init");
  shm.startConfigStore = false;
  check(smem_shm_init(url, ranks, rank, 0, &shm) == 0, "smem_shm_init");
  const smem_shm_t all =
      smem_shm_create(3, ranks, rank, uint64_t{2} << 20, SMEMS_DATA_OP_MTE, 0, &base);
  check(all != nullptr, "smem_shm_create");

  std::vector<char> sent(kPart, static_cast<char>('a' + rank));
  check(smem_bm_register_user_mem(pool, reinterpret_cast<uint64_t>(sent.data()), kPart) == 0,
        "smem_bm_register_user_mem");
  const uint32_t next = (rank + 1) % ranks;
  writeBothSlots(pool, next, sent);
  check(smem_shm_control_barrier(all) == 0, "barrier");
  const auto previous = static_cast<char>('a' + (rank + ranks - 1) % ranks);
  readBothSlots(pool, rank, std::vector<char>(kPart, previous));
  check(
      smem_bm_get_rank_id_by_gva(pool, slotOf(pool, SMEM_MEM_TYPE_HOST, next) + kSlot - 1) == next,
      "the last byte of a slot is its rank's");
  check(smem_shm_control_barrier(all) == 0, "barrier");
  smem_uninit();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int ranks = std::atoi(argv[2]);
  int failed = 0;
  for (int i = 0; i < ranks; ++i) {
    if (fork() == 0) std::exit(run(argv[1], static_cast<uint32_t>(ranks)));
  }
  for (int status = 0; wait(&status) > 0;)
    failed += WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
  std::printf("%d ranks, %d failed\n", ranks, failed);
  return failed != 0 ? 1 : 0;
}
