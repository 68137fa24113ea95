// Bytes that move between ranks.

#include <vector>

#include "device_object.h"

// Everyone puts into everyone's slot, then reads it there and fetches it from there.
std::string checkPut(const Object& object) {
  constexpr uint64_t kCount = 10007;
  const uint64_t all = uint64_t{kCount} * sizeof(int);
  std::vector<int> sent(kCount);
  for (uint64_t i = 0; i < kCount; ++i) sent[i] = value<int>(object.context.rank, i);
  for (uint32_t peer = 0; peer < object.ranks(); ++peer) {
    int* const place = object.at<int>(object.context.rank * all);
    CHECK(smem_shm_put(object.context, place, sent.data(), peer, kCount) == 0);
  }
  CHECK(smem_shm_barrier_all(object.context) == 0);
  std::vector<int> got(kCount);
  for (uint32_t from = 0; from < object.ranks(); ++from) {
    const int* const here = object.own<int>(from * all);
    // An address of our own slot is as good as one of slot 0.
    CHECK(smem_shm_get(object.context, here, got.data(), object.next(), kCount) == 0);
    const int* const there = smem_shm_ptr(object.context, here, object.previous());
    for (uint64_t i = 0; i < kCount; ++i) {
      CHECK(here[i] == value<int>(from, i));
      CHECK(got[i] == value<int>(from, i));
      CHECK(there[i] == value<int>(from, i));
    }
  }
  CHECK(smem_shm_barrier_all(object.context) == 0);
  return answer(0);
}

