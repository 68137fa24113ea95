#include "collective/reduce.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// The loops are written once, for all types and operations, and compiled for several sets of
// instructions. They are inlined into functions with a target of their own, so nothing in them may
// be a call.
#define HMC_INLINE inline __attribute__((always_inline))

// Whatever `to` may be, no number depends on another's result. Clang warns where it does not
// optimise at all.
#if defined(__clang__) && !defined(__OPTIMIZE__)
#define HMC_INDEPENDENT
#elif defined(__clang__)
#define HMC_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define HMC_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace hmc::collective {

namespace {

HMC_INLINE uint32_t bitsOf(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

HMC_INLINE float floatOf(uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Numbers that are stored as one type and calculated with as another.
template <class Number>
struct Plain {
  using Stored = Number;
  using Wide = Number;
  static HMC_INLINE Wide load(Stored stored) { return stored; }
  static HMC_INLINE Stored store(Wide wide) { return wide; }
};

struct BFloat16 {
  using Stored = uint16_t;
  using Wide = float;
  static HMC_INLINE float load(uint16_t stored) { return floatOf(uint32_t{stored} << 16); }
  static HMC_INLINE uint16_t store(float wide) {
    constexpr uint32_t kInfinity = 0x7f800000;
    const uint32_t bits = bitsOf(wide);
    const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;  // half to even
    const uint32_t quiet = (bits >> 16) | 0x40;
    return static_cast<uint16_t>((bits & 0x7fffffff) > kInfinity ? quiet : rounded);
  }
};

// Without branches, so that it can be vectorised where the processor has no instruction for it.
struct Float16 {
  using Stored = uint16_t;
  using Wide = float;
  static HMC_INLINE float load(uint16_t stored) {
    constexpr float kRescale = 0x1p112F;  // the difference of the exponents' biases
    const uint32_t shifted = (uint32_t{stored} & 0x7fff) << 13;
    const uint32_t finite = bitsOf(floatOf(shifted) * kRescale);
    // Infinities and NaNs have the largest exponent in both.
    const uint32_t magnitude = shifted >= 0x0f800000 ? shifted | 0x7f800000 : finite;
    return floatOf(magnitude | (uint32_t{stored} & 0x8000) << 16);
  }
  static HMC_INLINE uint16_t store(float wide) {
    const uint32_t bits = bitsOf(wide);
    const uint32_t sign = (bits >> 16) & 0x8000;
    const uint32_t magnitude = bits & 0x7fffffff;
    // Normal: the bias changes by 112, and what is cut off rounds half to even.
    const uint32_t normal = (magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1)) >> 13;
    // Subnormal: the addition rounds at the last bit that a half has.
    const uint32_t tiny = bitsOf(floatOf(magnitude) + 0.5F) - 0x3f000000;
    const uint32_t finite = magnitude < 0x38800000 ? tiny : normal;
    const uint32_t special = magnitude > 0x7f800000 ? 0x7e00 : 0x7c00;
    return static_cast<uint16_t>(sign | (magnitude >= 0x477ff000 ? special : finite));
  }
};

// Signed integers wrap around as unsigned ones do.
template <class Wide>
using Wrapping = typename std::conditional_t<std::is_integral_v<Wide>, std::make_unsigned<Wide>,
                                             std::enable_if<true, Wide>>::type;
// Narrow ones would be multiplied as int.
template <class Wide>
using Product = std::conditional_t<std::is_integral_v<Wide> && sizeof(Wide) < sizeof(int), uint32_t,
                                   Wrapping<Wide>>;

template <ReduceOp Op, class Wide>
HMC_INLINE Wide applied(Wide a, Wide b) {
  if constexpr (Op == ReduceOp::sum) {
    return static_cast<Wide>(static_cast<Product<Wide>>(a) + static_cast<Product<Wide>>(b));
  } else if constexpr (Op == ReduceOp::product) {
    return static_cast<Wide>(static_cast<Product<Wide>>(a) * static_cast<Product<Wide>>(b));
  } else if constexpr (Op == ReduceOp::max) {
    return a > b || a != a ? a : b;  // NOLINT(misc-redundant-expression): a NaN
  } else {
    return a < b || a != a ? a : b;  // NOLINT(misc-redundant-expression)
  }
}

template <class Kind, ReduceOp Op>
HMC_INLINE void combine(void* to, const void* a, const void* b, size_t size) {
  using Stored = typename Kind::Stored;
  auto* result = static_cast<Stored*>(to);
  const auto* left = static_cast<const Stored*>(a);
  const auto* right = static_cast<const Stored*>(b);
  const size_t count = size / sizeof(Stored);
  HMC_INDEPENDENT
  for (size_t i = 0; i < count; ++i) {
    result[i] = Kind::store(applied<Op>(Kind::load(left[i]), Kind::load(right[i])));
  }
}

template <class Kind, ReduceOp Op>
void plain(void* to, const void* a, const void* b, size_t size) {
  combine<Kind, Op>(to, a, b, size);
}

#if defined(__x86_64__)
#define HMC_WIDE __attribute__((target("avx2,f16c")))

template <ReduceOp Op>
HMC_WIDE HMC_INLINE __m256 appliedToEight(__m256 a, __m256 b) {
  if constexpr (Op == ReduceOp::sum) return _mm256_add_ps(a, b);
  if constexpr (Op == ReduceOp::product) return _mm256_mul_ps(a, b);
  const auto chosen = _mm256_cmp_ps(a, b, Op == ReduceOp::max ? _CMP_GT_OQ : _CMP_LT_OQ);
  const auto nan = _mm256_cmp_ps(a, a, _CMP_UNORD_Q);
  return _mm256_blendv_ps(b, a, _mm256_or_ps(chosen, nan));
}

// Eight numbers of 16 bits as float32: what the compiler makes of the loops above takes several
// times as long.
HMC_WIDE HMC_INLINE __m256 widened(Float16, __m128i stored) {
  return _mm256_cvtph_ps(stored);
}
HMC_WIDE HMC_INLINE __m128i narrowed(Float16, __m256 wide) {
  return _mm256_cvtps_ph(wide, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
HMC_WIDE HMC_INLINE __m256 widened(BFloat16, __m128i stored) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(stored), 16));
}
HMC_WIDE HMC_INLINE __m128i narrowed(BFloat16, __m256 wide) {
  const __m256i bits = _mm256_castps_si256(wide);
  const __m256i upper = _mm256_srli_epi32(bits, 16);
  const __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
  const __m256i half = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
  const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, half), 16);
  const __m256i quiet = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(wide, wide, _CMP_UNORD_Q));
  const __m256i chosen = _mm256_blendv_epi8(rounded, quiet, nan);
  return _mm_packus_epi32(_mm256_castsi256_si128(chosen), _mm256_extracti128_si256(chosen, 1));
}

