// The sum of a vector over all ranks, in shared memory: everyone adds up its part of all vectors
// and puts the sum into everyone's slot. allreduce() uses the device header alone, so that a kernel
// of CUDA can hold the same lines.
//
//   shm_allreduce tcp://127.0.0.1:7000 4

#include <smem_shm.h>
#include <smem_shm_device.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace {

constexpr uint64_t kSlot = uint64_t{4} << 20;
constexpr uint64_t kCount = 100000;

void check(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "%s: %s\n", what, smem_get_last_err_msg());
  std::exit(1);
}

// `input` and `sum` have the same place in every rank's slot.
int32_t allreduce(const smem_shm_device_context_t& all, const float* input, float* sum,
                  uint64_t count) {
  const uint32_t rank = smem_shm_get_global_rank(all);
  const uint32_t ranks = smem_shm_get_global_rank_size(all);
  const uint64_t first = count * rank / ranks;
  const uint64_t end = count * (rank + 1) / ranks;

  // Everyone's input is there.
  if (int32_t code = smem_shm_barrier_all(all)) return code;
  for (uint64_t i = first; i < end; ++i) sum[i] = 0;
  for (uint32_t peer = 0; peer < ranks; ++peer) {
    const float* theirs = smem_shm_ptr(all, input, peer);
    if (!theirs) return SMEM_OBJECT_NOT_EXISTS;
    for (uint64_t i = first; i < end; ++i) sum[i] += theirs[i];
  }
  for (uint32_t peer = 0; peer < ranks; ++peer) {
    if (peer == rank) continue;
    if (int32_t code = smem_shm_put(all, sum + first, sum + first, peer, end - first)) return code;
  }
  // Everyone's part of the sum is here, and nobody reads our input any more.
  return smem_shm_barrier_all(all);
}

int run(const char* url, uint32_t ranks, uint32_t rank) {
  smem_shm_config_t config;
  check(smem_init(0) == 0, "smem_init");
  check(smem_shm_config_init(&config) == 0, "smem_shm_config_init");
  check(smem_shm_init(url, ranks, rank, 0, &config) == 0, "smem_shm_init");
  void* base = nullptr;
  smem_shm_t memory = smem_shm_create(0, ranks, rank, kSlot, SMEMS_DATA_OP_MTE, 0, &base);
  check(memory != nullptr, "smem_shm_create");
  smem_shm_device_context_t all;
  check(smem_shm_get_device_context(memory, &all, sizeof(all)) == 0, "smem_shm_get_device_context");
  if (all.device >= 0) {
    std::printf("the slots are memory of a GPU: this example is for the processor\n");
    std::exit(0);
  }

  auto* const input = reinterpret_cast<float*>(static_cast<char*>(base) + rank * kSlot);
  float* const sum = input + kCount;
  for (int round = 1; round <= 5; ++round) {
    for (uint64_t i = 0; i < kCount; ++i)
      input[i] =
          static_cast<float>(rank + 1) * static_cast<float>(round) + static_cast<float>(i % 7);
    check(allreduce(all, input, sum, kCount) == 0, "allreduce");
    const auto n = static_cast<float>(ranks);
    for (uint64_t i = 0; i < kCount; ++i) {
      const float expected =
          n * (n + 1) / 2 * static_cast<float>(round) + n * static_cast<float>(i % 7);
      check(sum[i] == expected, "a sum is wrong");
    }
  }

  // Nobody takes its memory away while others need it.
  check(smem_shm_control_barrier(memory) == 0, "smem_shm_control_barrier");
  check(smem_shm_destroy(memory, 0) == 0, "smem_shm_destroy");
  smem_shm_uninit(0);
  smem_uninit();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: shm_allreduce tcp://IPv4:port RANKS\n");
    return 2;
  }
  const int ranks = std::atoi(argv[2]);
  int failed = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = fork();
    if (child == 0) std::exit(run(argv[1], uint32_t(ranks), uint32_t(rank)));
    failed += child < 0;
  }
  int status = 0;
  while (wait(&status) > 0) failed += !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  std::printf("%d ranks, %d failed\n", ranks, failed);
  return failed != 0;
}
