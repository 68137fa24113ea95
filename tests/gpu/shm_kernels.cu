// Kernels of several processes on one GPU that use the device header: they read and write each
// other's slots, wait for each other's flags, and meet in barriers. tools/gpu_check.sh builds and
// runs it.
//
// The processes take turns on the GPU: a kernel that waits for one of another process goes on
// after the GPU has switched to that one and back, some milliseconds later.

#include <arpa/inet.h>
#include <smem_shm.h>
#include <smem_shm_aicore_base_api.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr uint64_t kSlot = uint64_t{8} << 20;
constexpr uint64_t kCount = 100003;  // ints of one rank in everyone's slot
// Places in every slot.
constexpr uint64_t kFlags = uint64_t{4} << 20;
constexpr uint64_t kCounters = kFlags + 4096;
constexpr uint64_t kWords = kFlags + 8192;
constexpr uint64_t kRows = kFlags + 16384;

using Context = smem_shm_device_context_t;

struct Record {
  uint32_t rank;
  uint32_t ranks;
  uint64_t size;
  uint32_t contextSize;
  char context[64];
};

template <class T>
__device__ T* at(const Context& all, uint64_t offset) {
  return reinterpret_cast<T*>(static_cast<char*>(all.base) + offset);
}
template <class T>
__device__ T* own(const Context& all, uint64_t offset) {
  return smem_shm_ptr(all, at<T>(all, offset), all.rank);
}

__host__ __device__ int value(uint32_t rank, uint64_t i) {
  return static_cast<int>(rank * 1000003 + i * 7);
}

__device__ void expect(bool right, uint32_t* wrong) {
  if (!right) atomicAdd(wrong, 1U);
}

__global__ void readRecord(uint32_t id, Record* record) {
  record->rank = smem_shm_get_global_rank(id);
  record->ranks = smem_shm_get_global_rank_size(id);
  record->size = smem_shm_get_symmetric_size(id);
  record->contextSize = smem_shm_get_extra_context_size(id);
  const auto* const context = static_cast<const char*>(smem_shm_get_extra_context_addr(id));
  for (uint32_t i = 0; context && i < record->contextSize && i < sizeof(record->context); ++i)
    record->context[i] = context[i];
}

// Everyone puts into everyone's slot and sets a flag there.
__global__ void putAndFlag(Context all, int* local, uint32_t* wrong) {
  const uint32_t rank = smem_shm_get_global_rank(all);
  const uint32_t ranks = smem_shm_get_global_rank_size(all);
  for (uint64_t i = threadIdx.x; i < kCount; i += blockDim.x) local[i] = value(rank, i);
  __syncthreads();
  for (uint32_t peer = 0; peer < ranks; ++peer) {
    int* const place = at<int>(all, rank * kCount * sizeof(int));
    expect(smem_shm_put(all, place, local, peer, kCount, smem_shm_block()) == SMEM_OK, wrong);
    if (threadIdx.x == 0)
      smem_shm_set_flag(smem_shm_ptr(all, at<int64_t>(all, kFlags) + rank, peer), 1);
  }
  if (threadIdx.x < ranks)
    expect(smem_shm_wait_flag(own<int64_t>(all, kFlags) + threadIdx.x, 1) == SMEM_OK, wrong);
  __syncthreads();
  const int* const here = own<int>(all, 0);
  for (uint64_t i = threadIdx.x; i < ranks * kCount; i += blockDim.x)
    expect(here[i] == value(static_cast<uint32_t>(i / kCount), i % kCount), wrong);
}

// What the others have in their slots, by pointers and by get, in all scopes.
__global__ void readOthers(Context all, int* local, uint32_t* wrong) {
  for (uint32_t peer = 0; peer < all.rankSize; ++peer) {
    const int* const there = smem_shm_ptr(all, at<int>(all, 0), peer);
    for (uint64_t i = threadIdx.x; i < kCount; i += blockDim.x)
      expect(there[i] == value(0, i), wrong);
    // Three ints on: no 16 bytes are together.
    expect(
        smem_shm_get(all, at<int>(all, 12), local, peer, kCount - 3, smem_shm_block()) == SMEM_OK,
        wrong);
    for (uint64_t i = threadIdx.x; i < kCount - 3; i += blockDim.x)
      expect(local[i] == value(0, i + 3), wrong);
    __syncthreads();
    if (threadIdx.x < 32) {
      expect(smem_shm_get(all, at<int>(all, 0), local, peer, 1001, smem_shm_warp()) == SMEM_OK,
             wrong);
      expect(local[1000 - threadIdx.x] == value(0, 1000 - threadIdx.x), wrong);
    }
    if (threadIdx.x == 0) {
      expect(smem_shm_get_int(at<int>(all, 4), local + 1, peer, 3) == SMEM_OK, wrong);
      expect(local[3] == value(0, 3), wrong);
      expect(smem_shm_get(all, at<int>(all, kSlot - 4), local, peer, 2) == SMEM_INVALID_PARAM,
             wrong);
    }
    __syncthreads();
  }
}

