#ifndef SMEM_SECURITY_H
#define SMEM_SECURITY_H

#include "smem.h"

#ifdef __cplusplus
#define SMEM_UNLESS_SET(value) = value
#else
#define SMEM_UNLESS_SET(value)
#endif

/*
 * How connections to the store, and those between processes, are protected: by TLS 1.3, where both
 * sides show certificates. Strings are copied; NULL is "". In C, zero it first:
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
  const char* tlsPkPwd SMEM_UNLESS_SET(NULL);      /* file with its password */
  const char* kmcKsfMaster SMEM_UNLESS_SET(NULL);  /* must be NULL: see the function */
  const char* kmcKsfStandby SMEM_UNLESS_SET(NULL); /* the same */
  const char* packagePath SMEM_UNLESS_SET(NULL);   /* ignored: no further library is loaded */
} smem_tls_option;

#undef SMEM_UNLESS_SET

#ifdef __cplusplus
extern "C" {
#endif

/*
 * For what is opened or served afterwards. It fails, and changes nothing, when a file is missing or
 * cannot be used: nothing goes unprotected that was asked to be protected. A password in a key
 * store (kmcKsf...) cannot be read; smem_set_config_store_tls_key() takes a function that decrypts
 * one.
 */
SMEM_API int32_t smem_set_ssl_option(const smem_tls_option* tlsOption);

#ifdef __cplusplus
}
#endif

#endif
