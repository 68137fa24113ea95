#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <utility>

namespace hmc {

// Owns a range of the address space.
class Mapping {
 public:
  Mapping() = default;
  Mapping(void* ptr, size_t size) : ptr_(static_cast<char*>(ptr)), size_(size) {}
  Mapping(Mapping&& other) noexcept
      : ptr_(std::exchange(other.ptr_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    if (this != &other) {
      reset();
      ptr_ = std::exchange(other.ptr_, nullptr);
      size_ = std::exchange(other.size_, 0);
    }
    return *this;
  }
  ~Mapping() { reset(); }

  char* get() const { return ptr_; }
  size_t size() const { return size_; }

 private:
  void reset() {
    if (ptr_) ::munmap(ptr_, size_);
    ptr_ = nullptr;
  }
  char* ptr_ = nullptr;
  size_t size_ = 0;
};

}  // namespace hmc
