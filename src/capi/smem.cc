#include "smem/host/smem.h"

#include "base/log.h"
#include "base/tls_context.h"
#include "base/tls_options.h"
#include "capi/call.h"
#include "capi/pool_making.h"
#include "hmc/version.h"
#include "smem/host/smem_security.h"

namespace {

using namespace hmc;        // NOLINT(google-build-using-namespace)
using namespace hmc::capi;  // NOLINT(google-build-using-namespace)

// The password of the key, which `decrypt` may have to find out.
Result<std::string> passwordOf(std::string given, smem_decrypt_handler decrypt) {
  if (!decrypt) return given;
  constexpr size_t kMost = 4096;
  std::string plain(kMost, '\0');
  size_t size = kMost;
  const int problem = decrypt(given.data(), given.size(), plain.data(), &size);
  if (problem == 0 && size <= kMost) return plain.substr(0, size);
  return error(Code::invalidArgument,
               "the function that decrypts the password answered {} and {} bytes, of {} at most",
               problem, size, kMost);
}

// The bytes that a caller counted, with or without the 0 at their end.
std::string counted(const char* bytes, uint32_t size) {
  std::string all(bytes ? bytes : "", bytes ? size : 0);
  while (!all.empty() && all.back() == '\0') all.pop_back();
  return all;
}

}  // namespace

extern "C" {

int32_t smem_init(uint32_t /*flags*/) {
  return call([]() -> int32_t {
    Library& library = Library::get();
    if (!library.initialised.exchange(true)) logInfo("smem of HMC {}", kVersion);
    return SMEM_OK;
  });
}

void smem_uninit(void) {
  closing([](Library& library) {
    library.initialised.store(false);
    library.closeAll();
  });
}

int32_t smem_set_extern_logger(void (*func)(int level, const char* msg)) {
  if (!func) return nullArgument("func");
  // Theirs count from 0 for debug, ours from 1.
  setLogger([func](LogLevel level, const std::string& line) {
    func(static_cast<int>(level) - 1, line.c_str());
  });
  return SMEM_OK;
}

int32_t smem_set_log_level(int level) {
  constexpr int kHighest = 3;
  if (level < 0 || level > kHighest) {
    return fail(SMEM_INVALID_PARAM,
                fmt::format("log level {} cannot be: 0 to {}", level, kHighest));
  }
  setLogLevel(static_cast<LogLevel>(level + 1));
  return SMEM_OK;
}

const char* smem_get_last_err_msg(void) {
  return lastSentence();
}

const char* smem_get_and_clear_last_err_msg(void) {
  return takeLastSentence();
}

int32_t smem_set_ssl_option(const smem_tls_option* tlsOption) {
  if (!tlsOption) return nullArgument("tlsOption");
  return call([&]() -> int32_t {
    TlsSettings& tls = Library::get().tls;
    if (!tlsOption->enableTls) {
      tls.set(std::nullopt);
      return SMEM_OK;
    }
    auto options = tlsFrom(*tlsOption);
    if (!options.ok()) return fail(options.status());
    // Here the caller can still see which file is wrong.
    const auto usable = TlsContext::create(*options, "");
    if (!usable.ok()) return fail(usable.status());
    tls.set(*std::move(options));
    return SMEM_OK;
  });
}

int32_t smem_set_conf_store_tls(bool enable, const char* tlsInfo, uint32_t tlsInfoLen) {
  return call([&]() -> int32_t {
    TlsSettings& tls = Library::get().tls;
    if (!enable) {
      tls.set(std::nullopt);
      return SMEM_OK;
    }
    auto options = tlsFrom(counted(tlsInfo, tlsInfoLen));
    if (!options.ok()) return fail(options.status());
    tls.set(*std::move(options));
    return SMEM_OK;
  });
}

int32_t smem_set_config_store_tls_key(const char* keyText, uint32_t keyLen, const char* keyPassword,
                                      uint32_t keyPasswordLen, smem_decrypt_handler h) {
  return call([&]() -> int32_t {
    std::string key = counted(keyText, keyLen);
    if (!isText(key)) {
      return fail(SMEM_INVALID_PARAM,
                  "tls_pk is not the text of a PEM file, which begins with -----BEGIN");
    }
    auto password = passwordOf(counted(keyPassword, keyPasswordLen), h);
    if (!password.ok()) return fail(password.status());
    Library::get().tls.setKey(std::move(key), *std::move(password));
    return SMEM_OK;
  });
}

int32_t smem_create_config_store(const char* storeUrl) {
  return call([&]() -> int32_t {
    Library& library = Library::get();
    const ChangeTurn turn(library, std::chrono::seconds(kDefaultSeconds));
    if (!turn.mine()) return changingElsewhere();
    if (!library.initialised.load()) return notInitialised("smem_init");
    if (!storeUrl) return nullArgument("storeUrl");
    if (library.stores.serves(storeUrl)) {
      return fail(SMEM_REPEAT_CALL, fmt::format("this process serves {} already", storeUrl));
    }
    auto served = library.stores.serve(storeUrl, library.tls.protection().store);
    const Code code = served.status().code();
    if (code == Code::alreadyExists) return fail(SMEM_RESOURCE_IN_USE, served.status().message());
    if (!served.ok() && code != Code::invalidArgument)
      return fail(SMEM_NEW_OBJECT_FAILED, served.status().message());
    if (!served.ok()) return fail(served.status());
    library.keep(*std::move(served));
    return SMEM_OK;
  });
}

}  // extern "C"
