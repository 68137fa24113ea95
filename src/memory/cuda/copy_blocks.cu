// Copies a list of blocks: between places on the device, and between the device and host memory
// that the driver has pinned. copy_blocks.ptx is made of this by clang, without a toolkit
// (tools/checks/kernels.py); nvcc takes it as well.
#ifndef __CUDACC__
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
typedef unsigned Quad __attribute__((ext_vector_type(4)));
#define HMC_THREAD __nvvm_read_ptx_sreg_tid_x()
#define HMC_THREADS __nvvm_read_ptx_sreg_ntid_x()
#define HMC_BLOCK __nvvm_read_ptx_sreg_ctaid_x()
#define HMC_BLOCKS __nvvm_read_ptx_sreg_nctaid_x()
#define HMC_SHARED __attribute__((shared))
#else
typedef uint4 Quad;
#define HMC_THREAD threadIdx.x
#define HMC_THREADS blockDim.x
#define HMC_BLOCK blockIdx.x
#define HMC_BLOCKS gridDim.x
#define HMC_SHARED __shared__
#endif

typedef unsigned long long u64;

struct Block {  // hmc::Block
  u64 local;
  u64 remote;
  u64 size;
};
// A list that is short enough for the arguments of a launch. Every block of memory is cut into
// parts of one size, and each part is copied by a block of threads: those that are large get
// several.
struct FewBlock {
  u64 local;
  u64 remote;
  unsigned size;
  unsigned firstPart;
};
struct Few {
  FewBlock list[128];
  unsigned char blockOf[640];  // by part
};

// Where the blocks' offsets count from.
struct Sides {
  char* dst;
  const char* src;
  unsigned toRemote;  // dst is what the blocks call remote, else what they call local
};

// So many loads of a thread are under way at once: with more, or with more threads at a time, there
// are not registers enough.
static const unsigned kBatch = 8;
#define HMC_BOUNDS __launch_bounds__(512, 2)

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

// `Count` loads are under way before the first of them is needed. Leaves what is less than that.
template <unsigned Count, class Word>
static __device__ __attribute__((always_inline)) void copyInBatches(Word*& dst, const Word*& src,
                                                                    long long& left,
                                                                    unsigned width) {
#pragma unroll 1
  for (; left > (Count - 1) * (long long)width; left -= Count * width) {
    Word batch[Count];
#pragma unroll
    for (unsigned j = 0; j < Count; ++j) batch[j] = load(src + j * width);
#pragma unroll
    for (unsigned j = 0; j < Count; ++j) store(dst + j * width, batch[j]);
    src += Count * width;
    dst += Count * width;
  }
}

// `width` threads do this together; `rank` is which one of them we are.
template <unsigned Batch, class Word>
static __device__ __attribute__((always_inline)) void copyWords(Word* dst, const Word* src,
                                                                u64 count, unsigned rank,
                                                                unsigned width) {
  dst += rank;
  src += rank;
  long long left = (long long)count - rank;
  if (Batch > 4) copyInBatches<Batch>(dst, src, left, width);
  if (Batch >= 4) copyInBatches<4>(dst, src, left, width);
  copyInBatches<1>(dst, src, left, width);
}

static __device__ __attribute__((always_inline)) void copyBlock(char* dst, const char* src,
                                                                u64 size, unsigned rank,
                                                                unsigned width) {
  const u64 difference = u64(dst) ^ u64(src);
  if (difference % 4 != 0) return copyWords<4>(dst, src, size, rank, width);
  // Single bytes up to the first whole word, whole words, single bytes.
  const u64 unit = difference % 16 == 0 ? 16 : 4;
  u64 head = (unit - u64(dst) % unit) % unit;
  if (head > size) head = size;
  const u64 words = (size - head) / unit;
  const u64 tail = head + words * unit;
  copyWords<1>(dst, src, head, rank, width);
  if (unit == 16) {
    copyWords<kBatch>((Quad*)(dst + head), (const Quad*)(src + head), words, rank, width);
  } else {
    copyWords<4>((unsigned*)(dst + head), (const unsigned*)(src + head), words, rank, width);
  }
  copyWords<1>(dst + tail, src + tail, size - tail, rank, width);
}

// Blocks as the caller wrote them.
struct AnyBlocks {
  typedef Block Item;
  const Block* list;
  __device__ Block blockOf(const Block& item) const { return item; }
};

// Blocks of one size, whose offsets are counted in units of 2^shift bytes.
struct Place {
  unsigned local;
  unsigned remote;
};
struct EvenBlocks {
  typedef Place Item;
  const Place* list;
  u64 size;
  unsigned shift;
  __device__ Block blockOf(const Place& place) const {
    return Block{u64(place.local) << shift, u64(place.remote) << shift, size};
  }
};

// How a list is shared out: each block of threads gets `each` blocks of memory that follow each
// other, and `width` of its threads, a divisor of their number, work on one of them.
struct Shares {
  unsigned count;  // blocks of memory
  unsigned width;
  unsigned each;
};

static __device__ __attribute__((always_inline)) void copyOne(const Sides& sides,
                                                              const Block& block, unsigned rank,
                                                              unsigned width) {
  copyBlock(sides.dst + (sides.toRemote ? block.remote : block.local),
            sides.src + (sides.toRemote ? block.local : block.remote), block.size, rank, width);
}

// The list lies in host memory that the driver has pinned. Its items are fetched together, because
// a request over the bus takes as long for one as for many.
template <class List>
static __device__ __attribute__((always_inline)) void copyAll(const Sides& sides, const List& list,
                                                              const Shares& shares) {
  const unsigned kFetched = 256;
  HMC_SHARED typename List::Item items[kFetched];
  const unsigned groups = HMC_THREADS / shares.width;
  const unsigned first = HMC_BLOCK * shares.each;
  const unsigned end = first + shares.each < shares.count ? first + shares.each : shares.count;
  for (unsigned from = first; from < end; from += kFetched) {
    const unsigned some = end - from < kFetched ? end - from : kFetched;
    if (from != first) __syncthreads();  // everyone is done with the items before
    if (HMC_THREAD < some) items[HMC_THREAD] = list.list[from + HMC_THREAD];
    __syncthreads();
    for (unsigned i = HMC_THREAD / shares.width; i < some; i += groups)
      copyOne(sides, list.blockOf(items[i]), HMC_THREAD % shares.width, shares.width);
  }
}

extern "C" __global__ void HMC_BOUNDS hmcCopyList(const Sides sides, const Block* list,
                                                  const Shares shares) {
  copyAll(sides, AnyBlocks{list}, shares);
}

extern "C" __global__ void HMC_BOUNDS hmcCopyEven(const Sides sides, const Place* list,
                                                  const Shares shares, u64 size, unsigned shift) {
  copyAll(sides, EvenBlocks{list, size, shift}, shares);
}

// The list in the arguments of the launch.
extern "C" __global__ void HMC_BOUNDS hmcCopyFew(const Sides sides, const Few few, unsigned parts,
                                                 unsigned partSize) {
  for (unsigned i = HMC_BLOCK; i < parts; i += HMC_BLOCKS) {
    const FewBlock& block = few.list[few.blockOf[i]];
    const unsigned first = (i - block.firstPart) * partSize;
    const unsigned left = block.size - first;
    copyOne(sides,
            Block{block.local + first, block.remote + first, left < partSize ? left : partSize},
            HMC_THREAD, HMC_THREADS);
  }
}