// Rows through shared memory, the next rank's and back.
__global__ void rows(Context all, uint32_t* wrong) {
  __shared__ char buffer[8 * 48];
  __shared__ char back[8 * 48];
  const smem_shm_copy_params out = {8, 48, 0, 16};
  const smem_shm_copy_params in = {8, 48, 16, 0};
  for (uint32_t i = threadIdx.x; i < sizeof(buffer); i += blockDim.x)
    buffer[i] = static_cast<char>(i + all.rank * 5 + 1);
  __syncthreads();
  char* const there = smem_shm_ptr(all, at<char>(all, kRows), (all.rank + 1) % all.rankSize);
  smem_shm_copy_ub2gm(there, buffer, out, smem_shm_block());
  smem_shm_copy_gm2ub(back, there, in, smem_shm_block());
  for (uint32_t i = threadIdx.x; i < sizeof(buffer); i += blockDim.x)
    expect(back[i] == buffer[i], wrong);
  smem_shm_copy_gm2gm(there + 1024, there, 8 * 64, smem_shm_block());
  for (uint32_t i = threadIdx.x; i < 8 * 64; i += blockDim.x)
    expect(there[1024 + i] == (i % 64 < 48 ? buffer[i / 64 * 48 + i % 64] : 0), wrong);
}

// Everyone counts in rank 0's slot.
__global__ void count(Context all) {
  auto* const narrow = at<uint32_t>(all, kCounters);
  auto* const wide = at<int64_t>(all, kCounters + 64);
  auto* const swapped = at<uint64_t>(all, kCounters + 128);
  smem_shm_atomic_add(narrow, 3);
  smem_shm_atomic_add(wide, -2);
  uint64_t seen = smem_shm_load(swapped);
  while (true) {
    const uint64_t before = smem_shm_atomic_cas(swapped, seen, seen + 1);
    if (before == seen) break;
    seen = before;
  }
}
__global__ void checkCount(Context all, uint32_t threads, uint32_t* wrong) {
  expect(*at<uint32_t>(all, kCounters) == 3 * threads * all.rankSize, wrong);
  expect(*at<int64_t>(all, kCounters + 64) == -2 * int64_t{threads} * all.rankSize, wrong);
  expect(*at<uint64_t>(all, kCounters + 128) == uint64_t{threads} * all.rankSize, wrong);
}

// In every round everyone writes its number to everyone, and must find everyone's.
__global__ void barriers(uint32_t id, uint32_t rounds, uint32_t* wrong) {
  const Context& all = *smem_shm_context(id);
  for (uint32_t round = 1; round <= rounds; ++round) {
    if (threadIdx.x < all.rankSize)
      *smem_shm_ptr(all, at<uint32_t>(all, kWords) + all.rank, threadIdx.x) = round;
    expect(smem_shm_barrier_all(id, SMEM_SHM_WAIT_NS, smem_shm_block()) == SMEM_OK, wrong);
    if (threadIdx.x < all.rankSize) expect(own<uint32_t>(all, kWords)[threadIdx.x] == round, wrong);
    expect(smem_shm_barrier_all(id, SMEM_SHM_WAIT_NS, smem_shm_block()) == SMEM_OK, wrong);
  }
}
__global__ void barrierOfOneThread(Context all, uint32_t* wrong) {
  expect(smem_shm_barrier_all(all) == SMEM_OK, wrong);
}

__global__ void waitInVain(Context all, uint32_t* wrong) {
  const uint64_t began = smem_shm_now();
  const int64_t* const flag = own<int64_t>(all, kFlags + 2048);
  expect(smem_shm_wait_flag(flag, 1, 20000000) == SMEM_TIMEOUT, wrong);
  const uint64_t took = smem_shm_now() - began;
  expect(took >= 20000000 && took < 5000000000ULL, wrong);
  expect(smem_shm_ptr(all, &all.rank, 0) == nullptr, wrong);
  expect(smem_shm_get_global_rank(7) == UINT32_MAX, wrong);
  expect(smem_shm_put_int(at<int>(all, 0), nullptr, 0, 1, 7) == SMEM_OBJECT_NOT_EXISTS, wrong);
}

void check(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "%s: %s; %s\n", what, smem_get_last_err_msg(),
               cudaGetErrorString(cudaPeekAtLastError()));
  std::exit(1);
}

// Memory of this process on the GPU.
template <class T>
T* onDevice(size_t count) {
  void* made = nullptr;
  check(cudaMalloc(&made, count * sizeof(T)) == cudaSuccess, "cudaMalloc");
  check(cudaMemset(made, 0, count * sizeof(T)) == cudaSuccess, "cudaMemset");
  return static_cast<T*>(made);
}