#define CHECK_TYPED(name, T)                                                                     \
  {                                                                                              \
    const T sent[2] = {value<T>(object.context.rank, 3), value<T>(object.context.rank, 4)};      \
    T got[4] = {};                                                                               \
    CHECK(smem_shm_put_##name(object.at<T>(at), sent, object.next(), 2, id) == 0);               \
    CHECK(smem_shm_uput_##name(object.at<T>(at + 64), sent, object.next(), 2, id) == 0);         \
    CHECK(smem_shm_barrier_all(id) == 0);                                                        \
    CHECK(smem_shm_get_##name(object.at<T>(at), got, object.context.rank, 2, id) == 0);          \
    CHECK(smem_shm_uget_##name(object.at<T>(at + 64), got + 2, object.next(), 2, id) == 0);      \
    CHECK(got[0] == value<T>(object.previous(), 3) && got[1] == value<T>(object.previous(), 4)); \
    CHECK(got[2] == sent[0] && got[3] == sent[1]);                                               \
    at += 128;                                                                                   \
  }

std::string checkTyped(const Object& object) {
  const uint32_t id = object.context.id;
  uint64_t at = 0;
  CHECK_TYPED(int, int)
  CHECK_TYPED(int8_t, int8_t)
  CHECK_TYPED(int8, int8_t)
  CHECK_TYPED(int16_t, int16_t)
  CHECK_TYPED(int16, int16_t)
  CHECK_TYPED(int64_t, int64_t)
  CHECK_TYPED(int64, int64_t)
  CHECK_TYPED(float, float)
  CHECK_TYPED(half, uint16_t)
  CHECK_TYPED(float16_t, uint16_t)
  CHECK_TYPED(bfloat16_t, int16_t)
  CHECK(smem_shm_barrier_all(id) == 0);
  return answer(0);
}

// Places that are none, and ranks that are nobody.
std::string checkErrors(const Object& object) {
  const uint64_t size = object.context.symmetricSize;
  int some[2] = {};
  auto put = [&](char* to, uint32_t rank, uint64_t count) {
    return smem_shm_put(object.context, reinterpret_cast<int*>(to), some, rank, count);
  };
  CHECK(put(object.base, object.ranks(), 1) == SMEM_INVALID_PARAM);
  CHECK(put(object.base + size - 4, 0, 2) == SMEM_INVALID_PARAM);
  CHECK(put(object.base + object.ranks() * size, 0, 1) == SMEM_INVALID_PARAM);
  CHECK(put(object.base - 4, 0, 1) == SMEM_INVALID_PARAM);
  CHECK(put(object.base, 0, UINT64_MAX / 4 + 2) == SMEM_INVALID_PARAM);
  CHECK(smem_shm_get(object.context, object.at<int>(size - 4), some, 0, 2) == SMEM_INVALID_PARAM);
  // The last bytes of a slot, and of all slots, are bytes like others.
  CHECK(put(object.base + size - 8, object.context.rank, 2) == 0);
  CHECK(put(object.base + object.ranks() * size - 8, object.context.rank, 2) == 0);
  CHECK(smem_shm_ptr(object.context, some, 0) == nullptr);
  CHECK(smem_shm_ptr(object.context, object.at<int>(0), object.ranks()) == nullptr);
  const uint64_t last = uint64_t{object.ranks()} * size - 4;
  CHECK(smem_shm_ptr(object.context, object.at<int>(last), 0) == object.at<int>(size - 4));

  // As where ranks are on other hosts.
  std::vector<uint8_t> reach(object.ranks(), 1);
  reach[object.next()] = 0;
  smem_shm_device_context_t apart = object.context;
  apart.reach = reach.data();
  apart.sync = nullptr;
  CHECK(smem_shm_put(apart, object.at<int>(0), some, object.next(), 1) == SMEM_OBJECT_NOT_EXISTS);
  CHECK(smem_shm_ptr(apart, object.at<int>(0), object.next()) == nullptr);
  CHECK(object.ranks() == 1 || smem_shm_ptr(apart, object.at<int>(0), object.context.rank));
  CHECK(smem_shm_barrier_all(apart) == SMEM_OBJECT_NOT_EXISTS);

  CHECK(smem_shm_get_device_context(object.handle, nullptr, sizeof(apart)) == SMEM_INVALID_PARAM);
  CHECK(smem_shm_get_device_context(object.handle, &apart, 8) == SMEM_INVALID_PARAM);
  CHECK(smem_shm_get_device_context(nullptr, &apart, sizeof(apart)) == SMEM_INVALID_PARAM);
  CHECK(smem_shm_bind_context(SMEM_OBJECT_NUM_MAX, object.context) == SMEM_INVALID_PARAM);
  return answer(0);
}

// A table of 5 rows of 24 bytes in the next rank's slot, from dense rows and back.
std::string checkRows(const Object& object) {
  constexpr uint32_t kRows = 5, kWidth = 24, kGap = 40;
  const smem_shm_copy_params out = {kRows, kWidth, 0, kGap}, in = {kRows, kWidth, kGap, 0};
  const uint64_t place = 4096;
  std::vector<char> sent(kRows * kWidth), got(sent.size());
  for (size_t i = 0; i < sent.size(); ++i) sent[i] = value<char>(object.context.rank, i);
  char* const there = smem_shm_ptr(object.context, object.at<char>(place), object.next());
  memset(object.own<char>(place), '.', 512);
  CHECK(smem_shm_barrier_all(object.context) == 0);
  smem_shm_copy_ub2gm(there, sent.data(), out);
  smem_shm_copy_gm2ub(got.data(), there, in);
  CHECK(got == sent);
  smem_shm_copy_gm2gm(there + 1024, there, out.blockCount * (kWidth + kGap));
  smem_shm_copy_gm2gm(there + 2048, there, in);
  CHECK(smem_shm_barrier_all(object.context) == 0);
  const char* const here = object.own<char>(place);
  for (uint32_t i = 0; i < kRows * (kWidth + kGap); ++i) {
    const uint32_t row = i / (kWidth + kGap), column = i % (kWidth + kGap);
    const char expected =
        column < kWidth ? value<char>(object.previous(), row * kWidth + column) : '.';
    CHECK(here[i] == expected);
    CHECK(here[1024 + i] == expected);
    if (column < kWidth) CHECK(here[2048 + row * kWidth + column] == expected);
  }
  smem_shm_copy_gm2ub(got.data(), here + 2048, got.size(), false);
  smem_shm_copy_ub2gm(object.own<char>(place + 4096), got.data(), got.size(), smem_shm_block());
  smem_shm_set_copy_ubuf(got.data(), 1);
  smem_shm_unset_copy_ubuf();
  CHECK(memcmp(object.own<char>(place + 4096), here + 2048, got.size()) == 0);
  CHECK(smem_shm_barrier_all(object.context) == 0);
  return answer(0);
}
