#include "memory/cuda/driver.h"

#include "base/error.h"

namespace hmc::cuda {

namespace {

constexpr int kOldest = 12000;

std::string versionText(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

Code codeOf(CuResult result) {
  switch (result) {
    case kInvalidValue:
      return Code::invalidArgument;
    case kOutOfMemory:
      return Code::exhausted;
    case kAlreadyRegistered:
      return Code::alreadyExists;
    case kNotPermitted:
      return Code::permissionDenied;
    case kNotSupported:
    case kNoDevice:
      return Code::unsupported;
    default:
      return Code::failed;
  }
}

}  // namespace

bool Driver::isSticky(CuResult result) {
  constexpr CuResult kSticky[] = {214, 219, 220, 700, 702, 709, 710, 713, 714, 715,
                                  716, 717, 718, 719, 720, 721, 723, 724, 725};
  for (CuResult one : kSticky) {
    if (result == one) return true;
  }
  return false;
}

Status Driver::check(CuResult result, const char* call) const {
  if (result == kSuccess) return Status();
  const char* name = nullptr;
  const char* text = nullptr;
  (void)cuGetErrorName(result, &name);
  (void)cuGetErrorString(result, &text);
  std::string fix;
  if (isSticky(result)) {
    fix =
        ". A kernel or copy that ran before broke the device's context: only a new process can use "
        "the device again, host memory goes on";
  } else if (result == kNotInitialized || result == kDeinitialized) {
    fix =
        ". CUDA does not survive fork(): start child processes with spawn or exec, or fork before "
        "CUDA is first used";
  }
  return error(codeOf(result), "{}: {} ({}){}", call, text ? text : "unknown error",
               name ? name : std::to_string(result), fix);
}

Result<Driver> Driver::load(const char* library) {
  auto opened = DynamicLibrary::open(library);
  if (!opened.ok()) {
    return error(Code::unsupported,
                 "no CUDA: {}; it comes with NVIDIA's driver: install that, or give the container "
                 "the GPUs (docker run --gpus all)",
                 opened.status().message());
  }
  Driver driver(*std::move(opened));
#define HMC_ROW(name, arguments) \
  { HMC_ASSIGN(driver.name, driver.library_.symbol<CuResult arguments>(#name)); }
  HMC_CUDA_FUNCTIONS(HMC_ROW)
#undef HMC_ROW
  // Threads of the driver run until the process ends.
  driver.library_.stay();
  HMC_CUDA(driver, cuInit, 0);
  HMC_CUDA(driver, cuDriverGetVersion, &driver.version);
  if (driver.version < kOldest) {
    return error(Code::unsupported, "the NVIDIA driver is of CUDA {}; HMC needs {} or newer",
                 versionText(driver.version), versionText(kOldest));
  }
  return driver;
}

}  // namespace hmc::cuda