template <class Kind>
constexpr bool kNarrow = std::is_same_v<Kind, Float16> || std::is_same_v<Kind, BFloat16>;

template <class Kind, ReduceOp Op>
HMC_WIDE void avx2(void* to, const void* a, const void* b, size_t size) {
  auto* result = static_cast<char*>(to);
  const auto* left = static_cast<const char*>(a);
  const auto* right = static_cast<const char*>(b);
  size_t done = 0;
  if constexpr (kNarrow<Kind>) {
    for (; done + sizeof(__m128i) <= size; done += sizeof(__m128i)) {
      const __m128i one = _mm_loadu_si128(reinterpret_cast<const __m128i*>(left + done));
      const __m128i other = _mm_loadu_si128(reinterpret_cast<const __m128i*>(right + done));
      const __m256 both = appliedToEight<Op>(widened(Kind(), one), widened(Kind(), other));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(result + done), narrowed(Kind(), both));
    }
  }
  combine<Kind, Op>(result + done, left + done, right + done, size - done);
}
bool hasAvx2() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") != 0;  // such processors have f16c, too
}
#endif

constexpr size_t kTypes = 12;
constexpr size_t kOps = 4;
using Table = std::array<std::array<Combine, kOps>, kTypes>;

#define HMC_ROW(instructions, Kind)                                           \
  {                                                                           \
    instructions<Kind, ReduceOp::sum>, instructions<Kind, ReduceOp::product>, \
        instructions<Kind, ReduceOp::min>, instructions<Kind, ReduceOp::max>  \
  }
// In the order of DataType.
#define HMC_TABLE(instructions)                                                          \
  Table {                                                                                \
    {                                                                                    \
      HMC_ROW(instructions, Plain<int8_t>), HMC_ROW(instructions, Plain<uint8_t>),       \
          HMC_ROW(instructions, Plain<int16_t>), HMC_ROW(instructions, Plain<uint16_t>), \
          HMC_ROW(instructions, Plain<int32_t>), HMC_ROW(instructions, Plain<uint32_t>), \
          HMC_ROW(instructions, Plain<int64_t>), HMC_ROW(instructions, Plain<uint64_t>), \
          HMC_ROW(instructions, Float16), HMC_ROW(instructions, BFloat16),               \
          HMC_ROW(instructions, Plain<float>), HMC_ROW(instructions, Plain<double>)      \
    }                                                                                    \
  }

Combine entry(const Table& table, DataType type, ReduceOp op) {
  return table[static_cast<size_t>(type)][static_cast<size_t>(op)];
}

}  // namespace

Combine plainCombineOf(DataType type, ReduceOp op) {
  static const Table table = HMC_TABLE(plain);
  return entry(table, type, op);
}

Combine combineOf(DataType type, ReduceOp op) {
#if defined(__x86_64__)
  static const Table table = HMC_TABLE(avx2);
  static const bool fits = hasAvx2();
  if (fits) return entry(table, type, op);
#endif
  return plainCombineOf(type, op);
}

}  // namespace hmc::collective
