// Copies a list of blocks: between places on the device, and between the device and host memory
// that the driver has pinned. copy_blocks.ptx is made of this by clang, without a toolkit
// (tools/checks/kernels.py); nvcc takes it as well.
#ifndef __CUDACC__
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
typedef unsigned Quad __attribute__((ext_vector_type(4)));
#define HMC_THREAD __nvvm_read_ptx_sreg_tid_x()
#define HMC_THREADS __nvvm_read_ptx_sreg_ntid_x()
#define HMC_BLOCK __nvvm_read_ptx_sreg_ctaid_x()
#define HMC_BLOCKS __nvvm_read_ptx_sreg_nctaid_x()
#else
typedef uint4 Quad;
#define HMC_THREAD threadIdx.x
#define HMC_THREADS blockDim.x
#define HMC_BLOCK blockIdx.x
#define HMC_BLOCKS gridDim.x
#endif

typedef unsigned long long u64;

struct Block {  // hmc::Block
  u64 local;
  u64 remote;
  u64 size;
};
struct Blocks {
  Block list[128];
};

// Where the blocks' offsets count from.
struct Sides {
  char* dst;
  const char* src;
  unsigned toRemote;  // dst is what the blocks call remote, else what they call local
};

// Every byte is read and written once: nothing is gained by keeping it in the cache.
static __device__ Quad load(const Quad* from) {
  Quad value;
  asm volatile("ld.global.cs.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(from));
  return value;
}
static __device__ void store(Quad* to, Quad value) {
  asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};"
               :
               : "l"(to), "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w)
               : "memory");
}
template <class Word>
static __device__ Word load(const Word* from) {
  return *from;
}
template <class Word>
static __device__ void store(Word* to, Word value) {
  *to = value;
}

// `width` threads do this together; `rank` is which one of them we are. Four loads are under way
// before the first of them is needed.
template <class Word>
static __device__ void copyWords(Word* dst, const Word* src, u64 count, unsigned rank,
                                 unsigned width) {
  u64 i = rank;
  for (; i + 3 * u64(width) < count; i += 4 * u64(width)) {
    const Word a = load(src + i);
    const Word b = load(src + i + width);
    const Word c = load(src + i + 2 * width);
    const Word d = load(src + i + 3 * width);
    store(dst + i, a);
    store(dst + i + width, b);
    store(dst + i + 2 * width, c);
    store(dst + i + 3 * width, d);
  }
  for (; i < count; i += width) store(dst + i, load(src + i));
}

static __device__ void copyBlock(char* dst, const char* src, u64 size, unsigned rank,
                                 unsigned width) {
  const u64 difference = u64(dst) ^ u64(src);
  if (difference % 4 != 0) return copyWords(dst, src, size, rank, width);
  // Single bytes up to the first whole word, whole words, single bytes.
  const u64 unit = difference % 16 == 0 ? 16 : 4;
  u64 head = (unit - u64(dst) % unit) % unit;
  if (head > size) head = size;
  const u64 words = (size - head) / unit;
  const u64 tail = head + words * unit;
  copyWords(dst, src, head, rank, width);
  if (unit == 16) {
    copyWords((Quad*)(dst + head), (const Quad*)(src + head), words, rank, width);
  } else {
    copyWords((unsigned*)(dst + head), (const unsigned*)(src + head), words, rank, width);
  }
  copyWords(dst + tail, src + tail, size - tail, rank, width);
}

// Blocks as the caller wrote them.
struct AnyBlocks {
  const Block* list;
  __device__ Block at(unsigned i) const { return list[i]; }
};

// Blocks of one size, whose offsets are counted in units of 2^shift bytes.
struct Place {
  unsigned local;
  unsigned remote;
};
struct EvenBlocks {
  const Place* list;
  u64 size;
  unsigned shift;
  __device__ Block at(unsigned i) const {
    const Place place = list[i];
    return Block{u64(place.local) << shift, u64(place.remote) << shift, size};
  }
};

// How a list is shared out: `width` threads, a divisor of the launch's block, work on a part of a
// block of memory, and each block of memory has 2^split parts.
struct Shares {
  unsigned count;  // blocks of memory
  unsigned width;
  unsigned split;
};

// Parts begin at multiples of this, so that what is aligned stays so.
static const u64 kPartUnit = 128;

// Always inline: as a function it would copy a list in the arguments to the stack first.
template <class List>
static __device__ __attribute__((always_inline)) void copyAll(const Sides& sides, const List& list,
                                                              const Shares& shares) {
  const unsigned groups = HMC_THREADS / shares.width;
  const unsigned parts = shares.count << shares.split;
  for (unsigned i = HMC_BLOCK * groups + HMC_THREAD / shares.width; i < parts;
       i += HMC_BLOCKS * groups) {
    const Block block = list.at(i >> shares.split);
    const u64 most = ((block.size >> shares.split) / kPartUnit + 1) * kPartUnit;
    const u64 wanted = (i & ((1u << shares.split) - 1)) * most;
    const u64 first = wanted < block.size ? wanted : block.size;
    const u64 left = block.size - first;
    copyBlock(sides.dst + first + (sides.toRemote ? block.remote : block.local),
              sides.src + first + (sides.toRemote ? block.local : block.remote),
              left < most ? left : most, HMC_THREAD % shares.width, shares.width);
  }
}

// The list in host memory that the driver has pinned.
extern "C" __global__ void hmcCopyList(const Sides sides, const Block* list, const Shares shares) {
  copyAll(sides, AnyBlocks{list}, shares);
}

extern "C" __global__ void hmcCopyEven(const Sides sides, const Place* list, const Shares shares,
                                       u64 size, unsigned shift) {
  copyAll(sides, EvenBlocks{list, size, shift}, shares);
}

// The list in the arguments of the launch.
extern "C" __global__ void hmcCopyFew(const Sides sides, const Blocks blocks, const Shares shares) {
  copyAll(sides, AnyBlocks{blocks.list}, shares);
}
