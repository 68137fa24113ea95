#pragma once

#include <smem_shm.h>
#include <smem_shm_aicore_base_api.h>

#include <string>

#define CHECK(condition) \
  if (!(condition)) return wrong(__LINE__, #condition)

inline std::string answer(int32_t code) {
  if (code == 0) return "ok";
  return "error " + std::to_string(code) + " " + smem_get_last_err_msg();
}

inline std::string wrong(int line, const char* what) {
  return "error WRONG line " + std::to_string(line) + ": " + what;
}

struct Object {
  smem_shm_t handle;
  char* base;
  smem_shm_device_context_t context;

  template <class T>
  T* at(uint64_t offset) const {
    return reinterpret_cast<T*>(base + offset);
  }
  template <class T>
  T* own(uint64_t offset) const {
    return reinterpret_cast<T*>(base + context.rank * context.symmetricSize + offset);
  }
  uint32_t ranks() const { return context.rankSize; }
  uint32_t next() const { return (context.rank + 1) % context.rankSize; }
  uint32_t previous() const { return (context.rank + context.rankSize - 1) % context.rankSize; }
};

// What rank `from` writes at element `i`.
template <class T>
T value(uint32_t from, uint64_t i) {
  return static_cast<T>(from * 31 + i * 7 + 1);
}

// In device_data.cc.
std::string checkPut(const Object& object);
std::string checkTyped(const Object& object);
std::string checkErrors(const Object& object);
std::string checkRows(const Object& object);
