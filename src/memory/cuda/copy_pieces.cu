// Copies a list of pieces: between places on the device, and between the device and host memory
// that the driver has pinned. copy_pieces.ptx is made of this by clang, without a toolkit
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

struct Piece {  // hmc::CopyPiece
  char* dst;
  const char* src;
  u64 size;
};
struct Pieces {
  Piece list[128];
};

// `width` threads do this together; `rank` is which one of them we are. Four loads are under way
// before the first of them is needed.
template <class Word>
static __device__ void copyWords(Word* dst, const Word* src, u64 count, unsigned rank,
                                 unsigned width) {
  u64 i = rank;
  for (; i + 3 * u64(width) < count; i += 4 * u64(width)) {
    const Word a = src[i];
    const Word b = src[i + width];
    const Word c = src[i + 2 * width];
    const Word d = src[i + 3 * width];
    dst[i] = a;
    dst[i + width] = b;
    dst[i + 2 * width] = c;
    dst[i + 3 * width] = d;
  }
  for (; i < count; i += width) dst[i] = src[i];
}

static __device__ void copyPiece(const Piece& piece, unsigned rank, unsigned width) {
  const u64 difference = u64(piece.dst) ^ u64(piece.src);
  if (difference % 4 != 0) return copyWords(piece.dst, piece.src, piece.size, rank, width);
  // Single bytes up to the first whole word, whole words, single bytes.
  const u64 unit = difference % 16 == 0 ? 16 : 4;
  u64 head = (unit - u64(piece.dst) % unit) % unit;
  if (head > piece.size) head = piece.size;
  const u64 words = (piece.size - head) / unit;
  const u64 tail = head + words * unit;
  copyWords(piece.dst, piece.src, head, rank, width);
  if (unit == 16) {
    copyWords((Quad*)(piece.dst + head), (const Quad*)(piece.src + head), words, rank, width);
  } else {
    copyWords((unsigned*)(piece.dst + head), (const unsigned*)(piece.src + head), words, rank,
              width);
  }
  copyWords(piece.dst + tail, piece.src + tail, piece.size - tail, rank, width);
}

// A piece is the work of `width` threads, a divisor of the block's.
static __device__ void copyAll(const Piece* list, unsigned count, unsigned width) {
  const unsigned groups = HMC_THREADS / width;
  for (unsigned i = HMC_BLOCK * groups + HMC_THREAD / width; i < count; i += HMC_BLOCKS * groups) {
    const Piece piece = list[i];
    copyPiece(piece, HMC_THREAD % width, width);
  }
}

// The list in memory that the device reads.
extern "C" __global__ void hmcCopyList(const Piece* list, unsigned count, unsigned width) {
  copyAll(list, count, width);
}

// The list in the arguments of the launch.
extern "C" __global__ void hmcCopyFew(const Pieces pieces, unsigned count, unsigned width) {
  copyAll(pieces.list, count, width);
}
