// A libucp of a version that this HMC does not know.
void ucp_get_version(unsigned* major, unsigned* minor, unsigned* release);

void ucp_get_version(unsigned* major, unsigned* minor, unsigned* release) {
  *major = 2;
  *minor = 0;
  *release = 7;
}