class Rank {
 public:
  Rank(const char* url, uint32_t ranks, uint32_t rank) : ranks_(ranks), rank_(rank) {
    smem_shm_config_t config;
    check(smem_init(0) == 0, "smem_init");
    check(smem_shm_config_init(&config) == 0, "smem_shm_config_init");
    check(smem_shm_init(url, ranks, rank, 0, &config) == 0, "smem_shm_init");
    check(cudaSetDevice(0) == cudaSuccess, "cudaSetDevice");
    wrong_ = onDevice<uint32_t>(1);
    local_ = onDevice<int>(kCount);
    record_ = onDevice<Record>(1);
    for (uint32_t id : {0U, 5U}) create(id);
  }

  void run() {
    for (uint32_t id : {0U, 5U}) checkRecord(id);
    putAndFlag<<<1, 256>>>(all_[0], local_, wrong_);
    finish("putAndFlag");
    readOthers<<<1, 128>>>(all_[0], local_, wrong_);
    finish("readOthers");
    rows<<<1, 96>>>(all_[0], wrong_);
    finish("rows");
    count<<<16, 128>>>(all_[0]);
    finish("count");
    checkCount<<<1, 1>>>(all_[0], 16 * 128, wrong_);
    finish("checkCount");
    for (uint32_t id : {0U, 5U}) {
      barriers<<<1, 64>>>(id, 25, wrong_);
      finish("barriers");
    }
    barrierOfOneThread<<<1, 1>>>(all_[0], wrong_);
    finish("barrierOfOneThread");
    // Its words are host memory: a processor can be one of the ranks.
    if (rank_ == 0) check(smem_shm_barrier_all(all_[0]) == 0, "barrier on the processor");
    if (rank_ != 0) barrierOfOneThread<<<1, 1>>>(all_[0], wrong_);
    finish("a barrier of processor and GPU");
    waitInVain<<<1, 1>>>(all_[0], wrong_);
    finish("waitInVain");
  }

  void end() {
    for (smem_shm_t handle : handles_) check(smem_shm_destroy(handle, 0) == 0, "smem_shm_destroy");
    smem_uninit();
  }

 private:
  void create(uint32_t id) {
    void* base = nullptr;
    smem_shm_t handle = smem_shm_create(id, ranks_, rank_, kSlot, SMEMS_DATA_OP_MTE, 0, &base);
    check(handle != nullptr, "smem_shm_create");
    Context context;
    check(smem_shm_get_device_context(handle, &context, sizeof(context)) == 0, "context");
    check(context.device == 0, "the slots are not memory of a GPU");
    check(context.sync != nullptr && context.reach == nullptr, "not all slots are mapped");
    check(smem_shm_bind(handle) == 0, "smem_shm_bind");
    // After binding: kernels see what was set last.
    const std::string text = textOf(id);
    check(smem_shm_set_extra_context(handle, text.data(), uint32_t(text.size())) == 0, "set");
    handles_.push_back(handle);
    all_.push_back(context);
  }
  std::string textOf(uint32_t id) const {
    return "object " + std::to_string(id) + " of rank " + std::to_string(rank_);
  }

  void checkRecord(uint32_t id) {
    readRecord<<<1, 1>>>(id, record_);
    finish("readRecord");
    Record seen;
    check(cudaMemcpy(&seen, record_, sizeof(seen), cudaMemcpyDefault) == cudaSuccess, "cudaMemcpy");
    check(seen.rank == rank_ && seen.ranks == ranks_ && seen.size == kSlot, "a record is wrong");
    check(std::string(seen.context, seen.contextSize) == textOf(id), "a context is wrong");
  }

  // The step is over for all ranks, and was right here.
  void finish(const char* what) {
    check(cudaGetLastError() == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess, what);
    uint32_t wrong = 0;
    check(cudaMemcpy(&wrong, wrong_, sizeof(wrong), cudaMemcpyDefault) == cudaSuccess, what);
    if (wrong != 0) std::fprintf(stderr, "rank %u, %s: %u are wrong\n", rank_, what, wrong);
    check(wrong == 0, what);
    check(smem_shm_control_barrier(handles_[0]) == 0, what);
    if (rank_ == 0) std::printf("%s: right\n", what);
  }

  const uint32_t ranks_;
  const uint32_t rank_;
  std::vector<smem_shm_t> handles_;
  std::vector<Context> all_;
  uint32_t* wrong_ = nullptr;
  int* local_ = nullptr;
  Record* record_ = nullptr;
};

std::string freeUrl() {
  for (int port = 12000 + getpid() % 10000;; ++port) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    const bool free = bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
    close(listener);
    if (free) return "tcp://127.0.0.1:" + std::to_string(port);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  const std::string url = freeUrl();
  int failed = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      Rank one(url.c_str(), uint32_t(ranks), uint32_t(rank));
      one.run();
      one.end();
      std::exit(0);
    }
    failed += child < 0;
  }
  int status = 0;
  while (wait(&status) > 0) failed += !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  std::printf("%d ranks, %d failed\n", ranks, failed);
  return failed != 0;
}
