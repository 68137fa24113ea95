// A libucp of a good version in which everything else is missing.
void ucp_get_version(unsigned* major, unsigned* minor, unsigned* release);

void ucp_get_version(unsigned* major, unsigned* minor, unsigned* release) {
  *major = 1;
  *minor = 99;
  *release = 0;
}
