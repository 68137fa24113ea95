#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "hmc/result.h"

namespace hmc {

// An environment variable that the library reads.
struct Variable {
  enum class Form { text, secret, milliseconds, choice };
  const char* name;
  const char* meaning;
  const char* standard;  // what holds when it is not set
  Form form = Form::text;
  const char* choices = "";  // of Form::choice, separated by spaces
};

// All of them. Code that reads one names it here, `hmc info` prints them, and a test holds the
// table in docs/gotchas.md equal.
namespace variable {
inline constexpr Variable kLog{"HMC_LOG",
                               "debug, info, warn, error or off; lines go to standard error",
                               "warn", Variable::Form::choice, "debug info warn error off"};
inline constexpr Variable kTimeout{"HMC_TIMEOUT_MS", "put, get, wait of the documented classes",
                                   "30000", Variable::Form::milliseconds};
inline constexpr Variable kReceiveTimeout{"HMC_RECV_TIMEOUT_MS", "ctrlRecv and its kin", "600000",
                                          Variable::Form::milliseconds};
inline constexpr Variable kConnectTimeout{"HMC_CONNECT_TIMEOUT_MS",
                                          "how long connectTo waits for a server to come up",
                                          "10000", Variable::Form::milliseconds};
inline constexpr Variable kLease{"HMC_LEASE_MS", "silence after which a peer is lost", "10000",
                                 Variable::Form::milliseconds};
inline constexpr Variable kSecret{
    "HMC_SECRET", "the shared secret of Nodes, pools, stores and the documented classes", "none",
    Variable::Form::secret};
inline constexpr Variable kCookie{
    "HMC_COOKIE",
    "the file by which processes of one user know each other where there is no secret; none: "
    "over loopback every user of this host is let in",
    "~/.config/hmc/cookie"};
inline constexpr Variable kSecurity{
    "HMC_SECURITY",
    "strict: listening where other hosts reach it without a secret is an error, whatever the "
    "program says",
    "usual", Variable::Form::choice, "usual strict"};
inline constexpr Variable kTls{"HMC_TLS",
                               "required: everything that leaves the process is encrypted", "off",
                               Variable::Form::choice, "off required"};
inline constexpr Variable kTlsCa{"HMC_TLS_CA",
                                 "the CA of all sides' certificates, a PEM file, or several "
                                 "separated by :",
                                 "none: the secret is the key"};
inline constexpr Variable kTlsCertificate{"HMC_TLS_CERT", "this side's certificate, a PEM file",
                                          "none"};
inline constexpr Variable kTlsKey{"HMC_TLS_KEY", "the key of that certificate, a PEM file", "none"};
inline constexpr Variable kTlsKeyPassword{"HMC_TLS_KEY_PASSWORD",
                                          "the password of that key, if it is encrypted", "none",
                                          Variable::Form::secret};
inline constexpr Variable kTlsCrl{"HMC_TLS_CRL",
                                  "PEM files of the CAs' revocation lists, separated by :", "none"};
inline constexpr Variable kTlsExceptions{
    "HMC_TLS_EXCEPTIONS", "transports that may move bytes unencrypted all the same: verbs,ucx",
    "none"};
inline constexpr Variable kIntegrity{"HMC_INTEGRITY",
                                     "true: what tcp moves without TLS has checksums", "false",
                                     Variable::Form::choice, "false true"};
inline constexpr Variable kEtcdPassword{"HMC_ETCD_PASSWORD",
                                        "the password of the user in an etcd:// address",
                                        "the store's secret", Variable::Form::secret};
inline constexpr Variable kDataPorts{
    "HMC_DATA_PORTS", "where tcp listens for data from other hosts: 20000-20015, or one port",
    "any that is free"};
inline constexpr Variable kTransports{"HMC_TRANSPORTS",
                                      "the transports to use, best first: ipc,tcp", "all"};
inline constexpr Variable kStrictTransport{
    "HMC_STRICT_TRANSPORT", "1: RDMA and UCX are errors where they are not available", "0",
    Variable::Form::choice, "0 1"};
inline constexpr Variable kRdmaDevices{"HMC_RDMA_DEVICES", "the RDMA ports to use: mlx5_0,mlx5_1:2",
                                       "the fastest that are active"};
inline constexpr Variable kRdmaGidIndex{"HMC_RDMA_GID_INDEX", "which address of the RDMA port",
                                        "RoCE v2 with an IPv4 address, if there is one"};
inline constexpr Variable kRdmaMtu{"HMC_RDMA_MTU", "256, 512, 1024, 2048 or 4096",
                                   "what the port has"};
inline constexpr Variable kMemoryPlugin{
    "HMC_MEMORY_PLUGIN", "shared libraries with further memory backends, separated by :", "none"};
inline constexpr Variable kTrace{"HMC_TRACE", "stderr: one line for every step of every transfer",
                                 "off", Variable::Form::choice, "off stderr"};
inline constexpr Variable kMeasurements{
    "HMC_MEASUREMENTS", "a file of hmc bench --save: choose paths by the times in it", "none"};
inline constexpr Variable kPoolStore{
    "HMC_POOL_STORE", "the store of pools that name none: tcp://host:port", "the launcher's"};
inline constexpr Variable kPoolRank{"HMC_POOL_RANK", "this process's rank in such pools",
                                    "the launcher's"};
inline constexpr Variable kPoolSize{"HMC_POOL_SIZE", "how many ranks such pools have",
                                    "the launcher's"};
}  // namespace variable

inline constexpr const Variable* kVariables[] = {
    &variable::kLog,
    &variable::kTimeout,
    &variable::kReceiveTimeout,
    &variable::kConnectTimeout,
    &variable::kLease,
    &variable::kSecret,
    &variable::kCookie,
    &variable::kSecurity,
    &variable::kTls,
    &variable::kTlsCa,
    &variable::kTlsCertificate,
    &variable::kTlsKey,
    &variable::kTlsKeyPassword,
    &variable::kTlsCrl,
    &variable::kTlsExceptions,
    &variable::kIntegrity,
    &variable::kEtcdPassword,
    &variable::kDataPorts,
    &variable::kTransports,
    &variable::kStrictTransport,
    &variable::kRdmaDevices,
    &variable::kRdmaGidIndex,
    &variable::kRdmaMtu,
    &variable::kMemoryPlugin,
    &variable::kTrace,
    &variable::kMeasurements,
    &variable::kPoolStore,
    &variable::kPoolRank,
    &variable::kPoolSize,
};

// What the environment says, if it says anything.
std::optional<std::string> valueOf(const Variable& variable);

// Does what the environment says make sense? The sentence names the variable.
Status checkValue(const Variable& variable);

// What `text`, the value of the variable of that name, means as a whole number.
Result<uint32_t> numberIn(const char* name, const std::string& text);

// The value of one of Form::milliseconds, its standard when it is not set.
Result<std::chrono::milliseconds> millisecondsOf(const Variable& variable);

}  // namespace hmc
