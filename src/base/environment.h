#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hmc/result.h"

namespace hmc {

// An environment variable that the library reads: the default of the option of the same meaning,
// wherever there is one.
struct Variable {
  // choices: several of them, separated by commas. files: names, separated by colons.
  enum class Form { text, secret, milliseconds, number, choice, choices, files, ports };
  // Whose options it stands for. Pools and the documented classes have a Node each.
  enum class Reader { everybody, nodes, documented, pools };
  const char* name;
  const char* meaning;
  const char* standard;  // what holds when it is not set
  Reader reader = Reader::nodes;
  Form form = Form::text;
  const char* choices = "";  // of Form::choice and choices, separated by spaces
};

// All of them. Code that reads one names it here, `hmc info` prints them, and a test holds the
// table in docs/gotchas.md equal.
namespace variable {
using Form = Variable::Form;
using Reader = Variable::Reader;
inline constexpr Variable kLog{
    "HMC_LOG",    "debug, info, warn, error or off; lines go to standard error",
    "warn",       Reader::everybody,
    Form::choice, "debug info warn error off"};
inline constexpr Variable kTimeout{"HMC_TIMEOUT_MS", "put, get, wait of the documented classes",
                                   "30000", Reader::documented, Form::milliseconds};
inline constexpr Variable kReceiveTimeout{"HMC_RECV_TIMEOUT_MS", "ctrlRecv and its kin", "600000",
                                          Reader::documented, Form::milliseconds};
inline constexpr Variable kConnectTimeout{"HMC_CONNECT_TIMEOUT_MS",
                                          "how long connectTo waits for a server to come up",
                                          "10000", Reader::documented, Form::milliseconds};
inline constexpr Variable kLease{"HMC_LEASE_MS", "silence after which a peer is lost", "10000",
                                 Reader::nodes, Form::milliseconds};
inline constexpr Variable kSecret{
    "HMC_SECRET", "the shared secret of Nodes, pools, stores and the documented classes", "none",
    Reader::everybody, Form::secret};
inline constexpr Variable kCookie{
    "HMC_COOKIE",
    "the file by which processes of one user know each other where there is no secret; none: over "
    "loopback every user of this host is let in",
    "~/.config/hmc/cookie", Reader::everybody};
inline constexpr Variable kSecurity{"HMC_SECURITY",
                                    "strict: listening where other hosts reach it without a secret "
                                    "is an error, whatever the program says",
                                    "usual",
                                    Reader::everybody,
                                    Form::choice,
                                    "usual strict"};
inline constexpr Variable kTls{
    "HMC_TLS",    "required: everything that leaves the process is encrypted",
    "off",        Reader::everybody,
    Form::choice, "off required"};
inline constexpr Variable kTlsCa{"HMC_TLS_CA",
                                 "the CA of all sides' certificates, a PEM file, or several "
                                 "separated by :",
                                 "none: the secret is the key", Reader::everybody, Form::files};
inline constexpr Variable kTlsCertificate{"HMC_TLS_CERT", "this side's certificate, a PEM file",
                                          "none", Reader::everybody, Form::files};
inline constexpr Variable kTlsKey{"HMC_TLS_KEY", "the key of that certificate, a PEM file", "none",
                                  Reader::everybody, Form::files};
inline constexpr Variable kTlsKeyPassword{"HMC_TLS_KEY_PASSWORD",
                                          "the password of that key, if it is encrypted", "none",
                                          Reader::everybody, Form::secret};
inline constexpr Variable kTlsCrl{"HMC_TLS_CRL",
                                  "PEM files of the CAs' revocation lists, separated by :", "none",
                                  Reader::everybody, Form::files};
inline constexpr Variable kTlsExceptions{
    "HMC_TLS_EXCEPTIONS",
    "transports that may move bytes unencrypted all the same: verbs,ucx",
    "none",
    Reader::nodes,
    Form::choices,
    "ipc verbs ucx tcp"};
inline constexpr Variable kIntegrity{
    "HMC_INTEGRITY", "true: what tcp moves without TLS has checksums",
    "false",         Reader::nodes,
    Form::choice,    "false true"};
inline constexpr Variable kEtcdPassword{"HMC_ETCD_PASSWORD",
                                        "the password of the user in an etcd:// address",
                                        "the store's secret", Reader::pools, Form::secret};
inline constexpr Variable kDataPorts{
    "HMC_DATA_PORTS", "where tcp listens for data from other hosts: 20000-20015, or one port",
    "any that is free", Reader::nodes, Form::ports};
inline constexpr Variable kTransports{"HMC_TRANSPORTS",
                                      "the transports to use, best first: ipc,tcp",
                                      "all",
                                      Reader::nodes,
                                      Form::choices,
                                      "ipc verbs ucx tcp"};
inline constexpr Variable kStrictTransport{
    "HMC_STRICT_TRANSPORT",
    "1: RDMA and UCX are errors where they are not available",
    "0",
    Reader::documented,
    Form::choice,
    "0 1"};
inline constexpr Variable kRdmaDevices{"HMC_RDMA_DEVICES", "the RDMA ports to use: mlx5_0,mlx5_1:2",
                                       "the fastest that are active", Reader::nodes};
inline constexpr Variable kRdmaGidIndex{"HMC_RDMA_GID_INDEX", "which address of the RDMA port",
                                        "RoCE v2 with an IPv4 address, if there is one",
                                        Reader::nodes, Form::number};
inline constexpr Variable kRdmaMtu{"HMC_RDMA_MTU",      "256, 512, 1024, 2048 or 4096",
                                   "what the port has", Reader::nodes,
                                   Form::choice,        "256 512 1024 2048 4096"};
inline constexpr Variable kMemoryPlugin{
    "HMC_MEMORY_PLUGIN", "shared libraries with further memory backends, separated by :", "none",
    Reader::nodes, Form::files};
inline constexpr Variable kMeasurements{
    "HMC_MEASUREMENTS", "a file of hmc bench --save: choose paths by the times in it", "none",
    Reader::nodes, Form::files};
inline constexpr Variable kTrace{"HMC_TRACE",  "stderr: one line for every step of every transfer",
                                 "off",        Reader::nodes,
                                 Form::choice, "off stderr"};
inline constexpr Variable kPoolStore{"HMC_POOL_STORE",
                                     "the store of pools that name none: tcp://host:port",
                                     "the launcher's", Reader::pools};
inline constexpr Variable kPoolRank{"HMC_POOL_RANK", "this process's rank in such pools",
                                    "the launcher's", Reader::pools, Form::number};
inline constexpr Variable kPoolSize{"HMC_POOL_SIZE", "how many ranks such pools have",
                                    "the launcher's", Reader::pools, Form::number};
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

// "Node, Pool, documented classes"
const char* readerName(Variable::Reader reader);

// What the environment says, if it says anything.
std::optional<std::string> valueOf(const Variable& variable);

// Does what the environment says make sense? The sentence names the variable. An empty value is
// none, except where milliseconds or one of some words are expected.
Status checkValue(const Variable& variable);
// The same for all that one reader takes its defaults from; files are looked at when they are
// opened. The sentence names all that are wrong.
Status checkValuesOf(Variable::Reader reader);
// What the environment says, as a list of the words between its commas.
std::vector<std::string> listOf(const Variable& variable);

// What `text`, the value of the variable of that name, means as a whole number.
Result<uint32_t> numberIn(const char* name, const std::string& text);

// The value of one of Form::milliseconds, its standard when it is not set.
Result<std::chrono::milliseconds> millisecondsOf(const Variable& variable);

}  // namespace hmc
