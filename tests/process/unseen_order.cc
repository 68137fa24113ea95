// A one-sided transfer is ordered with its target's own reads and writes by a word of the other
// side, which ThreadSanitizer cannot follow through a socket: what the service thread does to the
// user's memory looks like a race. The tests of the transports themselves run without this.

#if defined(__SANITIZE_THREAD__)
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_suppressions() {
  return "race:hmc::tcp::TargetStream\nrace:hmc::ucx::Target\n";
}
#endif
