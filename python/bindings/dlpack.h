#pragma once

#include <cstdint>

// The exchange format of array libraries (DLPack), as far as we use it.
namespace hmc::python::dlpack {

enum DeviceType : int32_t { kCpu = 1, kCuda = 2, kRocm = 10 };

struct DLDevice {
  int32_t type;
  int32_t id;
};

enum TypeCode : uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kBfloat = 4, kComplex = 5, kBool = 6 };

struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null when dense
  uint64_t byteOffset;
};

// From version 1.0 on, what the capsule holds begins with this and the tensor follows.
struct VersionedHead {
  uint32_t major;
  uint32_t minor;
  void* context;
  void (*deleter)(void*);
  uint64_t flags;
};
constexpr uint64_t kReadOnly = 1;
constexpr uint32_t kNewestMajor = 1;

// What __dlpack__ gives to a consumer, which calls the deleter when it needs it no more: before
// version 1.0, and since.
struct Managed {
  static constexpr const char* kName = "dltensor";
  DLTensor tensor;
  void* context;
  void (*deleter)(Managed*);

  void markReadOnly(bool /*unknown to it*/) {}
};
struct VersionedManaged {
  static constexpr const char* kName = "dltensor_versioned";
  uint32_t major = kNewestMajor;
  uint32_t minor = 0;
  void* context;
  void (*deleter)(VersionedManaged*);
  uint64_t flags;
  DLTensor tensor;

  void markReadOnly(bool readOnly) { flags = readOnly ? kReadOnly : 0; }
};

// From version 1.3 on: functions of the library, in a capsule at the class of its arrays. They
// answer 0, or raise an exception of Python.
constexpr const char* kExchangeAttribute = "__dlpack_c_exchange_api__";
constexpr const char* kExchangeName = "dlpack_exchange_api";
struct Exchange {
  uint32_t major;
  uint32_t minor;
  const void* older;
  void (*unused[3])();
  // What `array` has by now; `out` points into it. May be null.
  int (*describe)(void* array, DLTensor* out);
  int (*currentStream)(int32_t deviceType, int32_t id, void** out);
};

}  // namespace hmc::python::dlpack
