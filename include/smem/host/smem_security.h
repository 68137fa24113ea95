#ifndef SMEM_SECURITY_H
#define SMEM_SECURITY_H

#include "smem.h"

#ifdef __cplusplus
#define SMEM_UNLESS_SET(value) = value
#else
#define SMEM_UNLESS_SET(value)
#endif

/*
 * How connections to the store are protected. Strings are copied; NULL is "". In C, zero it first:
 * smem_tls_option option = {0};
 */
typedef struct smem_tls_option {
  bool enableTls SMEM_UNLESS_SET(false);
  const char* tlsTopPath SMEM_UNLESS_SET(NULL);    /* where the paths below begin */
  const char* tlsCert SMEM_UNLESS_SET(NULL);       /* our certificate */
  const char* tlsCrlPath SMEM_UNLESS_SET(NULL);    /* folder of revocation lists */
  const char* tlsCaPath SMEM_UNLESS_SET(NULL);     /* folder of authorities */
  const char* tlsCaFile SMEM_UNLESS_SET(NULL);     /* files in it, separated by commas */
  const char* tlsCrlFile SMEM_UNLESS_SET(NULL);    /* the same for tlsCrlPath */
  const char* tlsPk SMEM_UNLESS_SET(NULL);         /* our private key */
  const char* tlsPkPwd SMEM_UNLESS_SET(NULL);      /* its password */
  const char* kmcKsfMaster SMEM_UNLESS_SET(NULL);  /* key store of the password */
  const char* kmcKsfStandby SMEM_UNLESS_SET(NULL); /* its copy */
  const char* packagePath SMEM_UNLESS_SET(NULL);   /* ignored: no further library is loaded */
} smem_tls_option;

#undef SMEM_UNLESS_SET

#ifdef __cplusplus
extern "C" {
#endif

/*
 * For stores that are opened or served afterwards. With enableTls it fails while this version has
 * no TLS: nothing goes unprotected that was asked to be protected.
 */
SMEM_API int32_t smem_set_ssl_option(const smem_tls_option* tlsOption);

#ifdef __cplusplus
}
#endif

#endif
